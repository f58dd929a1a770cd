//! Synthetic paths with known properties: the error of estimates, and the advice and preflight for them.
//! Seeded, in virtual time.

use std::time::Duration;

use corridor_plan::{
    Advice, Direction, HostFacts, Measurement, Path, SendMethod, advise, bandwidth_delay_bytes, preflight,
};

const NOW: Duration = Duration::from_secs(1_000_000);

/// Linear congruential generator of numbers from 0 to 1, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Bottleneck with cross traffic before a host whose timer delivers packets late.
struct Bottleneck {
    bytes_per_sec: f64,
    /// Share of the trains that cross traffic interrupts, and the most cross traffic in one, in trains.
    disturbed: f64,
    cross: f64,
    /// Longest delay of the delivery of packets, seconds.
    lateness_secs: f64,
}

impl Bottleneck {
    fn train(&self, dice: &mut Dice, bytes: u64) -> Measurement {
        let true_secs = bytes as f64 / self.bytes_per_sec;
        let cross = if dice.roll() < self.disturbed { 1.0 + self.cross * dice.roll() } else { 1.0 };
        // A late first packet makes the train look short, a late last packet long.
        let lateness = self.lateness_secs * (dice.roll() - dice.roll());
        let spread = (true_secs * cross + lateness).max(1e-6);
        Measurement::Train(Direction::Down, bytes, Duration::from_secs_f64(spread))
    }
}

/// Records forty trains; returns the relative error of the estimate.
fn error(of: &Bottleneck, seed: u64, train_bytes: u64) -> f64 {
    let (mut path, mut dice) = (Path::default(), Dice(seed));
    for _ in 0..40 {
        path.record(NOW, of.train(&mut dice, train_bytes));
    }
    let found = path.one_way(Direction::Down).capacity(NOW).expect("trains were recorded");
    assert!(found.low <= found.value && found.value <= found.high && found.confidence > 0.0, "{found:?}");
    (found.value / of.bytes_per_sec - 1.0).abs()
}

#[test]
fn capacity_is_found_within_a_tenth_through_cross_traffic_and_late_timers() {
    let (mut errors, seeds) = (Vec::new(), 50);
    for rate in [1_250_000_u32, 12_500_000, 125_000_000] {
        // The train lasts 20 ms at the bottleneck: long enough for the timer.
        let train_bytes = u64::from(rate / 50);
        for seed in 0..seeds {
            let of =
                Bottleneck { bytes_per_sec: rate.into(), disturbed: 0.5, cross: 1.0, lateness_secs: 1e-3 };
            errors.push(error(&of, seed, train_bytes));
        }
    }
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| **error < 0.1).count();
    assert!(within * 100 >= errors.len() * 95, "95 % within a tenth: {within} of {}", errors.len());
    assert!(errors[errors.len() / 2] < 0.03, "half of them within 3 %: {}", errors[errors.len() / 2]);
}

#[test]
fn a_rerouted_path_is_noticed_and_the_old_one_forgotten() {
    let (mut path, mut dice) = (Path::default(), Dice(7));
    let mut record = |path: &mut Path, secs: f64| {
        path.record(NOW, Measurement::RoundTrip(secs * (1.0 + 0.05 * dice.roll())))
    };
    (0..30).for_each(|_| assert!(!record(&mut path, 0.019)));
    let changed: Vec<bool> = (0..3).map(|_| record(&mut path, 0.150)).collect();
    assert_eq!(changed, [false, false, true], "the third in a row");
    let least = path.rtt.least(NOW).expect("recorded");
    assert!((0.150..0.158).contains(&least.value), "{least:?}");
}

fn method(protocol: &str, controller: &str) -> SendMethod {
    SendMethod { protocol: protocol.into(), controller: controller.into(), streams: 1 }
}

/// Makes a fully known path: `mbit` in both directions by trains, round trips of ten connections, a million
/// packets.
fn known(mbit: u32, rtt_secs: f64, lost_of_a_million: u64) -> Path {
    let mut path = Path::default();
    let bytes = u64::from(mbit) * 2_500;
    for direction in [Direction::Up, Direction::Down] {
        for _ in 0..10 {
            path.record(NOW, Measurement::RoundTrip(rtt_secs));
            path.record(NOW, Measurement::Train(direction, bytes, Duration::from_millis(20)));
        }
        let lost = lost_of_a_million;
        path.record(NOW, Measurement::Packets { direction, sent: 1_000_000, lost });
        path.record(NOW, Measurement::Mtu(direction, 1500));
    }
    path
}

fn advice(path: &Path) -> Advice {
    let host = HostFacts { congestion_control: Some("cubic".into()), ..HostFacts::default() };
    advise(path, Direction::Down, &host, NOW)
}

#[test]
fn an_unknown_path_gives_only_the_reason() {
    let said = advice(&Path::default());
    let unknowns = [
        (said.protocol.value.is_none(), &said.protocol.basis),
        (said.controller.value.is_none(), &said.controller.basis),
        (said.rate_bytes_per_sec.value.is_none(), &said.rate_bytes_per_sec.basis),
        (said.streams.value.is_none(), &said.streams.basis),
        (said.buffer_bytes.value.is_none(), &said.buffer_bytes.basis),
        (said.mtu_bytes.value.is_none(), &said.mtu_bytes.basis),
    ];
    for (is_none, basis) in unknowns {
        assert!(is_none && basis.starts_with("unknown: "), "{basis}");
    }
    assert!(preflight(&HostFacts::default(), &Path::default(), Direction::Down, NOW).is_empty());
}

