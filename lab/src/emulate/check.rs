//! `corridor lab check`: comparison of an emulated link with theory, with real packets.
//!
//! Each check makes a link, measures one quantity over it, and states the theoretical value and the tolerance. The
//! tolerances allow for a machine with other load; counters show when the emulator itself was too slow.

use std::time::Duration;

use array::Result;

use super::probe;
use super::spec::Options;
use super::up::{Engine, Running, up};
use crate::bench::report::{BenchReport, Better, Case, Link, median};

/// Size of a datagram with headers.
const DATAGRAM_BYTES: usize = 1250;
/// Rate of the link, bytes per second: at 100 Mb/s, sending datagrams one by one takes little processor time.
const RATE: f64 = 12.5e6;
/// Share of TCP's packets of 1500 bytes that is payload: IP, TCP and its time stamp take 52.
const TCP_SHARE: f64 = 1448.0 / 1500.0;

/// A measurement with its theoretical value.
struct Check {
    name: &'static str,
    unit: &'static str,
    options: Options,
    expected: f64,
    /// Largest difference between the measured and the theoretical value.
    tolerance: f64,
    why: &'static str,
    measure: fn(&Running) -> Result<f64>,
}

/// Runs all checks. The theoretical value of a case is its `limit`; `meets_goal` says whether the measured value is within
/// the tolerance, which is a parameter.
///
/// # Errors
/// `Denied` without root, and others that keep a link from being made.
pub fn run(engine: Engine) -> Result<BenchReport> {
    let mut report = BenchReport::here("lab-check", Link { mtu: Some(1500), ..Link::default() });
    for check in checks() {
        let name = format!("check{}", std::process::id());
        let link = up(&name, &check.options, engine)?;
        let measured = (check.measure)(&link)?;
        let failed = link.stats().forward.packets_failed + link.stats().backward.packets_failed;
        let delayed = link.stats().forward.packets_delayed + link.stats().backward.packets_delayed;
        let mut case = Case::measured(check.name, check.unit, Better::Lower, vec![measured])
            .with("rate", check.options.rate)
            .with("rtt", check.options.rtt)
            .with("tolerance", check.tolerance)
            .with("packets_failed", failed)
            .with("packets_delayed", delayed)
            .limited(check.expected, check.why);
        case.goal = Some(check.expected);
        case.meets_goal = Some((measured - check.expected).abs() <= check.tolerance);
        report.cases.push(case);
    }
    Ok(report)
}

fn link(rtt: &str) -> Options {
    Options { rate: "100mbit".into(), rtt: rtt.into(), ..Options::default() }
}

fn checks() -> Vec<Check> {
    let mut checks = round_trips();
    checks.extend(bottleneck());
    checks.extend(chance());
    checks
}

/// Returns the median of round trips; NaN, which fails each check, if no answer arrived.
fn median_round_trip(link: &Running, count: u32) -> Result<f64> {
    let mut round_trips = probe::round_trips(link, count, Duration::from_millis(10))?;
    Ok(median(&mut round_trips).unwrap_or(f64::NAN))
}

fn idle_round_trip(link: &Running) -> Result<f64> {
    median_round_trip(link, 30)
}

fn round_trips() -> Vec<Check> {
    [("1ms", 0.001), ("20ms", 0.02), ("150ms", 0.15)]
        .map(|(rtt, expected)| Check {
            name: "round trip of an idle link, median",
            unit: "s",
            options: link(rtt),
            expected,
            tolerance: 5e-4_f64.max(0.01 * expected),
            why: "what was asked for",
            measure: idle_round_trip,
        })
        .into()
}

fn lost_share(link: &Running, share_of_rate: f64, count: u64) -> Result<f64> {
    let numbers = probe::datagrams(link, DATAGRAM_BYTES, share_of_rate * RATE, count)?;
    Ok(1.0 - numbers.len() as f64 / count as f64)
}

