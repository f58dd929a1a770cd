//! Behavior of the congestion controllers over a simulated bottleneck ([`crate::simulate`]): all of them on the
//! reference link, `auto` over a grid of paths, and flows that share a bottleneck.
//!
//! Simulated: no packet is sent, no processor time is measured, and the same commit gives the same figures anywhere.
//! *Ours* is `auto` unless the case names another; the other controllers are the peers.

use std::collections::BTreeMap;
use std::time::Duration;

use array::{Error, Result};
use control::{Config, Controller, Signal, registry};

use super::report::{BenchReport, Better, Case, Link, median, smallest_over_largest};
use crate::simulate::{SimulatedFlow, SimulatedPath, SimulationOutcome, run as simulate};

/// Runs with different seeds of ours on the reference link, and of flows that share; peers run once.
const SEEDS: u64 = 3;
/// Controllers of this project, which are measured against the others.
const OURS: [&str; 2] = ["auto", "rate"];
/// Size of the reference transfer, bytes.
const TRANSFER_BYTES: u64 = 2_000_000_000;
/// Time after which it is stopped.
const TRANSFER_MOST: Duration = Duration::from_secs(60);
/// Duration of a flow whose packets are reordered.
const REORDERED_FOR: Duration = Duration::from_secs(30);
/// A gigabit per second, in bytes.
const GBPS: f64 = 125e6;
/// Rates of the grid, Gb/s.
const RATES: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];
/// Round trips of the grid, ms.
const RTTS: [u64; 3] = [1, 20, 150];
/// Random losses of the grid.
const LOSSES: [f64; 3] = [0.0, 0.01, 0.03];
/// Buffers of the grid, bandwidth-delay products.
const BUFFERS: [f64; 3] = [0.1, 1.0, 4.0];
/// Flows of the grid, started a third of a round trip apart.
const FLOWS: [u32; 4] = [1, 2, 4, 8];
/// Length of a run, in rounds; a round is a round trip, or the time of [`ROUND_PACKETS`] where that is longer.
const ROUNDS: f64 = 120.0;
const ROUND_PACKETS: f64 = 16.0;
/// Rounds that count as the start.
const START_ROUNDS: f64 = 12.0;

pub(super) fn run() -> Result<BenchReport> {
    let mut report = BenchReport::here("controllers", Link { mtu: Some(1500), ..Link::default() });
    reference(&mut report.cases)?;
    evenness(&mut report.cases)?;
    reordering(&mut report.cases)?;
    sharing(&mut report.cases)?;
    grid(&mut report.cases)?;
    Ok(report)
}

fn make(name: &str, path: &SimulatedPath, rate: Option<f64>) -> Result<Box<dyn Controller>> {
    let mut config = Config::new(path.packet_bytes);
    config.handshake_rtt = Some(path.rtt);
    config.rate_bytes_per_sec = rate;
    registry::make(name, &config, Signal::ALL).map_err(|refusal| Error::not_found(refusal.to_string()))
}

fn described(case: Case, path: &SimulatedPath) -> Case {
    case.with("rate", path.rate_bytes_per_sec)
        .with("rtt", path.rtt.as_secs_f64())
        .with("loss", path.loss)
        .with("buffer", path.buffer_bytes)
}

/// 2 GB over 1 Gb/s, including the start, every controller.
fn reference(cases: &mut Vec<Case>) -> Result<()> {
    let losses = [0.0, 1e-5, 1e-4, 1e-3, 1e-2];
    // Shares that `rate` and `auto` are to reach at 150 ms, as set out for the transport as a whole.
    let goals = [(0.95, 0.94), (0.95, 0.94), (0.95, 0.94), (0.94, 0.93), (0.92, 0.91)];
    for rtt in [Duration::from_millis(19), Duration::from_millis(150)] {
        for (loss, (rate_goal, goal)) in losses.into_iter().zip(goals) {
            let path = SimulatedPath::new(GBPS, rtt, 1.0).losing(loss);
            let mut all = BTreeMap::new();
            for entry in registry::ALL {
                let seeds = if OURS.contains(&entry.name) { SEEDS } else { 1 };
                all.insert(entry.name, transfers(entry.name, &path, seeds)?);
            }
            let is_goal = rtt == Duration::from_millis(150);
            for (name, goal) in [("auto", goal), ("rate", rate_goal)] {
                let values = all.get(name).cloned().unwrap_or_default();
                let case = Case::measured(&format!("2 GB, {name}"), "share", Better::Higher, values);
                let mut case = described(case, &path).limited(
                    1.0 - loss,
                    "the link's rate less what is lost at random; start and acknowledgement not taken off",
                );
                for (peer, values) in all.iter().filter(|(peer, _)| **peer != name) {
                    case.peers.insert((*peer).to_owned(), median(&mut values.clone()));
                }
                cases.push(if is_goal { case.aiming(goal) } else { case });
            }
        }
    }
    Ok(())
}

