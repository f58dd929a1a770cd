//! Controllers over a simulated bottleneck, compared with published laws and with the guarantees of `auto`.

use std::time::Duration;

use control::{Config, Controller, RememberedPath, Signal, registry};
use corridor_lab::simulate::{FlowOutcome, PathChange, SimulatedFlow, SimulatedPath, SimulationOutcome, run};

const GBPS: f64 = 125e6;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn secs(n: f64) -> Duration {
    Duration::from_secs_f64(n)
}

fn config(path: &SimulatedPath) -> Config {
    let mut config = Config::new(path.packet_bytes);
    config.handshake_rtt = Some(path.rtt);
    config
}

fn make(name: &str, path: &SimulatedPath) -> Box<dyn Controller> {
    registry::make(name, &config(path), Signal::ALL).expect("a registered name")
}

fn fixed(path: &SimulatedPath, rate_bytes_per_sec: f64) -> Box<dyn Controller> {
    let config = Config { rate_bytes_per_sec: Some(rate_bytes_per_sec), ..config(path) };
    registry::make("rate", &config, Signal::ALL).expect("a registered name")
}

/// Runs a single flow.
fn alone(name: &str, path: &SimulatedPath, until: Duration) -> SimulationOutcome {
    run(path, vec![SimulatedFlow::new(make(name, path), Duration::ZERO)], &[], until, 7)
}

/// Returns the share of the path's rate that arrived in the second half.
fn later_share(outcome: &SimulationOutcome, path: &SimulatedPath) -> f64 {
    outcome.total_bytes_per_sec(outcome.until / 2, outcome.until) / path.rate_bytes_per_sec
}

/// Returns the mean number of packets in flight in the second half: rate times round trip.
fn later_window(outcome: &SimulationOutcome, path: &SimulatedPath) -> f64 {
    let rate = outcome.total_bytes_per_sec(outcome.until / 2, outcome.until);
    rate * path.rtt.as_secs_f64() / path.packet_bytes as f64
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{what}: {found}, expected {expected}");
}

// Comparison of the simulator with theory.

#[test]
fn a_bottleneck_passes_its_rate_and_drops_the_rest() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 1.0);
    let slow =
        run(&path, vec![SimulatedFlow::new(fixed(&path, 0.09 * GBPS), Duration::ZERO)], &[], secs(4.0), 1);
    assert_near("below the rate", slow.total_bytes_per_sec(secs(1.0), secs(4.0)), 0.09 * GBPS, 0.005);
    assert_eq!(slow.flows[0].lost_bytes, 0);
    assert!(
        slow.queue_secs(0.99, secs(1.0), secs(4.0)) < 1.1e-3,
        "a release of six packets at ten times the rate"
    );
    let fast =
        run(&path, vec![SimulatedFlow::new(fixed(&path, 0.12 * GBPS), Duration::ZERO)], &[], secs(4.0), 1);
    assert_near("above it", fast.total_bytes_per_sec(secs(1.0), secs(4.0)), 0.1 * GBPS, 0.005);
    assert_near("the queue", fast.queue_secs(0.5, secs(1.0), secs(4.0)), 20e-3, 0.05);
    let lost = fast.flows[0].lost_bytes as f64 / fast.flows[0].sent_bytes as f64;
    assert_near("lost", lost, 1.0 / 6.0, 0.05);
}

#[test]
fn random_loss_has_the_given_share_for_any_size_of_segments() {
    for rate in [0.01 * GBPS, 10.0 * GBPS] {
        let path = SimulatedPath::new(rate, ms(20), 1.0).losing(0.02);
        let out = run(
            &path,
            vec![SimulatedFlow::new(fixed(&path, 0.9 * rate), Duration::ZERO)],
            &[],
            secs(10.0),
            3,
        );
        let lost = out.flows[0].lost_bytes as f64 / out.flows[0].sent_bytes as f64;
        assert_near("lost", lost, 0.02, 0.1);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 0.5).losing(0.01);
    let all = || alone("cubic", &path, secs(2.0)).flows[0].arrived.clone();
    assert_eq!(all(), all());
}

