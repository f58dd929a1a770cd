//! Probes that measure a link: echo, a stream of numbered datagrams, a TCP transfer. Blocking, on threads in the
//! namespaces.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use array::{Error, Result};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::up::Running;

const ECHO_PORT: u16 = 7007;
const SINK_PORT: u16 = 7009;
const STREAM_PORT: u16 = 7011;
/// Silence after which no further packet is expected.
const SILENCE: Duration = Duration::from_secs(1);
/// Time by which one side starts before the other.
const HEAD_START: Duration = Duration::from_millis(100);
const RECEIVE_BUFFER_BYTES: usize = 64 << 20;
const IP_AND_UDP_BYTES: usize = 28;

#[expect(clippy::disallowed_methods, reason = "the edge: measures real packets")]
fn clock() -> Instant {
    Instant::now()
}

fn at(link: &Running, port: u16) -> SocketAddr {
    let address = link.addresses()[1].parse().expect("an address of ours");
    SocketAddr::new(address, port)
}

fn udp(port: u16) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    socket.set_read_timeout(Some(SILENCE))?;
    // Packets that wait for a busy receiver were not lost on the link.
    set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES)?;
    Ok(socket)
}

/// Runs one side in namespace a and the other in b, which starts first.
fn both<A: Send, B: Send>(
    link: &Running,
    in_a: impl FnOnce() -> std::io::Result<A> + Send,
    in_b: impl FnOnce() -> std::io::Result<B> + Send,
) -> Result<(A, B)> {
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new()
            .name("probe in b".into())
            .spawn_scoped(scope, || link.inside(1, in_b))
            .map_err(Error::from)?;
        std::thread::sleep(HEAD_START);
        let a = link.inside(0, in_a)?.map_err(Error::from);
        let b = other.join().map_err(|_| Error::internal("a probe panicked"))??.map_err(Error::from);
        Ok((a?, b?))
    })
}

/// Measures the round trips of `count` small datagrams one after another, `gap` apart, in seconds. Lost ones are left out.
pub(super) fn round_trips(link: &Running, count: u32, gap: Duration) -> Result<Vec<f64>> {
    let done = AtomicBool::new(false);
    let to = at(link, ECHO_PORT);
    let ask = || {
        let asked = ask(to, count, gap);
        done.store(true, Ordering::Relaxed);
        asked
    };
    let echo = || {
        let socket = udp(ECHO_PORT)?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        let mut buffer = [0; 64];
        while !done.load(Ordering::Relaxed) {
            if let Ok((size, from)) = socket.recv_from(&mut buffer) {
                socket.send_to(&buffer[..size], from)?;
            }
        }
        Ok(())
    };
    both(link, ask, echo).map(|(round_trips, ())| round_trips)
}

fn ask(to: SocketAddr, count: u32, gap: Duration) -> std::io::Result<Vec<f64>> {
    let socket = udp(0)?;
    socket.connect(to)?;
    let mut round_trips = Vec::new();
    for number in 0..count {
        let sent = clock();
        socket.send(&number.to_le_bytes())?;
        let mut answer = [0; 64];
        // Answers to earlier datagrams are ignored.
        while let Ok(size) = socket.recv(&mut answer) {
            if answer[..size] == number.to_le_bytes() {
                round_trips.push(sent.elapsed().as_secs_f64());
                break;
            }
        }
        std::thread::sleep(gap);
    }
    Ok(round_trips)
}

/// Sends `count` numbered datagrams of `bytes` with their headers, evenly at `bytes_per_sec`; returns the numbers in
/// order of arrival.
pub(super) fn datagrams(link: &Running, bytes: usize, bytes_per_sec: f64, count: u64) -> Result<Vec<u64>> {
    let to = at(link, SINK_PORT);
    let send = || {
        let socket = udp(0)?;
        socket.connect(to)?;
        let mut datagram = vec![0; bytes - IP_AND_UDP_BYTES];
        let start = clock();
        for number in 0..count {
            let due = Duration::from_secs_f64(number as f64 * bytes as f64 / bytes_per_sec);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            datagram[..8].copy_from_slice(&number.to_le_bytes());
            socket.send(&datagram)?;
        }
        Ok(())
    };
    let receive = || {
        let socket = udp(SINK_PORT)?;
        let mut buffer = vec![0; bytes];
        let mut numbers = Vec::new();
        let start = clock();
        // Ends after a silence; the first datagram may take longer.
        while numbers.is_empty() && start.elapsed() < 10 * SILENCE || !numbers.is_empty() {
            match socket.recv(&mut buffer) {
                Ok(size) if size >= 8 => numbers.push(number_in(&buffer)),
                Ok(_) => {}
                Err(_) if numbers.is_empty() => {}
                Err(_) => break,
            }
        }
        Ok(numbers)
    };
    both(link, send, receive).map(|((), numbers)| numbers)
}

fn number_in(datagram: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&datagram[..8]);
    u64::from_le_bytes(number)
}

/// Result of a TCP transfer.
pub(super) struct TcpTransfer {
    /// Bytes per second between the first and the last byte that arrived, without the first quarter, in which TCP
    /// starts.
    pub(super) bytes_per_sec: f64,
    /// True if every byte arrived correctly and in order.
    pub(super) is_exact: bool,
}

/// Sends `bytes` from a to b with the host's TCP.
pub(super) fn transfer(link: &Running, bytes: usize) -> Result<TcpTransfer> {
    let to = at(link, STREAM_PORT);
    let send = || {
        let mut stream = TcpStream::connect(to)?;
        let mut sent = 0;
        while sent < bytes {
            let piece: Vec<u8> = (sent..(sent + (1 << 16)).min(bytes)).map(byte_at).collect();
            stream.write_all(&piece)?;
            sent += piece.len();
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // Waits until the other side has received everything.
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    };
    let receive = || {
        let (mut stream, _) = TcpListener::bind(("0.0.0.0", STREAM_PORT))?.accept()?;
        stream.set_read_timeout(Some(30 * SILENCE))?;
        let mut buffer = vec![0; 1 << 18];
        let (mut received, mut is_exact, mut quarter) = (0, true, None);
        loop {
            let size = stream.read(&mut buffer)?;
            if size == 0 {
                break;
            }
            is_exact &= buffer[..size].iter().zip(received..).all(|(byte, at)| *byte == byte_at(at));
            received += size;
            if received >= bytes / 4 {
                quarter.get_or_insert_with(|| (clock(), received));
            }
        }
        let (since, before) = quarter.unwrap_or_else(|| (clock(), received));
        let bytes_per_sec = (received - before) as f64 / since.elapsed().as_secs_f64();
        Ok(TcpTransfer { bytes_per_sec, is_exact: is_exact && received == bytes })
    };
    both(link, send, receive).map(|((), transfer)| transfer)
}

/// Returns the byte at a position, such that shifted, lost or repeated bytes are detected.
fn byte_at(position: usize) -> u8 {
    let mixed = (position as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8
}
