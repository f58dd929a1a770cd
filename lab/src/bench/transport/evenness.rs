//! Evenness of arriving packets: their number in each millisecond, counted by a socket that receives every packet of this
//! network namespace (root only). Times are taken when a packet is read, so a busy machine adds bursts.

use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use array::{Error, Result};
use socket2::{Domain, Protocol, Socket, Type};

use super::super::report::{Better, Case};
use super::super::wall_clock;
use super::flows::{TransportScene, rounded};
use super::sharing::Endless;

/// Measured rates as shares of the link's: 20, 60 and 400 Mb/s of 1 Gb/s.
const SHARES: [f64; 3] = [0.02, 0.06, 0.4];
/// Duration of a flow before the measurement, and of the measurement.
const SETTLE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(3);
const BIN_SECS: f64 = 1e-3;
/// Kind of packets that are shown (`ETH_P_IP`), in the order of the network.
const IP: u16 = 0x0800_u16.to_be();
/// Size of the kernel's buffer of packets that were not read yet, bytes.
const BUFFER_BYTES: usize = 32 << 20;
/// The watch looks this often whether it is over.
const PATIENCE: Duration = Duration::from_millis(50);
/// Bytes of a packet that are looked at: an IP header without options, with the places of the protocol and of the sender,
/// and the place of the destination port in UDP's header.
const HEADER_BYTES: usize = 24;
const PROTOCOL: usize = 9;
const UDP: u8 = 17;
const SENDER: std::ops::Range<usize> = 12..16;
const PORT: [usize; 2] = [22, 23];

/// A datagram that arrived.
struct DatagramArrival {
    /// Since the watch began.
    at_secs: f64,
    /// The port that it is for.
    port: u16,
}

/// Distribution of packets over milliseconds.
pub(super) struct PacketSpread {
    /// Packets in each on average.
    pub(super) mean: f64,
    /// Standard deviation over mean.
    pub(super) variation: f64,
}

impl PacketSpread {
    fn of(bins: &[u32]) -> Self {
        let count = bins.len().max(1) as f64;
        let mean = bins.iter().map(|bin| f64::from(*bin)).sum::<f64>() / count;
        let square = bins.iter().map(|bin| (f64::from(*bin) - mean).powi(2)).sum::<f64>() / count;
        Self { mean, variation: square.sqrt() / mean.max(f64::MIN_POSITIVE) }
    }

    /// The least that whole packets of this mean can vary: each bin has the whole number above it or below.
    pub(super) fn least_variation(&self) -> f64 {
        let part = self.mean.fract();
        (part * (1.0 - part)).sqrt() / self.mean.max(f64::MIN_POSITIVE)
    }
}

pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let rate = scene.options.link.rate;
    let mut cases = Vec::new();
    for share in SHARES {
        let name = format!("packets per millisecond, rate at {} % of the link, variation", share * 100.0);
        let case = |values| Case::measured(&name, "1", Better::Lower, values);
        let Some(rate) = rate else {
            cases.push(Case { why: "the link's rate is not known".to_owned(), ..case(Vec::new()) });
            continue;
        };
        let choice = format!("rate={:.3}Mb/s", share * rate * 8e-6);
        let flow = Endless::start(scene, &scene.ready, &choice).await?;
        tokio::time::sleep(SETTLE).await;
        let watched = watch(scene.side.address).await;
        drop(flow);
        cases.push(match watched.and_then(|arrivals| spread(&arrivals, |_| true)) {
            Ok(PacketSpread { mean, variation }) => {
                case(vec![variation]).with("asked", share * rate).with("packets_per_bin", mean)
            }
            Err(error) => Case { why: error.to_string(), ..case(Vec::new()) },
        });
    }
    Ok(cases)
}

/// Measures the spread of the packets from `sender` for each of `ports`, all at the same time, from now on.
pub(super) async fn spreads(sender: IpAddr, ports: &[u16]) -> Result<Vec<PacketSpread>> {
    let arrivals = watch(sender).await?;
    ports.iter().map(|port| spread(&arrivals, |arrival| arrival.port == *port)).collect()
}

