//! Packet trains on the socket of a connection: they are sent at once, bypassing the stack and its pacing,
//! and are filtered from the received datagrams before the stack sees them (format: [`wire::frames::probe`]).
//! So they pass the same firewalls and address translation as the connection.
//!
//! Arrival times are taken when the socket is read, not by the kernel: packets that were read together have
//! the same time. Outside this module: permission and budget of trains, evaluation of arrivals.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use quinn::udp::Transmit;
use quinn::{AsyncUdpSocket, Connection};
use tokio::sync::Notify;
use tokio::time::timeout;
use wire::frames::probe::{HEADER_BYTES, MAX_PACKETS, ProbeArrival, ProbePacket};
use wire::{Error, ErrorKind, Result};

use super::socket::{MAX_BATCH_BYTES, PacedSocket};
use crate::clock::now;

/// Most trains that one socket listens for at a time.
pub const MAX_LISTENED: usize = 64;
/// Largest packet of a train, UDP payload in bytes: larger packets do not improve the measurement.
const MAX_TRAIN_PACKET_BYTES: u16 = 1472;
/// Silence after which a train is over.
const QUIET: Duration = Duration::from_millis(250);
/// Longest time to receive a train, from the beginning of listening.
pub const TRAIN_WITHIN: Duration = Duration::from_secs(3);

/// Sends trains to the peer of a connection, and receives trains from it.
#[derive(Clone, Debug)]
pub struct Prober {
    socket: Arc<PacedSocket>,
    connection: Connection,
    /// Address of the peer when the connection began. A claimed new address gets no train: the stack limits
    /// what it sends to unvalidated addresses, but trains would bypass that limit.
    peer: SocketAddr,
}

impl Prober {
    pub(super) fn new(socket: &Arc<PacedSocket>, connection: &Connection) -> Self {
        let peer = connection.remote_address();
        Self { socket: Arc::clone(socket), connection: connection.clone(), peer }
    }

    /// Address of the peer when the connection began.
    pub(super) fn first_peer(&self) -> SocketAddr {
        self.peer
    }

    /// Address that trains go to and come from.
    ///
    /// # Errors
    /// `Busy` when the peer has moved to another address.
    fn peer(&self) -> Result<SocketAddr> {
        if self.connection.remote_address() == self.peer {
            return Ok(self.peer);
        }
        Err(Error::new(ErrorKind::Busy, "the peer has moved to another address; connect again"))
    }

    /// Size of a train's packets, UDP payload in bytes: the discovered MTU.
    #[must_use]
    pub fn packet_bytes(&self) -> u16 {
        self.connection.stats().path.current_mtu.min(MAX_TRAIN_PACKET_BYTES)
    }

    /// Sends a train as fast as the socket accepts it; returns the number of packets sent.
    ///
    /// # Errors
    /// The operating system refused; `Busy` when the peer has moved.
    ///
    /// # Cancel safety
    /// Dropping the future ends the train early.
    pub async fn send(&self, train: u64, packets: u16) -> Result<u16> {
        let size = usize::from(self.packet_bytes()).max(HEADER_BYTES);
        let most = self.socket.max_transmit_segments().min(MAX_BATCH_BYTES / size).max(1);
        let mut numbers = 0..packets.min(MAX_PACKETS);
        while !numbers.is_empty() {
            let batch = numbers.by_ref().take(most);
            let mut contents = Vec::with_capacity(most * size);
            for number in batch {
                let sent_micros = self.socket.arrivals.clock.micros();
                contents.extend_from_slice(&ProbePacket { train, number, sent_micros }.header());
                contents.resize(contents.len() - HEADER_BYTES + size, 0);
            }
            let transmit = Transmit {
                destination: self.peer()?,
                ecn: None,
                contents: &contents,
                segment_size: (contents.len() > size).then_some(size),
                src_ip: self.connection.local_ip(),
            };
            self.send_batch(&transmit).await?;
        }
        Ok(packets)
    }

    async fn send_batch(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut poller = Arc::clone(&self.socket).plain_poller();
        loop {
            match self.socket.try_send(transmit) {
                Err(full) if full.kind() == io::ErrorKind::WouldBlock => {
                    poll_fn(|cx| poller.as_mut().poll_writable(cx)).await?;
                }
                sent => return sent,
            }
        }
    }

    /// Listens for the train with this number.
    ///
    /// # Errors
    /// `Busy` at the limit of trains or when the peer has moved, `Invalid` for a train that is already
    /// listened for.
    pub fn listen(&self, train: u64) -> Result<TrainListener> {
        let arrivals = Arc::clone(&self.socket.arrivals);
        let of = arrivals.listen(train, self.peer()?)?;
        Ok(TrainListener { arrivals, of })
    }
}

/// Listener for one train, until dropped.
pub struct TrainListener {
    arrivals: Arc<Arrivals>,
    of: Arc<ExpectedTrain>,
}