fn bottleneck() -> Vec<Check> {
    let check = |name, unit, options, expected, tolerance, why, measure| Check {
        name,
        unit,
        options,
        expected,
        tolerance,
        why,
        measure,
    };
    vec![
        check(
            "datagrams at 0.9 of the rate, lost",
            "share",
            link("20ms"),
            0.0,
            0.0,
            "the queue never fills",
            |link| lost_share(link, 0.9, 20_000),
        ),
        check(
            "datagrams at 1.2 of the rate, lost",
            "share",
            link("20ms"),
            1.0 / 6.0 - 200.0 / 40_000.0,
            0.005,
            "what exceeds the rate, less a queue of 200 datagrams",
            |link| lost_share(link, 1.2, 40_000),
        ),
        check(
            "wait behind a full queue of 50 ms",
            "s",
            Options { queue: "50ms".into(), ..link("20ms") },
            0.05,
            0.005,
            "the queue's bytes at the rate",
            full_queue,
        ),
        check(
            "TCP, one flow",
            "B/s",
            link("20ms"),
            RATE * TCP_SHARE,
            0.03 * RATE,
            "payload in packets of 1500 bytes",
            tcp_rate,
        ),
        check(
            "TCP, one flow, beside cross traffic of 0.4 of the rate",
            "B/s",
            Options { cross: "40%".into(), ..link("20ms") },
            0.6 * RATE * TCP_SHARE,
            0.05 * RATE,
            "what the cross traffic leaves",
            tcp_rate,
        ),
    ]
}

fn tcp_rate(link: &Running) -> Result<f64> {
    probe::transfer(link, 40_000_000).map(|t| if t.is_exact { t.bytes_per_sec } else { f64::NAN })
}

/// Measures the additional delay of a datagram while others fill the queue.
fn full_queue(link: &Running) -> Result<f64> {
    let idle = idle_round_trip(link)?;
    let busy = std::thread::scope(|scope| {
        let flood = std::thread::Builder::new()
            .name("flood".into())
            .spawn_scoped(scope, || probe::datagrams(link, DATAGRAM_BYTES, 1.5 * RATE, 45_000));
        // One round trip and a half second: the queue is full.
        std::thread::sleep(Duration::from_millis(700));
        let busy = median_round_trip(link, 15);
        let flooded = flood.map_err(array::Error::from)?.join();
        flooded.map_err(|_| array::Error::internal("the flood panicked"))??;
        busy
    })?;
    Ok(busy - idle)
}

fn chance() -> Vec<Check> {
    vec![
        Check {
            name: "loss of 1 %",
            unit: "share",
            options: Options { loss: "1%".into(), ..link("20ms") },
            expected: 0.01,
            // Four standard deviations of 60,000 tries.
            tolerance: 0.0016,
            why: "what was asked for",
            measure: |link| lost_share(link, 0.5, 60_000),
        },
        Check {
            name: "loss in bursts, mean length",
            unit: "packets",
            options: Options { loss: "0.2%:10%".into(), ..link("20ms") },
            expected: 10.0,
            // Some 120 bursts of geometric length: four standard deviations.
            tolerance: 3.5,
            why: "1 / the probability that a burst ends",
            measure: |link| {
                let mut numbers = probe::datagrams(link, DATAGRAM_BYTES, 0.5 * RATE, 60_000)?;
                numbers.sort_unstable();
                let gaps: Vec<u64> =
                    numbers.windows(2).map(|w| w[1] - w[0] - 1).filter(|gap| *gap > 0).collect();
                Ok(gaps.iter().sum::<u64>() as f64 / gaps.len() as f64)
            },
        },
        Check {
            name: "late packets of 2 %, passed by others",
            unit: "share",
            options: Options { late: "2%:5ms".into(), ..link("20ms") },
            expected: 0.02,
            tolerance: 0.004,
            why: "what was asked for",
            measure: |link| {
                let numbers = probe::datagrams(link, DATAGRAM_BYTES, 0.5 * RATE, 30_000)?;
                let mut newest = 0;
                let passed = numbers.iter().filter(|n| {
                    newest = newest.max(**n);
                    **n < newest
                });
                Ok(passed.count() as f64 / 30_000.0)
            },
        },
        Check {
            name: "TCP through loss, jitter and late packets: bytes that arrive wrong",
            unit: "share",
            options: Options {
                loss: "1%".into(),
                jitter: "2ms".into(),
                late: "1%:3ms".into(),
                ..link("20ms")
            },
            expected: 0.0,
            tolerance: 0.0,
            why: "TCP repairs everything, unless the emulator spoils a packet",
            measure: |link| probe::transfer(link, 2_000_000).map(|t| if t.is_exact { 0.0 } else { 1.0 }),
        },
    ]
}