/// Goodput of one transfer per seed, as shares of the rate.
fn transfers(name: &str, path: &SimulatedPath, seeds: u64) -> Result<Vec<f64>> {
    (1..=seeds)
        .map(|seed| {
            let mut flow = SimulatedFlow::new(
                make(name, path, Some(path.rate_bytes_per_sec).filter(|_| name == "rate"))?,
                Duration::ZERO,
            );
            flow.bytes = Some(TRANSFER_BYTES);
            let out = simulate(path, vec![flow], &[], TRANSFER_MOST, seed);
            let took = out.flows[0].finished_at.unwrap_or(TRANSFER_MOST);
            Ok(out.flows[0].rate_bytes_per_sec(Duration::ZERO, took) / path.rate_bytes_per_sec)
        })
        .collect()
}

/// Evenness of sending: bytes per bin of 1 ms behind the bottleneck.
fn evenness(cases: &mut Vec<Case>) -> Result<()> {
    for rate in [0.02, 0.06, 0.4] {
        // A short path: there the simulator's segments are single packets, and do not make bursts of their own.
        let path = SimulatedPath::new(GBPS, Duration::from_millis(5), 1.0);
        let flow = SimulatedFlow::new(make("rate", &path, Some(rate * GBPS))?, Duration::ZERO);
        let out = simulate(&path, vec![flow], &[], Duration::from_secs(5), 1);
        let mut bins = vec![0.0; 4_000];
        for (at, bytes) in &out.flows[0].arrived {
            let place = ((f64::from(*at) - 1.0) * 1e3).floor();
            if let Some(bin) = place_in(place, &mut bins) {
                *bin += bytes;
            }
        }
        let mean = bins.iter().sum::<f64>() / bins.len() as f64;
        let square = bins.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / bins.len() as f64;
        let case = Case::measured(
            "variation of 1 ms bins, rate",
            "ratio",
            Better::Lower,
            vec![square.sqrt() / mean],
        );
        let case = case.with("asked", rate * GBPS).with("packets_per_bin", mean / path.packet_bytes as f64);
        cases.push(described(case, &path));
    }
    Ok(())
}

/// Share of its rate that TFRC keeps where packets come late and none is lost: a late packet is no loss event.
fn reordering(cases: &mut Vec<Case>) -> Result<()> {
    let straight = SimulatedPath::new(0.1 * GBPS, Duration::from_millis(40), 1.0);
    let late = SimulatedPath { late: 0.013, late_by: Duration::from_millis(3), ..straight.clone() };
    let shares = |path: &SimulatedPath| (1..=SEEDS).map(|seed| later_share("tfrc", path, seed)).collect();
    let (in_order, reordered): (Result<Vec<f64>>, Result<Vec<f64>>) = (shares(&straight), shares(&late));
    let (in_order, reordered) = (in_order?, reordered?);
    let kept = reordered.iter().zip(&in_order).map(|(late, straight)| late / straight).collect();
    let name = "tfrc with 1.3 % of packets reordered and none lost, of what it gets in order, simulated";
    let case = described(Case::measured(name, "share", Better::Higher, kept), &late);
    let case = case.with("late", late.late).with("late_by", late.late_by.as_secs_f64());
    let case = case.with("shares_in_order", in_order).with("shares_reordered", reordered);
    cases.push(case.limited(1.0, "what it gets in order").aiming(0.95));
    Ok(())
}

/// Share of the rate that one flow gets in the second half of a run.
fn later_share(name: &str, path: &SimulatedPath, seed: u64) -> Result<f64> {
    let flow = SimulatedFlow::new(make(name, path, None)?, Duration::ZERO);
    let out = simulate(path, vec![flow], &[], REORDERED_FOR, seed);
    Ok(out.total_bytes_per_sec(REORDERED_FOR / 2, REORDERED_FOR) / path.rate_bytes_per_sec)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates; below zero is refused"
)]
fn place_in(place: f64, bins: &mut [f64]) -> Option<&mut f64> {
    if place < 0.0 { None } else { bins.get_mut(place as usize) }
}

/// Shares of flows that use one bottleneck together.
fn sharing(cases: &mut Vec<Case>) -> Result<()> {
    beside_tcp(cases)?;
    for rtt in [20, 150] {
        for count in [2, 4] {
            let path = SimulatedPath::new(GBPS, Duration::from_millis(rtt), 1.0);
            let name = format!(
                "{count} flows started 10 round trips apart, smallest share over largest, from 60 to 100 round trips after the last"
            );
            let mut case = described(
                Case::measured(&name, "ratio", Better::Higher, fairness("auto", &path, count)?),
                &path,
            );
            for peer in ["reno", "cubic", "bbr", "udt", "tfrc"] {
                case.peers.insert(peer.to_owned(), median(&mut fairness(peer, &path, count)?));
            }
            cases.push(case.with("flows", count).limited(1.0, "all alike").aiming(0.9));
        }
    }
    Ok(())
}

