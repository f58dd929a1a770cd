//! Controllers give usable answers after arbitrary events in arbitrary order.

use std::time::Duration;

use corridor_control::{
    Ack, Config, Controller, DeliverySample, LostPackets, MAX_QUANTUM_BYTES, MAX_RATE_BYTES_PER_SEC,
    MAX_WINDOW_BYTES, MIN_RATE_BYTES_PER_SEC, PacketEvent, ReceiverReport, RememberedPath, SendLimits,
    Signal, registry,
};
use proptest::prelude::*;

fn odd_number() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e12f64, Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), 1e-300..1.0f64]
}

fn odd_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_000u64, Just(0), Just(1500), 0..1u64 << 40, Just(u64::MAX)]
}

fn odd_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..400_000u64).prop_map(Duration::from_micros),
        Just(Duration::ZERO),
        Just(Duration::from_secs(1 << 33)),
    ]
}

fn delivery() -> impl Strategy<Value = DeliverySample> {
    (odd_number(), odd_bytes(), odd_bytes(), any::<bool>()).prop_map(|(rate, delivered, at_send, limited)| {
        DeliverySample {
            rate_bytes_per_sec: rate,
            delivered_bytes: delivered,
            delivered_at_send_bytes: at_send,
            is_app_limited: limited,
        }
    })
}

fn event() -> impl Strategy<Value = PacketEvent> {
    let ack = (
        odd_bytes(),
        odd_duration(),
        prop::option::of(odd_duration()),
        prop::option::of(delivery()),
        odd_bytes(),
    );
    prop_oneof![
        6 => ack.prop_map(|(bytes, sent_at, rtt, delivery, in_flight_bytes)| {
            PacketEvent::Ack(Ack { bytes, sent_at, rtt, delivery, in_flight_bytes })
        }),
        3 => (odd_bytes(), odd_bytes())
            .prop_map(|(bytes, in_flight_bytes)| PacketEvent::Sent { bytes, in_flight_bytes }),
        3 => (odd_bytes(), odd_duration(), odd_bytes()).prop_map(|(bytes, sent_at, in_flight_bytes)| {
            PacketEvent::Loss(LostPackets { bytes, sent_at, in_flight_bytes })
        }),
        1 => Just(PacketEvent::Timeout),
        1 => Just(PacketEvent::AppLimited),
        1 => (odd_bytes(), odd_duration())
            .prop_map(|(bytes, sent_at)| PacketEvent::Spurious { bytes, sent_at }),
        1 => (prop::option::of(odd_number()), prop::option::of(odd_number())).prop_map(|(a, c)| {
            PacketEvent::Report(ReceiverReport { arrival_bytes_per_sec: a, capacity_bytes_per_sec: c })
        }),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let remembered = (odd_number(), odd_number(), odd_duration()).prop_map(|(rate, capacity, rtt)| {
        RememberedPath { rate_bytes_per_sec: rate, capacity_bytes_per_sec: capacity, rtt }
    });
    (
        1..65_536u64,
        prop::option::of(odd_duration()),
        prop::option::of(remembered),
        prop::option::of(odd_number()),
    )
        .prop_map(|(packet_bytes, handshake_rtt, remembered, rate)| Config {
            handshake_rtt,
            remembered,
            rate_bytes_per_sec: rate,
            ..Config::new(packet_bytes)
        })
}

fn is_usable(limits: SendLimits, packet_bytes: u64) -> bool {
    let rate = limits.rate_bytes_per_sec();
    (MIN_RATE_BYTES_PER_SEC..=MAX_RATE_BYTES_PER_SEC).contains(&rate)
        && (packet_bytes..=MAX_WINDOW_BYTES).contains(&limits.window_bytes())
        && (packet_bytes..=MAX_QUANTUM_BYTES).contains(&limits.quantum_bytes())
}

/// Simulates a clean path of 12.5 MB/s and 50 ms for `secs`; returns the rate at its end.
fn recovers(controller: &mut dyn Controller, from: Duration, packet_bytes: u64, secs: u64) -> f64 {
    let rtt = Duration::from_millis(50);
    let mut now = from;
    let mut delivered = 1 << 41;
    while now < from + Duration::from_secs(secs) {
        now += Duration::from_millis(5);
        let bytes = 12_500_000 / 200;
        delivered += bytes;
        let delivery = DeliverySample {
            rate_bytes_per_sec: 12.5e6,
            delivered_bytes: delivered,
            delivered_at_send_bytes: delivered - 10 * bytes,
            is_app_limited: false,
        };
        controller.on(now, &PacketEvent::Sent { bytes, in_flight_bytes: packet_bytes });
        controller.on(
            now,
            &PacketEvent::Ack(Ack {
                bytes,
                sent_at: now.saturating_sub(rtt),
                rtt: Some(rtt),
                delivery: Some(delivery),
                in_flight_bytes: packet_bytes,
            }),
        );
        let report =
            ReceiverReport { arrival_bytes_per_sec: Some(12.5e6), capacity_bytes_per_sec: Some(12.5e6) };
        controller.on(now, &PacketEvent::Report(report));
    }
    controller.limits().rate_bytes_per_sec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn limits_stay_usable(
        config in config(),
        events in prop::collection::vec((0..50_000u64, event()), 1..200),
    ) {
        for entry in registry::ALL {
            let mut controller = registry::make(entry.name, &config, Signal::ALL).unwrap();
            let mut now = Duration::ZERO;
            for (micros, event) in &events {
                now += Duration::from_micros(*micros);
                controller.on(now, event);
                let limits = controller.limits();
                prop_assert!(is_usable(limits, config.packet_bytes), "{}: {limits:?} after {event:?}", entry.name);
            }
        }
    }

    /// No number of losses and timeouts leaves a controller stuck at its minimum.
    #[test]
    fn a_bad_time_ends(bad in prop::collection::vec(0..3u8, 1..60)) {
        for entry in registry::ALL.iter().filter(|e| e.name != "rate") {
            let mut config = Config::new(1500);
            config.handshake_rtt = Some(Duration::from_millis(50));
            let mut controller = registry::make(entry.name, &config, Signal::ALL).unwrap();
            recovers(&mut *controller, Duration::ZERO, 1500, 1);
            let mut now = Duration::from_secs(1);
            for kind in &bad {
                now += Duration::from_millis(100);
                let loss = LostPackets { bytes: 30_000, sent_at: now.saturating_sub(Duration::from_millis(50)), in_flight_bytes: 0 };
                match kind {
                    0 => controller.on(now, &PacketEvent::Timeout),
                    _ => controller.on(now, &PacketEvent::Loss(loss)),
                }
            }
            let rate = recovers(&mut *controller, now, 1500, 60);
            prop_assert!(rate > 0.5e6, "{}: {rate} a minute later", entry.name);
        }
    }
}