// Published laws.

#[test]
fn reno_follows_the_square_root_law() {
    // Mathis et al. 1997: 1.22 packets / (RTT sqrt(p)).
    let path = SimulatedPath::new(GBPS, ms(20), 1.0).losing(1e-3);
    let window = later_window(&alone("reno", &path, secs(120.0)), &path);
    assert_near("packets", window, 1.22 / 1e-3f64.sqrt(), 0.15);
}

#[test]
fn cubic_follows_its_response_function() {
    // RFC 9438, section 5.1: 1.054 RTT^0.75 / p^0.75 packets, with RTT in seconds; here that is above Reno's.
    let path = SimulatedPath::new(GBPS, ms(100), 1.0).losing(1e-4);
    // Six hundred seconds have only some hundred losses, so this is the mean of several runs.
    let windows = (1..=6).map(|seed| {
        let flow = SimulatedFlow::new(make("cubic", &path), Duration::ZERO);
        later_window(&run(&path, vec![flow], &[], secs(600.0), seed), &path)
    });
    assert_near("packets", windows.sum::<f64>() / 6.0, 1.054 * (0.1f64 / 1e-4).powf(0.75), 0.15);
}

#[test]
fn highspeed_follows_its_response_function() {
    // RFC 3649, section 5: 0.12 / p^0.835 packets.
    let path = SimulatedPath::new(10.0 * GBPS, ms(50), 1.0).losing(1e-5);
    let window = later_window(&alone("highspeed", &path, secs(200.0)), &path);
    assert_near("packets", window, 0.12 / 1e-5f64.powf(0.835), 0.25);
}

#[test]
fn scalable_follows_its_response_function() {
    // Kelly 2003: a / (b p) packets.
    let path = SimulatedPath::new(10.0 * GBPS, ms(50), 1.0).losing(1e-4);
    let window = later_window(&alone("scalable", &path, secs(100.0)), &path);
    assert_near("packets", window, 0.01 / 0.125 / 1e-4, 0.25);
}

#[test]
fn westwood_is_faster_than_reno_at_random_loss() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 1.0).losing(1e-3);
    let westwood = later_share(&alone("westwood", &path, secs(30.0)), &path);
    let reno = later_share(&alone("reno", &path, secs(30.0)), &path);
    assert!(westwood > 0.85 && westwood > 3.0 * reno, "{westwood} against {reno}");
}

#[test]
fn vegas_keeps_a_few_packets_in_the_queue() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 1.0);
    let out = alone("vegas", &path, secs(30.0));
    assert!(later_share(&out, &path) > 0.98);
    let packets = out.queue_secs(0.5, secs(20.0), secs(30.0)) * path.rate_bytes_per_sec / 1500.0;
    assert!((1.0..8.0).contains(&packets), "{packets} packets");
    assert_eq!(out.flows[0].lost_bytes, 0);
}

#[test]
fn bbr_fills_the_path_at_one_percent_loss() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(40), 1.0).losing(0.01);
    let share = later_share(&alone("bbr", &path, secs(20.0)), &path);
    assert!(share > 0.9, "{share}");
}

#[test]
fn udt_fills_a_clean_path() {
    let path = SimulatedPath::new(GBPS, ms(40), 1.0);
    let share = later_share(&alone("udt", &path, secs(30.0)), &path);
    assert!(share > 0.9, "{share}");
}

#[test]
fn tfrc_sends_at_the_rate_of_its_equation() {
    // RFC 5348, section 3.1, at the loss event rate that the packet loss gives: about one event per loss here.
    let path = SimulatedPath::new(GBPS, ms(40), 1.0).losing(1e-3);
    let rate = alone("tfrc", &path, secs(120.0)).total_bytes_per_sec(secs(60.0), secs(120.0));
    assert_near("bytes per second", rate, 1500.0 / (0.04 * (2.0f64 * 1e-3 / 3.0).sqrt()), 0.25);
}

