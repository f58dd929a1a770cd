//! Long flows, one at a time: every protocol and controller of ours beside others on the same link in the same run.

use std::collections::BTreeMap;
use std::time::Duration;

use array::{Error, Result};
use link::Choice;

use super::super::report::{Better, Case, median};
use super::flows::{Flowed, PEERS, TransportScene};
use super::limits::{goodput, limited};
use super::messages::MessageTransport;

/// Controllers that run first, and those that `all` adds; the last two cannot run by QUIC, and say why.
const FIRST: &[&str] = &["auto", "polite", "cubic", "bbr"];
const OTHERS: &[&str] = &["reno", "bic", "highspeed", "scalable", "westwood", "vegas", "udt", "tfrc"];
/// Share of the link's rate that is asked of `rate`, and by `lossy`: headers of IP and UDP, acknowledgements, and some room.
const RATE_SHARE: f64 = 0.975;
/// Losses with the shares of the link's goodput that `rate` and `auto` are to reach on a long path, their start included.
const GOALS: &[(f64, f64, f64)] =
    &[(0.0, 0.95, 0.94), (1e-5, 0.95, 0.94), (1e-4, 0.95, 0.94), (1e-3, 0.94, 0.93), (1e-2, 0.92, 0.91)];
/// Round trip from which a path counts as long, seconds.
const LONG_RTT: f64 = 0.1;
/// `auto` is to be so many times as fast as TCP's cubic at this loss.
const BESIDE_CUBIC: (f64, f64) = (1e-4, 8.0);

/// Duration of blind datagrams, and the default size of packets.
const BLIND: Duration = Duration::from_secs(5);
const QUICK_BLIND: Duration = Duration::from_secs(1);
const DEFAULT_MTU: u32 = 1500;
/// Streams of one link, at the most.
const MOST_STREAMS: u32 = 6;

type Results = BTreeMap<String, std::result::Result<Vec<Flowed>, String>>;

/// Runs all contestants in turn, as often as requested; returns the cases.
pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let ways = ways(scene);
    let (mut ours, mut peers) = (Results::new(), Results::new());
    for _ in 0..scene.options.runs.unwrap_or(1) {
        for (label, way) in &ways {
            let flowed = match way {
                Ok(way) => scene.ours(*way).await,
                Err(why) => Err(Error::unsupported(why.clone())),
            };
            note(&mut ours, label, flowed);
        }
        for (name, iperf3) in PEERS {
            let flowed = if scene.options.wants_peer(name) {
                scene.peer(name, *iperf3).await
            } else {
                Err(Error::unsupported("not asked for"))
            };
            note(&mut peers, name, flowed);
        }
    }
    let mut cases = Vec::new();
    for (label, _) in &ways {
        let speed =
            case(scene, &format!("one flow, {label}"), "B/s", &ours, label, &peers, |f| f.bytes_per_sec());
        let cost =
            case(scene, &format!("one flow, {label}: processor time"), "s/GB", &ours, label, &peers, |f| {
                f.cpu_secs_per_gb()
            });
        cases.push(with_goal(scene, label, limited(scene, speed)));
        cases.push(cost);
    }
    cases.extend(beside_cubic(scene, &ours, &peers));
    Ok(cases)
}

/// Long flows on a link that limits nothing, beside datagrams that are sent blindly: shows what the machine can do.
pub(super) async fn most(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let mtu = scene.options.link.mtu.unwrap_or(DEFAULT_MTU);
    let during = if scene.options.is_quick { QUICK_BLIND } else { BLIND };
    let blind = scene.blind(mtu, during).await?;
    let why = "datagrams of this size, sent blindly: not encrypted, not acknowledged, not paced";
    let limited = |case: Case| {
        let limit = if case.unit == "B/s" { blind.bytes_per_sec() } else { blind.cpu_secs_per_gb() };
        case.with("mtu", mtu).limited(limit, why)
    };
    Ok(run(scene).await?.into_iter().map(limited).collect())
}

/// Flows of ours by the names of their cases; for those that cannot run, the reason.
fn ways(scene: &TransportScene<'_>) -> Vec<(String, std::result::Result<MessageTransport, String>)> {
    let wants_all = scene.options.only.iter().any(|name| name == "all");
    let others = if wants_all { OTHERS } else { &[] };
    let rate = scene.options.link.rate.map(|rate| format!("rate={:.3}Mb/s", rate * 8e-6 * RATE_SHARE));
    let names = rate.clone().into_iter().chain(FIRST.iter().chain(others).map(|name| (*name).to_owned()));
    let by_quic = names.map(|name| {
        let label = format!("{} by QUIC", name.split('=').next().unwrap_or_default());
        (label, chosen(name).map(MessageTransport::Quic))
    });
    let by_datagrams = rate.iter().flat_map(|rate| {
        [("lossy", false), ("lossy+fec", true)].map(|(link, redundancy)| {
            let way = chosen(rate.clone()).map(|choice| MessageTransport::Lossy { choice, redundancy });
            (format!("rate by {link}"), way)
        })
    });
    let by_tcp = [("TCP with TLS".to_owned(), Ok(MessageTransport::Tcp { streams: 1 }))];
    by_quic.chain(by_datagrams).chain(by_tcp).collect()
}

