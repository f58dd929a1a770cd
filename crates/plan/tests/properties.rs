//! After arbitrary input, estimates and advice stay within their bounds, are numbers, and can be stored and
//! read back.

use std::time::Duration;

use corridor_plan::{
    Direction, HostFacts, Measurement, Path, SendMethod, TransferLimit, advise, bandwidth_delay_bytes,
    cubic_bytes_per_sec, preflight, reno_bytes_per_sec,
};
use proptest::prelude::*;

/// Largest text of a stored path, bytes: the limits of the store's folder assume it.
const MOST_STORED_BYTES: usize = 128 << 10;

fn odd_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 1e-6..1e10,
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0), Just(f64::MAX), Just(5e-324)],
    ]
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![4 => 0_u64..100_000_000_000, 1 => Just(0), 1 => Just(u64::MAX)].prop_map(Duration::from_nanos)
}

fn measurement() -> impl Strategy<Value = Measurement> {
    let direction = || prop_oneof![Just(Direction::Up), Just(Direction::Down)];
    let method = (0..40_u32).prop_map(|n| SendMethod {
        protocol: "tcp".into(),
        controller: n.to_string(),
        streams: n,
    });
    prop_oneof![
        odd_number().prop_map(Measurement::RoundTrip),
        odd_number().prop_map(Measurement::LeastRoundTrip),
        (direction(), any::<u64>(), span())
            .prop_map(|(d, bytes, spread)| Measurement::Train(d, bytes, spread)),
        (direction(), any::<u64>(), any::<u64>()).prop_map(|(direction, sent, lost)| Measurement::Packets {
            direction,
            sent,
            lost
        }),
        (direction(), any::<u64>(), any::<u64>())
            .prop_map(|(direction, sent, late)| Measurement::Reordered { direction, sent, late }),
        (direction(), span(), span()).prop_map(|(d, sent, received)| Measurement::Transit(d, sent, received)),
        (direction(), any::<u32>()).prop_map(|(d, bytes)| Measurement::Mtu(d, bytes)),
        (direction(), method, odd_number())
            .prop_map(|(d, method, rate)| Measurement::Achieved(d, method, rate)),
    ]
}

fn is_fine(limit: &TransferLimit) -> bool {
    limit.bits_per_sec.is_finite() && limit.bits_per_sec > 0.0 && !limit.why.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn estimates_are_numbers_within_bounds_for_any_input(
        measured in proptest::collection::vec((span(), measurement()), 0..200),
        later in span(),
    ) {
        let mut path = Path::default();
        for (at, measurement) in measured {
            path.record(at, measurement);
        }
        prop_assert!(path.is_sound());
        let now = path.recorded_at().saturating_add(later);
        let host = HostFacts { tcp_rmem_max_bytes: Some(6 << 20), cipher_bytes_per_sec: Some(1e9), ..HostFacts::default() };
        for direction in [Direction::Up, Direction::Down] {
            let one_way = path.one_way(direction);
            let estimates = [path.rtt.least(now), path.rtt.trimmed_mean(now), one_way.capacity(now),
                one_way.loss(now), one_way.reordering(now), one_way.mtu_bytes(now), one_way.rate(now).map(|r| r.0)];
            for e in estimates.into_iter().flatten() {
                prop_assert!(e.low <= e.value && e.value <= e.high, "{:?}", e);
                prop_assert!((0.0..=1.0).contains(&e.confidence) && e.value.is_finite() && e.high.is_finite(), "{:?}", e);
            }
            let said = advise(&path, direction, &host, now);
            prop_assert!(said.streams.value.is_none_or(|n| (1..=corridor_plan::MAX_STREAMS).contains(&n)));
            prop_assert!(preflight(&host, &path, direction, now).iter().all(is_fine));
        }
        let text = serde_json::to_string(&path).unwrap();
        prop_assert!(text.len() <= MOST_STORED_BYTES, "{} bytes", text.len());
        let again: Path = serde_json::from_str(&text).unwrap();
        prop_assert!(again.is_sound());
        prop_assert_eq!(again.recorded_at(), path.recorded_at());
    }

    #[test]
    fn more_loss_and_longer_round_trips_are_never_faster(
        rtt in 1e-4..1.0_f64, loss in 1e-8..0.5_f64, more in 1.0..100.0_f64,
    ) {
        for law in [reno_bytes_per_sec, cubic_bytes_per_sec] {
            let known = law(1448.0, rtt, loss);
            prop_assert!(known.is_finite() && known > 0.0);
            prop_assert!(law(1448.0, rtt, (loss * more).min(1.0)) <= known);
            prop_assert!(law(1448.0, rtt * more, loss) <= known);
        }
        prop_assert!(cubic_bytes_per_sec(1448.0, rtt, loss) >= reno_bytes_per_sec(1448.0, rtt, loss));
        prop_assert!(bandwidth_delay_bytes(1e6, rtt) <= bandwidth_delay_bytes(1e6 * more, rtt));
    }

    #[test]
    fn a_faster_path_never_gets_a_lower_estimate(rates in proptest::collection::vec(1e3..1e10_f64, 1..60), factor in 1.0..1e3_f64) {
        let estimate = |factor: f64| {
            let mut path = Path::default();
            for rate in &rates {
                let spread = Duration::from_secs_f64(1e6 / (rate * factor));
                path.record(Duration::ZERO, Measurement::Train(Direction::Up, 1_000_000, spread));
            }
            path.one_way(Direction::Up).capacity(Duration::ZERO).unwrap().value
        };
        // A spread is stored to the nanosecond.
        prop_assert!(estimate(factor) >= estimate(1.0) * 0.99);
    }

    #[test]
    fn invalid_stored_paths_are_recognized(numbers in proptest::collection::vec(odd_number(), 1..100)) {
        let samples: Vec<String> =
            numbers.iter().map(|n| format!(r#"{{"at":{{"secs":1,"nanos":0}},"value":{}}}"#, if n.is_finite() { *n } else { -3.0 })).collect();
        let mut value = serde_json::to_value(Path::default()).unwrap();
        value["up"]["capacity"]["trains"]["samples"] = serde_json::from_str(&format!("[{}]", samples.join(","))).unwrap();
        let path: Path = serde_json::from_value(value).unwrap();
        let is_sound = numbers.len() <= corridor_plan::MAX_SAMPLES && numbers.iter().all(|n| (1e-12..1e18).contains(n));
        prop_assert_eq!(path.is_sound(), is_sound);
    }
}