#[test]
fn tfrc_does_not_treat_reordering_as_loss() {
    let straight = SimulatedPath::new(0.1 * GBPS, ms(40), 1.0);
    let late = SimulatedPath { late: 0.013, late_by: ms(3), ..straight.clone() };
    let share = |path| later_share(&alone("tfrc", path, secs(30.0)), path);
    let (expected, found) = (share(&straight), share(&late));
    // Needless retransmissions do not count as arrived, so 1.3 % is lost in any case.
    assert!(found > 0.95 * expected, "{found}, in order {expected}");
}

// Guarantees of `auto`.

#[test]
fn auto_fills_a_new_path_within_eight_round_trips_and_keeps_the_queue_short() {
    for (rate, rtt) in [(0.1, 20), (0.1, 150), (1.0, 20), (1.0, 150), (10.0, 150), (100.0, 150)] {
        let path = SimulatedPath::new(rate * GBPS, ms(rtt), 1.0);
        let out = alone("auto", &path, path.rtt * 60);
        let reached = out.flows[0].reaches(0.9 * path.rate_bytes_per_sec, path.rtt).unwrap();
        assert!(reached <= path.rtt * 8, "{rate} Gb/s, {rtt} ms: {reached:?}");
        let queue = out.queue_secs(0.95, path.rtt * 12, out.until);
        assert!(queue < (0.25 * path.rtt.as_secs_f64()).max(0.025), "{rate} Gb/s, {rtt} ms: queue {queue} s");
        assert!(later_share(&out, &path) > 0.97, "{rate} Gb/s, {rtt} ms: {}", later_share(&out, &path));
    }
}

/// Packets that are sent together must fit into the buffer: a switch has a tenth of a millisecond.
#[test]
fn auto_fills_a_short_path_with_a_small_buffer() {
    let path = SimulatedPath::new(10.0 * GBPS, ms(1), 0.1);
    let share = later_share(&alone("auto", &path, path.rtt * 200), &path);
    assert!(share > 0.9, "{share}");
}

#[test]
fn auto_fills_a_remembered_path_at_once() {
    for (rate, rtt) in [(0.1, 20), (1.0, 150), (100.0, 150)] {
        let path = SimulatedPath::new(rate * GBPS, ms(rtt), 1.0);
        let rate_bytes_per_sec = path.rate_bytes_per_sec;
        let known =
            RememberedPath { rate_bytes_per_sec, capacity_bytes_per_sec: rate_bytes_per_sec, rtt: path.rtt };
        let config = Config { remembered: Some(known), ..config(&path) };
        let controller = registry::make("auto", &config, Signal::ALL).unwrap();
        let out = run(&path, vec![SimulatedFlow::new(controller, Duration::ZERO)], &[], path.rtt * 10, 1);
        let reached = out.flows[0].reaches(0.9 * rate_bytes_per_sec, path.rtt).unwrap();
        assert!(reached <= path.rtt * 4, "{rate} Gb/s, {rtt} ms: {reached:?}");
    }
}

#[test]
fn auto_corrects_a_wrong_remembered_rate() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(50), 1.0);
    for wrong in [0.1, 10.0] {
        let rate_bytes_per_sec = wrong * path.rate_bytes_per_sec;
        let known =
            RememberedPath { rate_bytes_per_sec, capacity_bytes_per_sec: rate_bytes_per_sec, rtt: path.rtt };
        let config = Config { remembered: Some(known), ..config(&path) };
        let controller = registry::make("auto", &config, Signal::ALL).unwrap();
        let out = run(&path, vec![SimulatedFlow::new(controller, Duration::ZERO)], &[], secs(8.0), 1);
        assert!(later_share(&out, &path) > 0.97, "x {wrong}: {}", later_share(&out, &path));
        let queue = out.queue_secs(0.95, secs(4.0), secs(8.0));
        assert!(queue < 25e-3, "x {wrong}: queue {queue} s");
    }
}

#[test]
fn auto_ignores_random_loss_of_a_few_percent() {
    for loss in [0.001, 0.01, 0.03] {
        let path = SimulatedPath::new(GBPS, ms(20), 1.0).losing(loss);
        let share = later_share(&alone("auto", &path, path.rtt * 100), &path);
        assert!(share > 0.96 * (1.0 - loss), "{loss}: {share}");
    }
}