/// Share that a cubic flow keeps beside one of ours: the second starts 10 round trips later.
fn beside_tcp(cases: &mut Vec<Case>) -> Result<()> {
    for buffer in [0.3, 1.0, 4.0] {
        let path = SimulatedPath::new(0.1 * GBPS, Duration::from_millis(20), buffer);
        for (name, goal) in [("polite", Some(0.45)), ("auto", None), ("cubic", None)] {
            let kept: Result<Vec<f64>> = (1..=SEEDS).map(|seed| kept_beside(name, &path, seed)).collect();
            let title = format!("what a cubic flow keeps beside one {name} flow, 400 to 1000 round trips");
            let case = described(Case::measured(&title, "share", Better::Higher, kept?), &path);
            let case = case.with("buffer_bdp", buffer).limited(0.5, "half, between two of a kind");
            cases.push(match goal {
                Some(goal) => case.aiming(goal),
                None => case,
            });
        }
    }
    Ok(())
}

fn kept_beside(name: &str, path: &SimulatedPath, seed: u64) -> Result<f64> {
    let (from, until) = (path.rtt * 400, path.rtt * 1_000);
    let cubic = SimulatedFlow::new(make("cubic", path, None)?, Duration::ZERO);
    let flows = vec![cubic, SimulatedFlow::new(make(name, path, None)?, path.rtt * 10)];
    let out = simulate(path, flows, &[], until, seed);
    Ok(out.flows[0].rate_bytes_per_sec(from, until) / path.rate_bytes_per_sec)
}

/// Smallest share over largest, per seed.
fn fairness(name: &str, path: &SimulatedPath, count: u32) -> Result<Vec<f64>> {
    (1..=SEEDS)
        .map(|seed| {
            let last = path.rtt * 10 * (count - 1);
            let (from, until) = (last + path.rtt * 60, last + path.rtt * 100);
            let flows: Result<Vec<SimulatedFlow>> = (0..count)
                .map(|i| Ok(SimulatedFlow::new(make(name, path, None)?, path.rtt * 10 * i)))
                .collect();
            Ok(smallest_over_largest(&rates(&simulate(path, flows?, &[], until, seed), from)))
        })
        .collect()
}

/// Bytes per second of each flow after `from`.
fn rates(out: &SimulationOutcome, from: Duration) -> Vec<f64> {
    out.flows.iter().map(|flow| flow.rate_bytes_per_sec(from, out.until)).collect()
}

/// `auto` over rates, round trips, losses, buffers and numbers of flows: one run each.
fn grid(cases: &mut Vec<Case>) -> Result<()> {
    for rate in RATES {
        for rtt in RTTS {
            for loss in LOSSES {
                for buffer in BUFFERS {
                    let path =
                        SimulatedPath::new(rate * GBPS, Duration::from_millis(rtt), buffer).losing(loss);
                    for count in FLOWS {
                        cases.extend(grid_point(&path, buffer, count)?);
                    }
                }
            }
        }
    }
    Ok(())
}

fn grid_point(path: &SimulatedPath, buffer: f64, count: u32) -> Result<Vec<Case>> {
    let packets = ROUND_PACKETS * path.packet_bytes as f64;
    let round = path.rtt.max(Duration::from_secs_f64(packets / path.rate_bytes_per_sec));
    let until = round.mul_f64(ROUNDS);
    let flows: Result<Vec<SimulatedFlow>> = (0..count)
        .map(|i| Ok(SimulatedFlow::new(make("auto", path, None)?, round.mul_f64(0.37 * f64::from(i)))))
        .collect();
    let out = simulate(path, flows?, &[], until, 1);
    let start = round.mul_f64(START_ROUNDS);
    let one = |name: &str, unit, better, value: f64| {
        let case = Case::measured(&format!("grid: {name}"), unit, better, vec![value]);
        described(case, path).with("flows", count).with("buffer_bdp", buffer).with("rounds", ROUNDS)
    };
    let share = out.total_bytes_per_sec(until / 2, until) / path.rate_bytes_per_sec;
    let queue_goal = (0.25 * path.rtt.as_secs_f64()).max(0.025);
    let mut cases = vec![
        one("share of the rate in the second half", "share", Better::Higher, share)
            .limited(1.0 - path.loss, "the link's rate less what is lost at random"),
        one(
            "queue delay after the start, 95th percentile",
            "s",
            Better::Lower,
            out.queue_secs(0.95, start, until),
        )
        .aiming(queue_goal),
    ];
    if count == 1 {
        let wanted = 0.9 * path.rate_bytes_per_sec * (1.0 - path.loss);
        let rounds = out.flows[0].reaches(wanted, round).map(|at| at.as_secs_f64() / round.as_secs_f64());
        let mut case =
            one("rounds to 90 % of what is free", "rounds", Better::Lower, rounds.unwrap_or(ROUNDS))
                .aiming(8.0);
        if rounds.is_none() {
            case.why = "not reached; the length of the run is given".to_owned();
        }
        cases.push(case);
    } else {
        let fairness = smallest_over_largest(&rates(&out, until / 2));
        cases.push(one("smallest share over largest in the second half", "ratio", Better::Higher, fairness));
    }
    Ok(cases)
}
