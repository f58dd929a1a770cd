//! Probes a path: a client asks a server for packet trains in both directions, and both sides record their arrival.
//!
//! Trains accompany a QUIC connection that the server has accepted. So packets are sent only to a client that has
//! presented the token and responded from its address, and a request for a train needs the same authorization as any
//! other request. The total cost of all trains is limited by [`plan::ProbeBudget`] on both sides; a bottleneck carries one
//! train at a time. The format of trains: [`wire::frames::probe`].

use std::net::IpAddr;
use std::time::Duration;

use array::{Error, Priority, Result, Urgency};
use bytes::Bytes;
use link::quic::Prober;
use link::{ClientHandle, Flow, OpStream};
use plan::Direction;
use plan::train::{PacketTrain, TRAINS, TrainArrival, next_length};
use wire::frames::probe::{self, Probe, ProbeDirection, ProbeResult};
use wire::ops;

use super::Paths;
use crate::random::random_bytes;

/// Timeout for the first packet of a train after its end was announced.
const FIRST_PACKET_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of consecutive trains that fail before a probe ends: nothing arrives, or the longest train is too
/// short.
const MAX_FAILED_TRAINS: u32 = 4;

/// Totals of a probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeTotals {
    /// Number of trains that were recorded.
    pub(super) trains: u32,
    /// Number of bytes in all requested trains.
    pub(super) sent_bytes: u64,
}

/// Probes both directions, and records each train at once; `sum` contains the progress even after an error.
///
/// # Errors
/// `Unsupported` without QUIC or by a server that does not support probes, `Busy` if the budget is spent or another
/// probe is in progress.
///
/// # Cancel safety
/// Dropping the future ends the probe; measurements made until then are remembered.
pub(super) async fn probe(
    handle: &ClientHandle,
    flow: &dyn Flow,
    paths: &Paths,
    sum: &mut ProbeTotals,
) -> Result<()> {
    let other = || Error::unsupported("packet trains need a QUIC connection; connect with `quic`");
    let (prober, peer) = flow.prober().zip(flow.peer()).ok_or_else(other)?;
    handle.welcomed().await?;
    let _alone = paths.begin_probe(peer.ip()).await?;
    let probing = PathProbe { handle, prober, paths, host: peer.ip() };
    for direction in [Direction::Down, Direction::Up] {
        probing.trains(direction, sum).await?;
    }
    Ok(())
}

struct PathProbe<'a> {
    handle: &'a ClientHandle,
    prober: &'a Prober,
    paths: &'a Paths,
    host: IpAddr,
}

impl PathProbe<'_> {
    /// Sends trains in one direction: longer ones until their duration suffices, then the planned number.
    async fn trains(&self, direction: Direction, sum: &mut ProbeTotals) -> Result<()> {
        let (mut before, mut recorded, mut failed) = (None, 0, 0);
        while recorded < TRAINS && failed < MAX_FAILED_TRAINS {
            let packets = next_length(before.as_ref());
            let bytes = u64::from(packets) * u64::from(self.prober.packet_bytes());
            self.paths.spend(self.host, bytes).await?;
            sum.sent_bytes += bytes;
            let train = match direction {
                Direction::Down => self.down(packets).await?,
                Direction::Up => self.up(packets).await?,
            };
            let has_failed = train.arrivals.is_empty() || train.is_longest() && !train.counts();
            failed = if has_failed { failed + 1 } else { 0 };
            if train.counts() {
                self.paths.record(self.host, train.measurements(direction));
                (recorded, sum.trains) = (recorded + 1, sum.trains + 1);
            }
            tokio::time::sleep(train.pause()).await;
            before = Some(train).filter(|train| !train.arrivals.is_empty());
        }
        Ok(())
    }

    async fn ask(&self, direction: ProbeDirection, train: u64, packets: u16) -> Result<OpStream> {
        let parameters = Probe { direction, train, packets }.encode();
        self.handle.request(ops::PROBE, parameters, Urgency::of(Priority::NORMAL)).await
    }

    async fn down(&self, packets: u16) -> Result<PacketTrain> {
        let train = random_train()?;
        let listening = self.prober.listen(train)?;
        let replies = self.ask(ProbeDirection::Down, train, packets).await?;
        let packets = ProbeResult::decode(replies.with_bulk_up_to(0).only_item().await?.body)?.sent;
        Ok(arrived(packets, &listening.arrived(packets, FIRST_PACKET_TIMEOUT).await))
    }

    async fn up(&self, packets: u16) -> Result<PacketTrain> {
        let train = random_train()?;
        let mut replies = self.ask(ProbeDirection::Up, train, packets).await?.with_bulk_up_to(0);
        next_body(&mut replies).await?;
        let packets = self.prober.send(train, packets).await?;
        let arrivals = ProbeResult::decode(next_body(&mut replies).await?)?.arrivals;
        Ok(arrived(packets, &arrivals))
    }
}

async fn next_body(replies: &mut OpStream) -> Result<Bytes> {
    let none = || Error::corrupt("expected another item about a train, found the end");
    Ok(replies.next_item().await.ok_or_else(none)??.body)
}

fn random_train() -> Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}

/// Describes a train of `packets` packets, of which these arrived.
#[must_use]
pub fn arrived(packets: u16, arrivals: &[probe::ProbeArrival]) -> PacketTrain {
    let arrival = |arrival: &probe::ProbeArrival| TrainArrival {
        number: arrival.number,
        size_bytes: arrival.size_bytes,
        sent: Duration::from_micros(arrival.sent_micros),
        received: Duration::from_micros(arrival.received_micros),
    };
    PacketTrain { packets, arrivals: arrivals.iter().map(arrival).collect() }
}