#[test]
fn auto_does_not_treat_a_busy_host_as_a_queue() {
    // A busy host sees acknowledgements late. A pause longer than a quarter of a round trip also stops sending, because the
    // bytes in flight are limited.
    for (rtt, every, busy, least) in
        [(19, 47, 6, 0.9), (19, 47, 9, 0.9), (19, 130, 20, 0.85), (8, 31, 5, 0.85), (150, 230, 40, 0.9)]
    {
        let path = SimulatedPath {
            busy_every: ms(every),
            busy_for: ms(busy),
            ..SimulatedPath::new(0.2 * GBPS, ms(rtt), 1.0)
        };
        let share = later_share(&alone("auto", &path, path.rtt * 200), &path);
        assert!(share > least, "{busy} of {every} ms, round trip {rtt} ms: {share}");
    }
}

#[test]
fn auto_yields_to_traffic_that_fills_a_small_buffer() {
    let path = SimulatedPath::new(GBPS, ms(20), 0.1);
    let out = alone("auto", &path, path.rtt * 100);
    let lost = out.flows[0].lost_bytes as f64 / out.flows[0].sent_bytes as f64;
    assert!(later_share(&out, &path) > 0.95 && lost < 0.02, "{} with {lost} lost", later_share(&out, &path));
}

/// Runs `flows` flows that start ten round trips apart, once for each seed; returns their shares from 60 to 100 round trips after
/// the last start.
fn several(path: &SimulatedPath, flows: u32) -> Vec<Vec<f64>> {
    let until = path.rtt * (10 * flows + 100);
    let runs = (1..=8).map(|seed| {
        let all = (0..flows).map(|i| SimulatedFlow::new(make("auto", path), path.rtt * 10 * i)).collect();
        let out = run(path, all, &[], until, seed);
        let share = |flow: &FlowOutcome| flow.rate_bytes_per_sec(until - path.rtt * 40, until);
        out.flows.iter().map(|flow| share(flow) / path.rate_bytes_per_sec).collect()
    });
    runs.collect()
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Returns the median ratio of the smallest to the largest share, and the median sum of the shares.
fn alike(path: &SimulatedPath, flows: u32) -> (f64, f64) {
    let shares = several(path, flows);
    let ratio = |shares: &Vec<f64>| {
        let (least, most) =
            shares.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &share| (a.min(share), b.max(share)));
        least / most
    };
    (
        middle(shares.iter().map(ratio).collect()),
        middle(shares.iter().map(|shares| shares.iter().sum()).collect()),
    )
}

#[test]
fn auto_flows_share_within_ten_percent() {
    for (rate, rtt, flows) in
        [(0.2, 19, 2), (1.0, 19, 2), (1.0, 150, 2), (1.0, 19, 4), (1.0, 150, 4), (0.1, 40, 4)]
    {
        let (ratio, together) = alike(&SimulatedPath::new(rate * GBPS, ms(rtt), 1.0), flows);
        let what = format!("{flows} flows, {rate} Gb/s, {rtt} ms: {ratio}, {together} together");
        assert!(ratio > 0.9 && together > 0.93, "{what}");
    }
}

/// Hosts that are busy at times do not change the shares.
#[test]
fn auto_flows_of_busy_hosts_share() {
    let mut path = SimulatedPath::new(GBPS, ms(19), 1.0);
    (path.noise, path.busy_every, path.busy_for) = (ms(1) / 5, ms(70), ms(5));
    for flows in [2, 4] {
        let (ratio, together) = alike(&path, flows);
        assert!(ratio > 0.6 && together > 0.9, "{flows} flows: {ratio}, {together} together");
    }
}

