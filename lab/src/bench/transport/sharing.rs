//! Several flows at a time: senders of one receiver, many clients of one port, flows that share a bottleneck.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, Result};
use futures::future::try_join_all;
use link::{Choice, ReadHandle, ReceiveGroup};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Duration, sleep};

use super::super::process::RunningProcess;
use super::super::report::{Better, Case, median, smallest_over_largest};
use super::super::wall_clock;
use super::evenness::{self, PacketSpread};
use super::flows::{TransportScene, message_server};
use super::limits::{goodput, limited};
use super::messages::{MessageClient, MessageServerReady, MessageTransport, Sent};

/// Messages of a flow without end, bytes.
const MESSAGE_BYTES: u64 = 8 << 20;
/// Share of the link's goodput that any number of streams is to reach together.
const TOGETHER: f64 = 0.95;
const MOST_STREAMS: usize = 6;
/// Share of the link's rate that the receiver is said to take, where it divides that among the streams.
const RECEIVED_SHARE: f64 = 0.95;
/// Rates of clients with own rates, as shares of the link's: 5 to 400 Mb/s of 1 Gb/s, 79 % together.
const CLIENT_SHARES: [f64; 16] =
    [0.005, 0.005, 0.005, 0.005, 0.01, 0.01, 0.01, 0.02, 0.02, 0.02, 0.02, 0.04, 0.06, 0.06, 0.1, 0.4];
/// Largest relative deviation of each from its rate.
const CLIENT_GOAL: f64 = 0.01;
/// Round trips between the starts of flows that share, until the measurement, and of the measurement.
const APART_ROUNDS: f64 = 10.0;
const SETTLE_ROUNDS: f64 = 60.0;
const LOOK_ROUNDS: f64 = 40.0;
/// Smallest share over largest.
const FAIR: f64 = 0.9;
/// Goal for cubic beside a polite flow: share of the goodput.
const KEPT: f64 = 0.45;
/// Port of iperf3's server.
const PORT: u16 = 5204;
const DEFAULT_RTT: f64 = 0.02;

/// A flow that goes on until it is dropped.
pub(super) struct Endless {
    client: MessageClient,
    arrived: Arc<AtomicU64>,
    _receiving: ReadHandle,
}

impl Endless {
    pub(super) async fn start(
        scene: &TransportScene<'_>,
        ready: &MessageServerReady,
        choice: &str,
    ) -> Result<Self> {
        let choice: Choice =
            choice.parse().map_err(|refusal: link::Refusal| Error::invalid(refusal.to_string()))?;
        Self::start_among(None, MessageTransport::Quic(choice), scene, ready).await
    }

    async fn start_among(
        group: Option<&ReceiveGroup>,
        way: MessageTransport,
        scene: &TransportScene<'_>,
        ready: &MessageServerReady,
    ) -> Result<Self> {
        let client = MessageClient::connect_among(ready, way, scene.window_bytes(), group).await?;
        let arrived = Arc::<AtomicU64>::default();
        let receiving = client.receive(u64::MAX, MESSAGE_BYTES, Arc::clone(&arrived)).await?;
        Ok(Self { client, arrived, _receiving: receiving })
    }

    fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }
}

/// Bytes per second of each flow from now on.
async fn rates(flows: &[Endless], during: Duration) -> Vec<f64> {
    let before: Vec<u64> = flows.iter().map(Endless::arrived).collect();
    let start = wall_clock::now();
    sleep(during).await;
    let secs = start.elapsed().as_secs_f64();
    flows.iter().zip(before).map(|(flow, before)| (flow.arrived() - before) as f64 / secs).collect()
}

fn rtt_secs(scene: &TransportScene<'_>) -> f64 {
    scene.options.link.rtt.unwrap_or(DEFAULT_RTT)
}

/// Durations of the measurement of flows, and of their start before it.
fn spans(scene: &TransportScene<'_>) -> (Duration, Duration) {
    let (least, during) = if scene.options.is_quick { (1.0, 3.0) } else { (3.0, 8.0) };
    (Duration::from_secs_f64(rtt_secs(scene).mul_add(20.0, least)), Duration::from_secs_f64(during))
}

