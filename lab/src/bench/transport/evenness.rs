//! How even packets arrive: how many in each millisecond, as a socket sees them that is shown every packet of this
//! network namespace (root only). Times are taken when a packet is read, so a busy machine makes its own bursts.

use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use array::{Error, Result};
use socket2::{Domain, Protocol, Socket, Type};

use super::super::report::{Better, Case};
use super::flows::{Scene, rounded};
use super::sharing::Endless;

/// Rates that are looked at, shares of the link's: 20, 60 and 400 Mb/s of 1 Gb/s.
const SHARES: [f64; 3] = [0.02, 0.06, 0.4];
/// A flow has so long before, and so long at the watch.
const SETTLE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(3);
const BIN_SECS: f64 = 1e-3;
/// Kind of packets that are shown (`ETH_P_IP`), in the order of the network.
const IP: u16 = 0x0800_u16.to_be();
/// What the kernel keeps until it is read, bytes.
const BUFFER_BYTES: usize = 32 << 20;
/// The watch looks this often whether it is over.
const PATIENCE: Duration = Duration::from_millis(50);
/// An IP header without options, and where it names the sender.
const HEADER_BYTES: usize = 20;
const SENDER: std::ops::Range<usize> = 12..16;

pub(super) async fn run(scene: &Scene<'_>) -> Result<Vec<Case>> {
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
        cases.push(match watched {
            Ok(bins) => {
                let (mean, variation) = spread(&bins);
                case(vec![variation]).with("asked", share * rate).with("packets_per_bin", mean)
            }
            Err(error) => Case { why: error.to_string(), ..case(Vec::new()) },
        });
    }
    Ok(cases)
}

/// Packets from `sender` in each millisecond.
async fn watch(sender: IpAddr) -> Result<Vec<u32>> {
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
    binned(&arrivals.map_err(|e| Error::internal(e.to_string()))???)
}

/// Seconds since the watch began, of each packet.
fn arrivals(socket: &Socket, sender: [u8; 4], is_over: &AtomicBool) -> Result<Vec<f64>> {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = Instant::now();
    let mut header = [0; HEADER_BYTES];
    let mut socket = socket;
    let mut found = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        match socket.read(&mut header) {
            Ok(count) if count == HEADER_BYTES => {
                let at = start.elapsed().as_secs_f64();
                if header[SENDER] == sender {
                    found.push(at);
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

fn binned(arrivals: &[f64]) -> Result<Vec<u32>> {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
        return Err(Error::internal("expected packets, found none"));
    };
    let place = |at: f64| usize::try_from(rounded(((at - first) / BIN_SECS).floor())).unwrap_or(usize::MAX);
    let mut bins = vec![0; place(*last).saturating_add(1)];
    arrivals.iter().for_each(|at| bins.get_mut(place(*at)).into_iter().for_each(|bin| *bin += 1));
    Ok(bins)
}

/// Mean, and standard deviation over mean.
fn spread(bins: &[u32]) -> (f64, f64) {
    let count = bins.len().max(1) as f64;
    let mean = bins.iter().map(|bin| f64::from(*bin)).sum::<f64>() / count;
    let square = bins.iter().map(|bin| (f64::from(*bin) - mean).powi(2)).sum::<f64>() / count;
    (mean, square.sqrt() / mean.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_packets_vary_little_and_bursts_much() {
        let even: Vec<f64> = (0..10_000).map(|n| f64::from(n) * 0.25e-3 + 1e-5).collect();
        let (mean, variation) = spread(&binned(&even).unwrap());
        assert!((mean - 4.0).abs() < 0.01 && variation < 0.1, "{mean} {variation}");
        let bursts: Vec<f64> = (0..10_000).map(|n| f64::from(n / 40) * 10e-3 + 1e-5).collect();
        let (mean, variation) = spread(&binned(&bursts).unwrap());
        assert!((mean - 4.0).abs() < 0.1 && (variation - 3.0).abs() < 0.05, "{mean} {variation}");
        assert!(binned(&[]).is_err());
    }
}