#[test]
fn auto_follows_a_path_that_changes() {
    let path = SimulatedPath::new(GBPS, ms(20), 1.0);
    let change =
        |at, rate| PathChange { at: secs(at), rate_bytes_per_sec: rate * GBPS, rtt: ms(20), is_down: false };
    let changes = [change(2.0, 0.4), change(5.0, 1.0)];
    let out =
        run(&path, vec![SimulatedFlow::new(make("auto", &path), Duration::ZERO)], &changes, secs(8.0), 1);
    assert_near("less", out.total_bytes_per_sec(secs(3.0), secs(5.0)), 0.4 * GBPS, 0.05);
    assert!(out.queue_secs(0.95, secs(3.0), secs(5.0)) < 25e-3);
    assert_near("more again", out.total_bytes_per_sec(secs(6.0), secs(8.0)), GBPS, 0.05);
}

#[test]
fn auto_follows_a_path_that_becomes_longer() {
    for rate in [1.0, 0.6] {
        let path = SimulatedPath::new(0.1 * GBPS, ms(40), 1.0);
        let change = |at, rate: f64, rtt| PathChange {
            at: secs(at),
            rate_bytes_per_sec: rate * path.rate_bytes_per_sec,
            rtt: ms(rtt),
            is_down: false,
        };
        let changes = [change(4.0, rate, 80), change(10.0, 1.0, 40)];
        let out = run(
            &path,
            vec![SimulatedFlow::new(make("auto", &path), Duration::ZERO)],
            &changes,
            secs(14.0),
            1,
        );
        let share = |from, to| out.total_bytes_per_sec(secs(from), secs(to)) / path.rate_bytes_per_sec;
        assert!(share(6.0, 10.0) > 0.9 * rate, "{rate}: {}", share(6.0, 10.0));
        assert!(share(11.0, 14.0) > 0.95, "back, {rate}: {}", share(11.0, 14.0));
        // A queue that others fill is not taken for a longer path.
        assert!(out.queue_secs(0.95, secs(6.0), secs(10.0)) < 25e-3);
    }
}

/// Runs two flows, the second ten round trips later; returns their shares from 400 to 1000 round trips.
fn beside(first: &str, second: &str, path: &SimulatedPath) -> (f64, f64) {
    let flows = vec![
        SimulatedFlow::new(make(first, path), Duration::ZERO),
        SimulatedFlow::new(make(second, path), path.rtt * 10),
    ];
    let (from, until) = (path.rtt * 400, path.rtt * 1_000);
    let out = run(path, flows, &[], until, 1);
    let share = |i: usize| out.flows[i].rate_bytes_per_sec(from, until) / path.rate_bytes_per_sec;
    (share(0), share(1))
}

#[test]
fn auto_is_not_starved_by_traffic_that_fills_the_queue() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 1.0);
    let (cubic, auto) = beside("cubic", "auto", &path);
    assert!(auto > 0.3 && cubic > 0.4, "cubic {cubic}, auto {auto}");
}

#[test]
fn polite_leaves_tcp_its_share() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 1.0);
    let (cubic, polite) = beside("cubic", "polite", &path);
    assert!(cubic >= 0.45 && polite > 0.2, "cubic {cubic}, polite {polite}");
}

#[test]
fn polite_fills_a_path_without_other_traffic() {
    let path = SimulatedPath::new(GBPS, ms(20), 1.0).losing(0.01);
    let share = later_share(&alone("polite", &path, path.rtt * 100), &path);
    assert!(share > 0.95, "{share}");
}

#[test]
fn an_outage_ends() {
    let path = SimulatedPath::new(0.1 * GBPS, ms(20), 1.0);
    let change = |at, is_down| PathChange {
        at: secs(at),
        rate_bytes_per_sec: path.rate_bytes_per_sec,
        rtt: path.rtt,
        is_down,
    };
    let changes = [change(2.0, true), change(7.0, false)];
    for name in ["auto", "polite", "cubic", "bbr", "tfrc", "udt"] {
        let flows = vec![SimulatedFlow::new(make(name, &path), Duration::ZERO)];
        let out = run(&path, flows, &changes, secs(40.0), 1);
        let share = out.total_bytes_per_sec(secs(30.0), secs(40.0)) / path.rate_bytes_per_sec;
        assert!(share > 0.5, "{name}: {share}");
    }
}