/// Measures the rates that 1 to 6 streams reach together, from one sender and from two, by QUIC and by TCP, and how alike
/// they are: each by its own path, and with a rate that the receiver divides.
pub(super) async fn senders(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let (_second, ready) = message_server(&scene.side, scene.program).await?;
    let counts = if scene.options.is_quick { vec![1, MOST_STREAMS] } else { (1..=MOST_STREAMS).collect() };
    let divided =
        scene.options.link.rate.map(|rate| (", received at a named rate", Some(rate * RECEIVED_SHARE)));
    let mut cases = Vec::new();
    for (protocol, way) in
        [("auto", MessageTransport::Quic(Choice::default())), ("tcp", MessageTransport::Tcp { streams: 1 })]
    {
        for (from, servers) in
            [("one sender", vec![&scene.ready]), ("two senders", vec![&scene.ready, &ready])]
        {
            for &count in counts.iter().filter(|count| **count >= servers.len()) {
                for (how, received) in [("", None)].into_iter().chain(divided) {
                    let servers = servers.iter().copied().cycle().take(count);
                    let name = format!("{protocol}, streams from {from}{how}, together: {count}");
                    cases.push(
                        rate_of_streams(scene, &name, servers, way, received).await?.with("streams", count),
                    );
                }
            }
        }
    }
    Ok(cases)
}

/// Measures the rate of one stream from each of `servers` together, once they have settled. `received` is the rate that
/// they share, bytes per second, where one is named.
async fn rate_of_streams<'a>(
    scene: &TransportScene<'_>,
    name: &str,
    servers: impl Iterator<Item = &'a MessageServerReady>,
    way: MessageTransport,
    received: Option<f64>,
) -> Result<Case> {
    let (before, during) = spans(scene);
    let group = received.map(ReceiveGroup::new);
    let starting = servers.map(|ready| Endless::start_among(group.as_ref(), way, scene, ready));
    let flows = try_join_all(starting).await?;
    sleep(before).await;
    let shares = rates(&flows, during).await;
    let fair_shares = smallest_over_largest(&shares);
    let case = Case::measured(name, "B/s", Better::Higher, vec![shares.iter().sum()])
        .with("settled_secs", before.as_secs_f64())
        .with("smallest_over_largest", fair_shares)
        .with("shares", shares);
    let mut case = limited(scene, case);
    if let Some(rate) = received {
        case = case.with("receive_rate", rate);
        if case.limit.is_none_or(|limit| rate < limit) {
            case = case.limited(rate, "what the receiver is said to take");
        }
    }
    Ok(match goodput(&scene.options.link) {
        Some(goodput) => case.aiming(TOGETHER * goodput),
        None => case,
    })
}

/// One port, 16 clients with rates of their own: the one that is furthest from it, on the wire; and how bursty each is
/// beside all others.
pub(super) async fn clients(scene: &TransportScene<'_>) -> Result<Case> {
    let name = "16 clients with own rates at one port, furthest from its rate on the wire";
    let Some(rate) = scene.options.link.rate else {
        let case = Case::measured(name, "1", Better::Lower, Vec::new());
        return Ok(Case { why: "the link's rate is not known".to_owned(), ..case });
    };
    let asked = CLIENT_SHARES.map(|share| share * rate);
    let choices = asked.map(|rate| format!("rate={:.3}Mb/s", rate * 8e-6));
    let flows =
        try_join_all(choices.iter().map(|choice| Endless::start(scene, &scene.ready, choice))).await?;
    let (before, during) = spans(scene);
    sleep(before).await;
    let first = sent(&flows).await?;
    sleep(during).await;
    let last = sent(&flows).await?;
    let wire: Vec<f64> = first
        .iter()
        .zip(&last)
        .map(|(first, last)| (last.bytes - first.bytes) as f64 / (last.at_secs - first.at_secs))
        .collect();
    let furthest = wire.iter().zip(asked).map(|(wire, asked)| (wire / asked - 1.0).abs()).fold(0.0, f64::max);
    let packets: u64 = last.iter().map(|sent| sent.packets).sum();
    let lost: u64 = last.iter().map(|sent| sent.lost_packets).sum();
    let case = Case::measured(name, "1", Better::Lower, vec![furthest])
        .with("asked", asked.to_vec())
        .with("wire", wire)
        .with("lost_share", lost as f64 / packets.max(1) as f64)
        .aiming(CLIENT_GOAL);
    // Afterwards, because watching takes processor time too.
    Ok(match spreads(scene, &last).await {
        Ok(spreads) => bursty(case, &spreads),
        Err(error) => Case { why: format!("how even packets come: {error}"), ..case },
    })
}

/// Measures the distribution of each client's packets over milliseconds, from now on.
async fn spreads(scene: &TransportScene<'_>, sent: &[Sent]) -> Result<Vec<PacketSpread>> {
    let ports: Option<Vec<u16>> = sent.iter().map(|sent| Some(sent.peer?.port())).collect();
    let ports = ports.ok_or_else(|| Error::internal("expected each client's address, found none"))?;
    evenness::spreads(scene.side.address, &ports).await
}

