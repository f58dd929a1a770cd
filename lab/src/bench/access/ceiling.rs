//! The ceiling: the same reads by the least that can do them over TCP. No encryption, no checksum, no names, no priorities:
//! twelve bytes ask for a stretch of one file, the answers are its bytes in the order of asking. Requests are pipelined
//! without limit; answers that are ready together leave together.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use array::{Error, Result};
use serde::Serialize;

use super::sealed;

/// Bytes of answers gathered before a write.
const GATHERED_BYTES: usize = 1 << 20;
/// Bytes of requests written or read at once.
pub(super) const REQUESTS_BYTES: usize = 64 << 10;
/// A request: an offset and a count.
pub(super) const REQUEST_BYTES: usize = 12;

/// A range of bytes of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl Stretch {
    pub(super) fn encode(self) -> [u8; REQUEST_BYTES] {
        let mut out = [0; REQUEST_BYTES];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..].copy_from_slice(&self.bytes.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: [u8; REQUEST_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
        Self { offset: u64::from_le_bytes([a, b, c, d, e, f, g, h]), bytes: u32::from_le_bytes(rest) }
    }
}

/// Addresses of a ceiling server.
#[derive(Debug, Serialize)]
pub struct CeilingReady {
    /// Address for connections without TLS.
    pub address: SocketAddr,
    /// Address for connections over TLS.
    pub tls: SocketAddr,
    /// Fingerprint of its certificate.
    pub fingerprint: String,
}

/// Serves `file` at `listen`, and over TLS at another port, until the process ends; tells where by `ready`.
///
/// # Errors
/// Those of the file and the sockets.
pub fn serve(file: &Path, listen: SocketAddr, ready: impl FnOnce(&CeilingReady) -> Result<()>) -> Result<()> {
    let file = File::open(file)?;
    let (plain, encrypted) = (TcpListener::bind(listen)?, TcpListener::bind((listen.ip(), 0))?);
    let identity = sealed::identity()?;
    let (address, tls) = (plain.local_addr()?, encrypted.local_addr()?);
    ready(&CeilingReady { address, tls, fingerprint: identity.fingerprint().to_string() })?;
    thread::scope(|scope| {
        let sealed = || sealed::serve(&file, &encrypted, &identity);
        thread::Builder::new().name("ceilings-tls".into()).spawn_scoped(scope, sealed)?;
        serve_plainly(&file, &plain)
    })
}

fn serve_plainly(file: &File, listener: &TcpListener) -> Result<()> {
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream?;
            // A client that leaves ends its own conversation only.
            let work = move || drop(answer(&stream, file));
            thread::Builder::new().name("ceiling".into()).spawn_scoped(scope, work)?;
        }
        Ok(())
    })
}

fn answer(stream: &TcpStream, file: &File) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut requests = BufReader::with_capacity(REQUESTS_BYTES, stream);
    let mut answers = BufWriter::with_capacity(GATHERED_BYTES, stream);
    let mut piece = vec![0; GATHERED_BYTES];
    loop {
        // Whoever waits for an answer gets it before the next request is waited for.
        if requests.buffer().len() < REQUEST_BYTES {
            answers.flush()?;
        }
        let mut request = [0; REQUEST_BYTES];
        requests.read_exact(&mut request)?;
        let Stretch { mut offset, bytes } = Stretch::decode(request);
        let mut left = bytes as usize;
        while left > 0 {
            let now = left.min(piece.len());
            file.read_exact_at(&mut piece[..now], offset)?;
            answers.write_all(&piece[..now])?;
            (left, offset) = (left - now, offset + now as u64);
        }
    }
}

/// A connection to a ceiling server.
pub(super) struct Ceiling(TcpStream);

impl Ceiling {
    /// Connects.
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Reads all stretches, one after another, into `into`, which they fill exactly.
    pub(super) fn read(&self, stretches: &[Stretch], into: &mut [u8]) -> Result<()> {
        thread::scope(|scope| {
            let ask = || -> Result<()> {
                let mut requests = BufWriter::with_capacity(REQUESTS_BYTES, &self.0);
                for stretch in stretches {
                    requests.write_all(&stretch.encode())?;
                }
                Ok(requests.flush()?)
            };
            let asking = thread::Builder::new().name("ceiling-asks".into()).spawn_scoped(scope, ask)?;
            (&self.0).read_exact(into)?;
            asking.join().map_err(|_| Error::internal("the asking thread ended in a panic"))?
        })
    }
}