impl TrainListener {
    /// Waits until `expected` packets have arrived, none has arrived within `first_within`, or no more have
    /// arrived for a while; returns the arrivals in order.
    ///
    /// # Cancel safety
    /// Safe: arrivals are kept.
    pub async fn arrived(&self, expected: u16, first_within: Duration) -> Vec<ProbeArrival> {
        let waiting = async {
            let mut silence = first_within;
            while self.of.count() < usize::from(expected) {
                if timeout(silence, self.of.changed.notified()).await.is_err() {
                    break;
                }
                silence = QUIET;
            }
        };
        drop(timeout(TRAIN_WITHIN, waiting).await);
        self.of.packets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for TrainListener {
    fn drop(&mut self) {
        self.arrivals.trains().retain(|train| !Arc::ptr_eq(train, &self.of));
    }
}

/// Expected train with its arrivals.
#[derive(Debug)]
struct ExpectedTrain {
    train: u64,
    from: SocketAddr,
    packets: Mutex<Vec<ProbeArrival>>,
    changed: Notify,
}

impl ExpectedTrain {
    fn count(&self) -> usize {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Trains that one socket listens for.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    trains: Mutex<Vec<Arc<ExpectedTrain>>>,
    clock: SteadyClock,
}

impl Arrivals {
    fn trains(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ExpectedTrain>>> {
        self.trains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, train: u64, from: SocketAddr) -> Result<Arc<ExpectedTrain>> {
        let mut trains = self.trains();
        if trains.len() >= MAX_LISTENED {
            let what = format!("expected at most {MAX_LISTENED} trains at a time, found more");
            return Err(Error::new(ErrorKind::Busy, what));
        }
        if trains.iter().any(|known| known.train == train) {
            return Err(Error::invalid("a train with this number is already expected"));
        }
        let of = ExpectedTrain { train, from, packets: Mutex::default(), changed: Notify::new() };
        let of = Arc::new(of);
        trains.push(Arc::clone(&of));
        Ok(of)
    }

    /// Current time for arrivals, microseconds.
    pub(super) fn now_micros(&self) -> u64 {
        self.clock.micros()
    }

    /// Handles a datagram that does not belong to QUIC; false when it belongs to no expected train.
    pub(super) fn note(&self, datagram: &[u8], from: SocketAddr, received_micros: u64) -> bool {
        let Some(ProbePacket { train, number, sent_micros }) = ProbePacket::read(datagram) else {
            return false;
        };
        let trains = self.trains();
        let Some(of) = trains.iter().find(|of| of.train == train && of.from == from) else { return false };
        let size_bytes = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
        let mut packets = of.packets.lock().unwrap_or_else(PoisonError::into_inner);
        // Duplicates count once.
        let is_new =
            packets.len() < usize::from(MAX_PACKETS) && packets.iter().all(|known| known.number != number);
        if is_new {
            packets.push(ProbeArrival { number, size_bytes, sent_micros, received_micros });
            of.changed.notify_one();
        }
        is_new
    }
}

/// Clock that starts at the system time and never runs backwards.
#[derive(Debug)]
struct SteadyClock {
    began: Instant,
    began_at: Duration,
}

impl Default for SteadyClock {
    fn default() -> Self {
        let began_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { began: now(), began_at }
    }
}

impl SteadyClock {
    fn micros(&self) -> u64 {
        let at = self.began_at + now().saturating_duration_since(self.began);
        u64::try_from(at.as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 7], port))
    }

    #[test]
    fn only_what_is_listened_for_counts_and_only_once() {
        let arrivals = Arrivals::default();
        let of = arrivals.listen(7, address(1)).unwrap();
        let packet = |train, number| ProbePacket { train, number, sent_micros: 5 }.header();
        for (header, from, counts) in [
            (packet(7, 0), address(1), true),
            (packet(7, 0), address(1), false),
            (packet(7, 2), address(2), false),
            (packet(8, 1), address(1), false),
            ([0; HEADER_BYTES], address(1), false),
        ] {
            assert_eq!(arrivals.note(&header, from, 9), counts, "{header:?} from {from}");
        }
        assert_eq!(of.count(), 1);
        assert!(arrivals.listen(7, address(1)).is_err(), "it is listened for");
    }

    #[test]
    fn trains_that_are_listened_for_are_bounded() {
        let arrivals = Arc::new(Arrivals::default());
        let all: Vec<TrainListener> = (0..MAX_LISTENED as u64)
            .map(|train| TrainListener {
                of: arrivals.listen(train, address(1)).unwrap(),
                arrivals: Arc::clone(&arrivals),
            })
            .collect();
        assert_eq!(arrivals.listen(1000, address(1)).unwrap_err().kind(), ErrorKind::Busy);
        drop(all);
        assert!(arrivals.listen(1000, address(1)).is_ok());
    }
}