/// Adds variations, in the order of the rates that are asked. One that is small has few packets in a bin, and varies by
/// that: what counts is how far each is beyond the most even one.
fn bursty(case: Case, spreads: &[PacketSpread]) -> Case {
    let of = |figure: fn(&PacketSpread) -> f64| spreads.iter().map(figure).collect::<Vec<_>>();
    let mut beyond = of(|spread| spread.variation - spread.least_variation());
    let middle = median(&mut beyond);
    case.with("packets_per_bin", of(|spread| spread.mean))
        .with("variation", of(|spread| spread.variation))
        .with("least_variation", of(PacketSpread::least_variation))
        .with("beyond_least_median", middle)
        .with("beyond_least_furthest", beyond.last().copied())
}

async fn sent(flows: &[Endless]) -> Result<Vec<Sent>> {
    try_join_all(flows.iter().map(|flow| flow.client.sent())).await
}

/// Measures the shares of flows of one kind, and the share that one leaves to TCP.
pub(super) async fn fairness(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    Ok(vec![fair_shares(scene, 2).await?, fair_shares(scene, 4).await?, beside_cubic(scene).await?])
}

async fn fair_shares(scene: &TransportScene<'_>, count: usize) -> Result<Case> {
    let round = |rounds: f64| Duration::from_secs_f64(rounds * rtt_secs(scene));
    let mut flows = Vec::new();
    for number in 0..count {
        if number > 0 {
            sleep(round(APART_ROUNDS)).await;
        }
        flows.push(Endless::start(scene, &scene.ready, "auto").await?);
    }
    sleep(round(SETTLE_ROUNDS)).await;
    let shares = rates(&flows, round(LOOK_ROUNDS)).await;
    let ratio = smallest_over_largest(&shares);
    let name =
        format!("{count} auto flows started {APART_ROUNDS} round trips apart, smallest share over largest");
    let case = Case::measured(&name, "1", Better::Higher, vec![ratio]).with("shares", shares);
    Ok(case.with("from_rounds", SETTLE_ROUNDS).limited(1.0, "all alike").aiming(FAIR))
}

/// Share that kernel TCP's cubic keeps when a polite flow joins it.
async fn beside_cubic(scene: &TransportScene<'_>) -> Result<Case> {
    let name = "what kernel TCP's cubic keeps beside a polite flow, of the goodput";
    let case = |values| Case::measured(name, "share", Better::Higher, values);
    let server = RunningProcess::other(&scene.side, "iperf3", &["-s", "-p", &PORT.to_string()], PORT).await;
    let (Ok(_server), Some(goodput)) = (&server, goodput(&scene.options.link)) else {
        let why = server.err().map_or_else(|| "the link's rate is not known".to_owned(), |e| e.to_string());
        return Ok(Case { why, ..case(Vec::new()) });
    };
    let secs = (rtt_secs(scene) * 1e3).clamp(10.0, if scene.options.is_quick { 10.0 } else { 60.0 });
    let mut iperf3 = Command::new("iperf3");
    let (address, port, time) = (scene.side.address.to_string(), PORT.to_string(), format!("{secs:.0}"));
    iperf3.args(["-J", "-R", "-C", "cubic", "-c", &address, "-p", &port, "-t", &time]).kill_on_drop(true);
    let polite = async {
        sleep(Duration::from_secs_f64(APART_ROUNDS * rtt_secs(scene))).await;
        let flow = Endless::start(scene, &scene.ready, "polite").await?;
        sleep(Duration::from_secs_f64(secs)).await;
        drop(flow);
        Ok::<_, Error>(())
    };
    let (told, joined) = tokio::join!(iperf3.output(), polite);
    joined?;
    let told: Value = serde_json::from_slice(&told?.stdout)
        .map_err(|e| Error::internal(format!("expected JSON of iperf3, found: {e}")))?;
    let intervals = told["intervals"].as_array().map(Vec::as_slice).unwrap_or_default();
    let late = &intervals[intervals.len() * 2 / 5..];
    let bits: f64 = late.iter().filter_map(|i| i.pointer("/sum/bits_per_second")?.as_f64()).sum();
    if late.is_empty() {
        return Ok(Case { why: format!("iperf3 said {}", told["error"]), ..case(Vec::new()) });
    }
    let kept = bits / 8.0 / late.len() as f64 / goodput;
    Ok(case(vec![kept]).with("secs", secs).limited(0.5, "half, between two of a kind").aiming(KEPT))
}