#[test]
fn quic_is_advised_for_long_lossy_paths_and_tcp_for_clean_ones() {
    for (mbit, rtt_secs, lost, protocol) in [
        (1000, 0.150, 1000, "quic"),
        (1000, 0.150, 0, "tcp"),
        (100, 0.0076, 100, "tcp"),
        (50, 0.019, 10_000, "quic"),
        (10_000, 0.0003, 0, "tcp"),
    ] {
        let said = advice(&known(mbit, rtt_secs, lost));
        assert_eq!(
            said.protocol.value,
            Some(protocol),
            "{mbit} Mb/s {rtt_secs} s {lost}: {}",
            said.protocol.basis
        );
        let rate = said.rate_bytes_per_sec.value.expect("known");
        assert!((rate / (f64::from(mbit) * 125e3) - 1.0).abs() < 0.01);
        let buffer = said.buffer_bytes.value.expect("known") as f64;
        // A buffer below the default of the system is never advised.
        let expected = (2.0 * bandwidth_delay_bytes(rate, rtt_secs)).max(4_194_304.0);
        assert!((buffer / expected - 1.0).abs() < 0.01);
        assert!(said.protocol.confidence > 0.1 && said.mtu_bytes.value == Some(1500));
    }
}

#[test]
fn measurements_take_precedence_over_theory() {
    let mut path = known(1000, 0.150, 1000);
    for _ in 0..5 {
        path.record(NOW, Measurement::Achieved(Direction::Down, method("tcp", "bbr"), 110e6));
        path.record(NOW, Measurement::Achieved(Direction::Down, method("quic", "auto"), 100e6));
    }
    let said = advice(&path).protocol;
    assert_eq!(said.value, Some("tcp"), "{}", said.basis);
    assert!(said.basis.contains("880.0 Mb/s") && said.basis.contains("800.0 Mb/s"), "{}", said.basis);
}

#[test]
fn too_few_packets_make_advice_unsure() {
    let sure = advice(&known(100, 0.05, 0)).protocol;
    let mut few = Path::default();
    for _ in 0..10 {
        few.record(NOW, Measurement::RoundTrip(0.05));
        few.record(NOW, Measurement::Train(Direction::Down, 250_000, Duration::from_millis(20)));
    }
    few.record(NOW, Measurement::Packets { direction: Direction::Down, sent: 200, lost: 0 });
    let unsure = advice(&few).protocol;
    assert_eq!(sure.value, unsure.value);
    assert!(unsure.basis.contains("too few packets") && unsure.confidence < sure.confidence);
}

#[test]
fn the_preflight_names_the_binding_limit_and_its_remedy() {
    // Limits that hold TCP at 224 Mb/s over 150 ms.
    let host = HostFacts {
        tcp_rmem_max_bytes: Some(64 << 20),
        tcp_wmem_max_bytes: Some(4 << 20),
        rmem_max_bytes: Some(212_992),
        congestion_control: Some("cubic".into()),
        cipher_bytes_per_sec: Some(3e9),
        cores: Some(2),
        ..HostFacts::default()
    };
    let path = known(1000, 0.150, 0);
    let limits = preflight(&host, &path, Direction::Up, NOW);
    let tcp = limits.iter().find(|limit| limit.is_binding).expect("a limit of TCP");
    assert_eq!((tcp.name, tcp.protocol), ("tcp send buffer", Some("tcp")));
    assert!((tcp.bits_per_sec / 1e6 - 223.7).abs() < 0.1, "{tcp:?}");
    assert_eq!(tcp.change.as_deref(), Some("sysctl -w net.ipv4.tcp_wmem='4096 16384 37500000'"));
    let limits = preflight(&host, &path, Direction::Down, NOW);
    let quic = limits.iter().find(|limit| limit.is_binding).expect("a limit of QUIC");
    assert_eq!((quic.name, quic.protocol), ("udp receive buffer", Some("quic")));
    assert_eq!(quic.change.as_deref(), Some("sysctl -w net.core.rmem_max=1250000"));
    assert!(limits.windows(2).all(|pair| pair[0].bits_per_sec <= pair[1].bits_per_sec));
}

#[test]
fn the_preflight_includes_network_cards_and_the_cost_of_packets() {
    let host = HostFacts {
        mtu_bytes: Some(1500),
        interface: Some("eth0".into()),
        card_bits_per_sec: Some(1e9),
        udp_bytes_per_sec: Some(3e8),
        udp_packets_at_once: Some(1),
        cipher_bytes_per_sec: Some(3e9),
        ..HostFacts::default()
    };
    let of = |host: &HostFacts, name| {
        let limits = preflight(host, &Path::default(), Direction::Up, NOW);
        limits.into_iter().find(|limit| limit.name == name).expect("a limit")
    };
    let (card, packets) = (of(&host, "network card"), of(&host, "udp packets"));
    assert!(card.is_binding && card.why.contains("eth0"), "{card:?}");
    assert!(!packets.is_binding && packets.protocol == Some("quic"), "{packets:?}");
    assert!(packets.change.expect("a change").contains("tx-udp-segmentation"));
    let slow = HostFacts { card_bits_per_sec: Some(100e9), udp_packets_at_once: Some(10), ..host };
    let packets = of(&slow, "udp packets");
    assert!(
        packets.is_binding && packets.change.as_deref().is_some_and(|change| change.contains("mtu 9000"))
    );
}
