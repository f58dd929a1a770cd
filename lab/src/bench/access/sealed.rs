//! The ceiling over TLS: the same requests and answers as `ceiling`, encrypted as those of Corridor (rustls). Its additional
//! costs are those of encryption.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use array::{Error, Result};
use link::{Fingerprint, Identity, Trust, carrier::tls};
use rustls::{ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use super::ceiling::{REQUEST_BYTES, REQUESTS_BYTES, Stretch};

/// Bytes of answers gathered before a write, and encrypted at a time.
const GATHERED_BYTES: usize = 256 << 10;
/// Name in the certificate; any will do, because it is checked by its fingerprint.
const NAME: &str = "ceiling";

/// Identity of the server, made for this run.
pub(super) fn identity() -> Result<Identity> {
    Identity::self_signed(&[NAME.to_owned()])
}

/// Serves `file` to all clients until the process ends.
pub(super) fn serve(file: &File, listener: &TcpListener, identity: &Identity) -> Result<()> {
    let config = identity.server_config(&[])?;
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let (stream, config) = (stream?, Arc::clone(&config));
            // A client that leaves ends its own conversation only.
            let work = move || drop(answer(stream, config, file));
            thread::Builder::new().name("ceiling-tls".into()).spawn_scoped(scope, work)?;
        }
        Ok(())
    })
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>, file: &File) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut session = ServerConnection::new(config).map_err(broken)?;
    session.set_buffer_limit(Some(GATHERED_BYTES));
    let mut stream = StreamOwned::new(session, stream);
    let mut requests = vec![0; REQUESTS_BYTES];
    let mut there = 0;
    let mut answers = Vec::with_capacity(GATHERED_BYTES);
    loop {
        let more = stream.read(&mut requests[there..])?;
        if more == 0 {
            return Ok(());
        }
        there += more;
        let whole = there / REQUEST_BYTES * REQUEST_BYTES;
        for request in requests[..whole].as_chunks::<REQUEST_BYTES>().0 {
            let Stretch { mut offset, bytes } = Stretch::decode(*request);
            let mut left = bytes as usize;
            while left > 0 {
                let at = answers.len();
                let now = left.min(GATHERED_BYTES - at);
                answers.resize(at + now, 0);
                file.read_exact_at(&mut answers[at..], offset)?;
                (left, offset) = (left - now, offset + now as u64);
                if answers.len() == GATHERED_BYTES {
                    stream.write_all(&answers)?;
                    answers.clear();
                }
            }
        }
        requests.copy_within(whole..there, 0);
        there -= whole;
        // Whoever waits for an answer gets it before the next request is waited for.
        stream.write_all(&answers)?;
        stream.flush()?;
        answers.clear();
    }
}

/// A connection to such a server.
pub(super) struct Sealed {
    stream: TcpStream,
    session: Mutex<ClientConnection>,
}

impl Sealed {
    /// Connects and completes the handshake.
    pub(super) fn connect(address: SocketAddr, fingerprint: Fingerprint) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let config = Arc::new(tls::client_config(&Trust::Fingerprint(fingerprint))?);
        let name = NAME.try_into().map_err(|_| Error::internal("the name of the ceiling's server"))?;
        let mut session = ClientConnection::new(config, name).map_err(broken)?;
        while session.is_handshaking() {
            session.complete_io(&mut stream)?;
        }
        Ok(Self { stream, session: Mutex::new(session) })
    }

    /// Reads all stretches, one after another, into `into`, which they fill exactly.
    pub(super) fn read(&self, stretches: &[Stretch], into: &mut [u8]) -> Result<()> {
        thread::scope(|scope| {
            let asking = thread::Builder::new().name("ceiling-asks".into());
            let asking = asking.spawn_scoped(scope, || self.ask(stretches))?;
            self.receive(into)?;
            asking.join().map_err(|_| Error::internal("the asking thread ended in a panic"))?
        })
    }

    fn ask(&self, stretches: &[Stretch]) -> Result<()> {
        for some in stretches.chunks(REQUESTS_BYTES / REQUEST_BYTES) {
            let requests: Vec<u8> = some.iter().flat_map(|stretch| stretch.encode()).collect();
            let mut encrypted = Vec::with_capacity(2 * REQUESTS_BYTES);
            self.with(|session| {
                session.writer().write_all(&requests)?;
                while session.wants_write() {
                    session.write_tls(&mut encrypted)?;
                }
                Ok::<_, Error>(())
            })?;
            (&self.stream).write_all(&encrypted)?;
        }
        Ok(())
    }

    fn receive(&self, mut into: &mut [u8]) -> Result<()> {
        let mut encrypted = vec![0; GATHERED_BYTES];
        while !into.is_empty() {
            let count = (&self.stream).read(&mut encrypted)?;
            if count == 0 {
                return Err(Error::corrupt("expected more bytes of the ceiling's server, found the end"));
            }
            let mut rest = &encrypted[..count];
            while !rest.is_empty() {
                let taken = self.with(|session| {
                    session.read_tls(&mut rest)?;
                    session.process_new_packets().map_err(broken)?;
                    decrypted(session, into)
                })?;
                into = &mut into[taken..];
            }
        }
        Ok(())
    }

    fn with<T>(&self, f: impl FnOnce(&mut ClientConnection) -> T) -> T {
        f(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes decrypted bytes; returns their number.
fn decrypted(session: &mut ClientConnection, into: &mut [u8]) -> Result<usize> {
    let mut taken = 0;
    while taken < into.len() {
        match session.reader().read(&mut into[taken..]) {
            Ok(0) => break,
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn broken(error: rustls::Error) -> Error {
    Error::corrupt(format!("TLS of the ceiling: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_come_in_the_order_of_asking() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("field");
        let bytes: Vec<u8> = (0..3 << 20).map(|i: u32| u8::try_from(i % 249).unwrap()).collect();
        std::fs::write(&path, &bytes).unwrap();
        let (file, identity) = (File::open(&path).unwrap(), identity().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, fingerprint) = (listener.local_addr().unwrap(), identity.fingerprint());
        // Serves as long as the test lives.
        let serving = thread::Builder::new().name("served".into());
        serving.spawn(move || serve(&file, &listener, &identity)).unwrap();
        let client = Sealed::connect(address, fingerprint).unwrap();
        let small = (0..20_000u32).map(|n| Stretch { offset: u64::from(n % 700) * 4096, bytes: 16 + n % 9 });
        let stretches: Vec<Stretch> = small.chain([Stretch { offset: 5, bytes: 3_000_000 }]).collect();
        let expected: Vec<u8> = stretches
            .iter()
            .flat_map(|s| &bytes[usize::try_from(s.offset).unwrap()..][..s.bytes as usize])
            .copied()
            .collect();
        for _ in 0..2 {
            let mut found = vec![0; expected.len()];
            client.read(&stretches, &mut found).unwrap();
            assert!(found == expected);
        }
        let stranger = self::identity().unwrap().fingerprint();
        assert!(Sealed::connect(address, stranger).is_err(), "another server is not trusted");
    }
}
