//! `probe`: a client probes the path to this server by packet trains, and the server takes part; see
//! [`client::paths::probe`].

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use client::paths::probe::arrived;
use link::quic::TRAIN_WITHIN;
use plan::Direction;
use wire::frames::probe::{Probe, ProbeDirection, ProbeResult};
use wire::ops;

use super::{BeginOutcome, Handler, OperationCall};

/// Answers `probe`: sends trains to the client, and reports the arrival of the client's trains.
pub struct ProbeHandler;

impl Handler for ProbeHandler {
    type Work = Probe;

    fn name(&self) -> &'static str {
        ops::PROBE
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Probe>> {
        let invalid = |error: Error| Error::new(ErrorKind::Invalid, error.message());
        Probe::decode(parameters).map(BeginOutcome::Work).map_err(invalid)
    }

    async fn run(&self, asked: Probe, call: &OperationCall) -> Result<()> {
        let flow = call.flow.as_deref();
        let found = flow.and_then(|flow| flow.prober().zip(flow.peer()));
        let other = "packet trains need a QUIC connection; connect with `quic`";
        let (prober, peer) = found.ok_or_else(|| Error::unsupported(other))?;
        let Probe { direction, train, packets } = asked;
        let paths = &call.node.paths;
        let _turn = paths.take_turn(peer.ip())?;
        paths.spend(peer.ip(), u64::from(packets) * u64::from(prober.packet_bytes())).await?;
        let send = async |probed: ProbeResult| call.operation.item(probed.encode(), Bytes::new()).await;
        match direction {
            ProbeDirection::Down => {
                let sent = prober.send(train, packets).await?;
                send(ProbeResult { sent, arrivals: Vec::new() }).await
            }
            ProbeDirection::Up => {
                let listening = prober.listen(train)?;
                send(ProbeResult::default()).await?;
                let arrivals = listening.arrived(packets, TRAIN_WITHIN).await;
                let measured = arrived(packets, &arrivals);
                if measured.counts() {
                    paths.record(peer.ip(), measured.measurements(Direction::Down));
                }
                send(ProbeResult { sent: 0, arrivals }).await
            }
        }
    }
}
