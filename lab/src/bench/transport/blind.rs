//! Upper bound of what this machine's system can do: datagrams sent blindly, as many together as it takes, and counted
//! where they arrive. Not encrypted, not acknowledged, not paced.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use quinn::udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::super::wall_clock;

/// Largest datagram, so that a batch of them is what the system takes in one call.
const MAX_BATCH_BYTES: usize = 65_507;
/// Longest time for which a client may have datagrams sent.
const LONGEST: Duration = Duration::from_secs(60);
/// Silence that ends a transfer.
const SILENCE: Duration = Duration::from_millis(500);
/// Bytes of the numbers of a request, before the server's fingerprint, which only those know who were told.
const REQUEST_BYTES: usize = 8;

/// A port that sends to clients that ask with the server's fingerprint.
pub(super) struct BlindServer {
    socket: UdpSocket,
    fingerprint: String,
}

impl BlindServer {
    pub(super) async fn bind(address: SocketAddr, fingerprint: String) -> Result<Self> {
        Ok(Self { socket: UdpSocket::bind(address).await?, fingerprint })
    }

    pub(super) fn address(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Answers requests without end, one client at a time.
    pub(super) async fn run(self) -> Result<()> {
        let mut request = [0; 256];
        loop {
            let (size, client) = self.socket.recv_from(&mut request).await?;
            let Some((numbers, word)) = request[..size].split_first_chunk::<REQUEST_BYTES>() else {
                continue;
            };
            if word != self.fingerprint.as_bytes() {
                continue;
            }
            let [a, b, c, d, e, f, g, h] = *numbers;
            let millis = u64::from(u32::from_le_bytes([a, b, c, d]));
            let bytes = u32::from_le_bytes([e, f, g, h]) as usize;
            let during = Duration::from_millis(millis).min(LONGEST);
            // One client to whom nothing can be sent is no reason to leave the others alone.
            drop(self.send(client, bytes.clamp(1, MAX_BATCH_BYTES), during).await);
        }
    }

    async fn send(&self, destination: SocketAddr, datagram_bytes: usize, during: Duration) -> Result<()> {
        let state = UdpSocketState::new((&self.socket).into())?;
        let together = state.max_gso_segments().min(MAX_BATCH_BYTES / datagram_bytes).max(1);
        let contents = vec![0; together * datagram_bytes];
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: &contents,
            segment_size: (together > 1).then_some(datagram_bytes),
            src_ip: None,
        };
        let start = wall_clock::now();
        while start.elapsed() < during {
            let sending = || state.try_send((&self.socket).into(), &transmit);
            match self.socket.async_io(Interest::WRITABLE, sending).await {
                // A device without room drops, and so does a slow receiver.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => tokio::task::yield_now().await,
                done => done?,
            }
        }
        Ok(())
    }
}

/// Bytes that arrived, and their time, seconds.
pub(super) async fn receive(
    server: SocketAddr,
    fingerprint: &str,
    datagram_bytes: u32,
    during: Duration,
) -> Result<(u64, f64)> {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).await?;
    let state = UdpSocketState::new((&socket).into())?;
    let millis = u32::try_from(during.as_millis()).unwrap_or(u32::MAX);
    let numbers = [millis.to_le_bytes(), datagram_bytes.to_le_bytes()].concat();
    socket.send_to(&[&numbers, fingerprint.as_bytes()].concat(), server).await?;
    let mut buffers = vec![vec![0; 1 << 16]; BATCH_SIZE];
    let (mut arrived, mut first, mut last) = (0, None, None);
    loop {
        let taking = socket.async_io(Interest::READABLE, || take(&state, &socket, &mut buffers));
        match timeout(SILENCE, taking).await {
            Ok(bytes) => arrived += bytes?,
            Err(_) => break,
        }
        let now = wall_clock::now();
        (first, last) = (first.or(Some(now)), Some(now));
    }
    let (Some(first), Some(last)) = (first, last) else {
        return Err(Error::new(ErrorKind::TimedOut, "expected datagrams, none came"));
    };
    Ok((arrived, (last - first).as_secs_f64()))
}

fn take(state: &UdpSocketState, socket: &UdpSocket, buffers: &mut [Vec<u8>]) -> io::Result<u64> {
    let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let count = state.recv(socket.into(), &mut slices, &mut metas)?;
    Ok(metas[..count].iter().map(|meta| meta.len as u64).sum())
}