/// Datagrams from `sender`, from now on.
async fn watch(sender: IpAddr) -> Result<Vec<DatagramArrival>> {
    let IpAddr::V4(sender) = sender else { return Err(Error::unsupported("expected an IPv4 address")) };
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(i32::from(IP))))?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let ends = Arc::<AtomicBool>::default();
    let is_over = Arc::clone(&ends);
    let watching = thread::Builder::new()
        .name("evenness".into())
        .spawn(move || arrivals(&socket, sender.octets(), &is_over))?;
    tokio::time::sleep(LOOK).await;
    ends.store(true, Ordering::Relaxed);
    let arrivals = tokio::task::spawn_blocking(move || watching.join()).await;
    let arrivals = arrivals.map(|joined| joined.map_err(|_| Error::internal("the watch ended in a panic")));
    arrivals.map_err(|e| Error::internal(e.to_string()))??
}

fn arrivals(socket: &Socket, sender: [u8; 4], is_over: &AtomicBool) -> Result<Vec<DatagramArrival>> {
    let start = wall_clock::now();
    let mut header = [0; HEADER_BYTES];
    let mut socket = socket;
    let mut found = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        match socket.read(&mut header) {
            Ok(count) if count == HEADER_BYTES => {
                let at_secs = start.elapsed().as_secs_f64();
                if header[SENDER] == sender && header[PROTOCOL] == UDP {
                    found.push(DatagramArrival {
                        at_secs,
                        port: u16::from_be_bytes(PORT.map(|at| header[at])),
                    });
                }
            }
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Distribution of the `wanted` packets from the first of all packets to the last.
fn spread(arrivals: &[DatagramArrival], wanted: impl Fn(&DatagramArrival) -> bool) -> Result<PacketSpread> {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
        return Err(Error::internal("expected packets, found none"));
    };
    let place = |arrival: &DatagramArrival| {
        usize::try_from(rounded(((arrival.at_secs - first.at_secs) / BIN_SECS).floor())).unwrap_or(usize::MAX)
    };
    let mut bins = vec![0; place(last).saturating_add(1)];
    for arrival in arrivals.iter().filter(|arrival| wanted(arrival)) {
        bins.get_mut(place(arrival)).into_iter().for_each(|bin| *bin += 1);
    }
    if bins.iter().all(|bin| *bin == 0) {
        return Err(Error::internal("expected packets of every client, found none of one"));
    }
    Ok(PacketSpread::of(&bins))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(places: impl Iterator<Item = f64>, port: u16) -> Vec<DatagramArrival> {
        places.map(|at_secs| DatagramArrival { at_secs, port }).collect()
    }

    #[test]
    fn even_packets_vary_little_and_bursts_much() {
        let even = at((0..10_000).map(|n| f64::from(n) * 0.25e-3 + 1e-5), 1);
        let found = spread(&even, |_| true).unwrap();
        assert!(
            (found.mean - 4.0).abs() < 0.01 && found.variation < 0.1,
            "{} {}",
            found.mean,
            found.variation
        );
        let bursts = at((0..10_000).map(|n| f64::from(n / 40) * 10e-3 + 1e-5), 1);
        let found = spread(&bursts, |_| true).unwrap();
        assert!((found.mean - 4.0).abs() < 0.1, "{}", found.mean);
        assert!((found.variation - 3.0).abs() < 0.05, "{}", found.variation);
        assert!(spread(&[], |_| true).is_err());
    }

    #[test]
    fn each_port_is_looked_at_by_itself() {
        // A packet in every fourth millisecond is as even as it can be; the other one's come eight at a time.
        let slow = at((0..1_000).map(|n| f64::from(n) * 4e-3 + 1e-5), 1);
        let bursts = at((0..1_000).map(|n| f64::from(n / 8) * 32e-3 + 1e-5), 2);
        let mut both: Vec<DatagramArrival> = slow.into_iter().chain(bursts).collect();
        both.sort_by(|a, b| a.at_secs.total_cmp(&b.at_secs));
        let of = |port| spread(&both, |arrival| arrival.port == port).unwrap();
        let (slow, bursts) = (of(1), of(2));
        assert!((slow.mean - 0.25).abs() < 0.01 && (bursts.mean - 0.25).abs() < 0.01);
        assert!((slow.variation / slow.least_variation() - 1.0).abs() < 0.05, "{}", slow.variation);
        assert!(bursts.variation > 3.0 * slow.variation, "{} {}", bursts.variation, slow.variation);
        assert!(spread(&both, |arrival| arrival.port == 3).is_err());
    }
}