fn chosen(name: String) -> std::result::Result<Choice, String> {
    name.parse().map_err(|refusal: link::Refusal| refusal.to_string())
}

/// Long flows by TCP with several streams: 1 to 6, or only the least and the most of these in a quick run.
pub(super) async fn streams(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let counts = if scene.options.is_quick { vec![1, MOST_STREAMS] } else { (1..=MOST_STREAMS).collect() };
    let mut flows: Vec<Vec<Flowed>> = vec![Vec::new(); counts.len()];
    for _ in 0..scene.options.runs.unwrap_or(1) {
        for (streams, flows) in counts.iter().zip(&mut flows) {
            flows.push(scene.ours(MessageTransport::Tcp { streams: *streams }).await?);
        }
    }
    let mut cases = Vec::new();
    for (streams, flows) in counts.into_iter().zip(flows) {
        let of = |what: &str, unit, better, figure: fn(&Flowed) -> f64| {
            let name = format!("TCP with TLS by {streams} streams{what}");
            let case = Case::measured(&name, unit, better, flows.iter().map(figure).collect());
            case.with("bytes", scene.bytes).with("streams", streams)
        };
        cases.push(limited(scene, of("", "B/s", Better::Higher, Flowed::bytes_per_sec)));
        cases.push(of(": processor time", "s/GB", Better::Lower, Flowed::cpu_secs_per_gb));
    }
    Ok(cases)
}

fn note(results: &mut Results, name: &str, flowed: Result<Flowed>) {
    let entry = results.entry(name.to_owned()).or_insert_with(|| Ok(Vec::new()));
    match (entry, flowed) {
        (Ok(all), Ok(one)) => all.push(one),
        (entry, Err(why)) => *entry = Err(why.to_string()),
        (Err(_), Ok(_)) => {}
    }
}

fn case(
    scene: &TransportScene<'_>,
    name: &str,
    unit: &'static str,
    ours: &Results,
    label: &str,
    peers: &Results,
    figure: impl Fn(&Flowed) -> f64,
) -> Case {
    let better = if unit == "B/s" { Better::Higher } else { Better::Lower };
    let of = |results: &Results, name: &str| {
        let all = results.get(name).and_then(|all| all.as_ref().ok()).map(Vec::as_slice).unwrap_or_default();
        all.iter().map(&figure).collect::<Vec<_>>()
    };
    let mut case = Case::measured(name, unit, better, of(ours, label)).with("bytes", scene.bytes);
    case.peers = peers.keys().map(|name| (name.clone(), median(&mut of(peers, name)))).collect();
    let failed = ours.get_key_value(label).into_iter().chain(peers);
    let why = failed.filter_map(|(name, all)| Some(format!("{name}: {}", all.as_ref().err()?)));
    case.why = why.collect::<Vec<_>>().join("; ");
    case
}

/// Sets the goals of `rate` and `auto` by QUIC on a long path.
fn with_goal(scene: &TransportScene<'_>, label: &str, case: Case) -> Case {
    let link = &scene.options.link;
    let loss = link.loss.unwrap_or_default();
    let goal = GOALS.iter().find(|(of, _, _)| (of - loss).abs() <= 0.1 * of.max(1e-9));
    let share = match (label, goal) {
        ("rate by QUIC", Some((_, share, _))) | ("auto by QUIC", Some((_, _, share))) => *share,
        _ => return case,
    };
    match goodput(link).filter(|_| link.rtt.is_some_and(|rtt| rtt >= LONG_RTT)) {
        Some(goodput) => case.aiming(share * goodput),
        None => case,
    }
}

/// Rate of `auto` over that of TCP's cubic, at a loss for which there is a goal.
fn beside_cubic(scene: &TransportScene<'_>, ours: &Results, peers: &Results) -> Option<Case> {
    let (loss, goal) = BESIDE_CUBIC;
    let link = &scene.options.link;
    let is_here = link.loss.is_some_and(|of| (of - loss).abs() < 0.1 * loss)
        && link.rtt.is_some_and(|rtt| rtt >= LONG_RTT);
    let rates = |results: &Results, name: &str| {
        let all = results.get(name)?.as_ref().ok()?;
        median(&mut all.iter().map(Flowed::bytes_per_sec).collect::<Vec<_>>())
    };
    let ratio =
        rates(ours, "auto by QUIC").zip(rates(peers, "iperf3-cubic")).map(|(ours, cubic)| ours / cubic);
    is_here.then(|| {
        let name = "auto by QUIC, times kernel TCP's cubic";
        let case = Case::measured(name, "1", Better::Higher, ratio.into_iter().collect()).aiming(goal);
        let why = if ratio.is_none() { "one of the two has no figure" } else { "" };
        Case { why: why.to_owned(), ..case }
    })
}
