//! Packet trains beside a connection: they leave its socket at once, past the stack and its pacing, and are picked out of what
//! arrives there before the stack sees it (what they look like: [`wire::frames::probe`]). So they meet the firewalls and the address
//! translation that the connection has passed.
//!
//! Arrivals are timed when the socket is read, not by the kernel: packets that were read together have one time. Not here:
//! who may ask for a train, how much may be sent, what arrivals say.

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

/// Trains that are listened for at one socket at a time.
pub const MAX_LISTENED: usize = 64;
/// Larger packets would bring nothing but bytes, payload of UDP.
const MAX_TRAIN_PACKET_BYTES: u16 = 1472;
/// After this silence a train is over.
const QUIET: Duration = Duration::from_millis(250);
/// No train takes longer, from when it is listened for.
pub const TRAIN_WITHIN: Duration = Duration::from_secs(3);

/// Sends trains to the other end of a connection, and listens for those from there.
#[derive(Clone, Debug)]
pub struct Prober {
    socket: Arc<PacedSocket>,
    connection: Connection,
    /// Address of the other side when the connection began. An address that somebody only claims gets no train: the stack
    /// limits what it sends there, but trains would not.
    peer: SocketAddr,
}

impl Prober {
    pub(super) fn new(socket: &Arc<PacedSocket>, connection: &Connection) -> Self {
        let peer = connection.remote_address();
        Self { socket: Arc::clone(socket), connection: connection.clone(), peer }
    }

    /// Address of the other side when the connection began.
    pub(super) fn first_peer(&self) -> SocketAddr {
        self.peer
    }

    /// Address that trains go to and come from.
    ///
    /// # Errors
    /// `Busy` where the other side is somewhere else now.
    fn peer(&self) -> Result<SocketAddr> {
        if self.connection.remote_address() == self.peer {
            return Ok(self.peer);
        }
        Err(Error::new(
            ErrorKind::Busy,
            "expected the other side where the connection began, found it moved: connect anew",
        ))
    }

    /// Size of a train's packets, payload of UDP: what the path was found to carry.
    #[must_use]
    pub fn packet_bytes(&self) -> u16 {
        self.connection.stats().path.current_mtu.min(MAX_TRAIN_PACKET_BYTES)
    }

    /// Sends a train as fast as the socket takes it; gives how many packets left.
    ///
    /// # Errors
    /// The operating system refused; `Busy` for a side that has moved.
    ///
    /// # Cancel safety
    /// Dropping it ends the train early.
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

    /// Listens for a train of this number.
    ///
    /// # Errors
    /// `Busy` when too many are listened for or the other side has moved, `Invalid` when this one is already.
    pub fn listen(&self, train: u64) -> Result<TrainListener> {
        let arrivals = Arc::clone(&self.socket.arrivals);
        let of = arrivals.listen(train, self.peer()?)?;
        Ok(TrainListener { arrivals, of })
    }
}

/// A train that is listened for until this is dropped.
pub struct TrainListener {
    arrivals: Arc<Arrivals>,
    of: Arc<ExpectedTrain>,
}

impl TrainListener {
    /// Waits until `expected` packets have arrived, none has come `first_within` this time, or no more has for a while;
    /// gives those that did, in order of arrival.
    ///
    /// # Cancel safety
    /// Safe: what has arrived stays.
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

/// A train, and what has arrived of it.
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

/// Trains that are listened for at one socket.
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
            return Err(Error::invalid("expected a new train, found one that is listened for"));
        }
        let of = ExpectedTrain { train, from, packets: Mutex::default(), changed: Notify::new() };
        let of = Arc::new(of);
        trains.push(Arc::clone(&of));
        Ok(of)
    }

    /// When something was read now.
    pub(super) fn now_micros(&self) -> u64 {
        self.clock.micros()
    }

    /// A datagram that is not QUIC's was read; false where nobody listens for it.
    pub(super) fn note(&self, datagram: &[u8], from: SocketAddr, received_micros: u64) -> bool {
        let Some(ProbePacket { train, number, sent_micros }) = ProbePacket::read(datagram) else {
            return false;
        };
        let trains = self.trains();
        let Some(of) = trains.iter().find(|of| of.train == train && of.from == from) else { return false };
        let size_bytes = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
        let mut packets = of.packets.lock().unwrap_or_else(PoisonError::into_inner);
        // One that comes twice counts once.
        let is_new =
            packets.len() < usize::from(MAX_PACKETS) && packets.iter().all(|known| known.number != number);
        if is_new {
            packets.push(ProbeArrival { number, size_bytes, sent_micros, received_micros });
            of.changed.notify_one();
        }
        is_new
    }
}

/// The time of day as it was at the beginning, and what has gone by since: never set back.
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
