//! The other host's report on its sending counts as knowledge of the direction to this host, and decides the
//! protocol of a link.

use std::time::Duration;

use corridor_plan::{
    Direction, HostFacts, MAX_AGE, Measurement, Path, PathReport, SendMethod, advise, link_protocol,
    link_streams,
};

const NOW: Duration = Duration::from_secs(1_000_000);

fn method(protocol: &str) -> SendMethod {
    SendMethod { protocol: protocol.into(), controller: "cubic".into(), streams: 1 }
}

/// Makes a server's path to its client: `lost_of_a_million` packets lost, and 25 MB/s achieved once.
fn of_server(lost_of_a_million: u64) -> Path {
    let mut path = Path::default();
    for _ in 0..3 {
        let lost = lost_of_a_million;
        path.record(NOW, Measurement::Packets { direction: Direction::Up, sent: 1_000_000, lost });
        path.record(NOW, Measurement::Achieved(Direction::Up, method("tcp"), 25e6));
        path.record(NOW, Measurement::Mtu(Direction::Up, 1500));
    }
    path
}

/// Makes a client's path with a known round trip and this report of the server.
fn of_client(told: Option<PathReport>) -> Path {
    let mut path = Path::default();
    (0..3).for_each(|_| assert!(!path.record(NOW, Measurement::RoundTrip(0.150))));
    told.map(|told| path.record(NOW, Measurement::Report(Box::new(told))));
    path
}

#[test]
fn a_server_report_describes_the_direction_to_the_client() {
    let alone = of_client(None);
    assert!(link_protocol(&alone, NOW).basis.starts_with("unknown: "));
    for (lost, protocol) in [(0, "tcp"), (1000, "quic")] {
        let told = of_server(lost).one_way(Direction::Up).to_report(NOW);
        let path = of_client(Some(told.clone()));
        let one_way = path.one_way(Direction::Down);
        assert_eq!(one_way.to_report(NOW), told);
        assert_eq!(
            path.one_way(Direction::Up).reported_for(NOW),
            None,
            "the report is about the other direction"
        );
        let advised = link_protocol(&path, NOW);
        assert_eq!(advised.value, Some(protocol), "{lost}: {}", advised.basis);
        let later = NOW + Duration::from_secs(3600);
        assert_eq!(one_way.reported_for(later), Some(Duration::from_secs(3600)));
        assert!(link_protocol(&path, NOW + MAX_AGE * 2).value.is_none(), "all measurements are too old");
    }
}

#[test]
fn slow_tcp_explained_by_loss_is_no_argument_for_tcp() {
    // 0.1 % over 150 ms: a CUBIC flow gets about a megabyte per second, and this one did.
    let law = corridor_plan::cubic_bytes_per_sec(1448.0, 0.150, 1e-3);
    let of = |share: f64, lost: u64| {
        let mut path = Path::default();
        for _ in 0..3 {
            path.record(NOW, Measurement::Packets { direction: Direction::Up, sent: 1_000_000, lost });
            path.record(NOW, Measurement::Achieved(Direction::Up, method("tcp"), law * share));
        }
        link_protocol(&of_client(Some(path.one_way(Direction::Up).to_report(NOW))), NOW)
    };
    let advised = of(0.9, 1000);
    assert_eq!(advised.value, Some("quic"), "{}", advised.basis);
    assert!(advised.basis.contains("as TCP has shown"), "{}", advised.basis);
    // The application was slower than either protocol.
    assert_eq!(of(0.1, 1000).value, Some("tcp"));
}

#[test]
fn few_packets_without_loss_do_not_favor_tcp_where_recovery_takes_long() {
    for (rtt_secs, train_bytes, protocol) in [(0.150, 1_250_000, "quic"), (0.020, 625_000, "tcp")] {
        let mut path = Path::default();
        for _ in 0..3 {
            path.record(NOW, Measurement::RoundTrip(rtt_secs));
            path.record(NOW, Measurement::Packets { direction: Direction::Down, sent: 1_000, lost: 0 });
            path.record(NOW, Measurement::Train(Direction::Down, train_bytes, Duration::from_millis(10)));
        }
        let advised = link_protocol(&path, NOW);
        assert_eq!(advised.value, Some(protocol), "{}", advised.basis);
        assert_eq!(advised.basis.contains("until the path is full again"), protocol == "quic");
    }
}

#[test]
fn a_new_report_replaces_the_previous_one() {
    let told = |lost| of_server(lost).one_way(Direction::Up).to_report(NOW);
    let mut path = of_client(Some(told(1000)));
    path.record(NOW, Measurement::Report(Box::new(told(0))));
    assert!(path.one_way(Direction::Down).loss(NOW).is_some_and(|loss| loss.value.abs() < 1e-12));
    let mut nonsense = told(0);
    nonsense.loss = nonsense.mtu_bytes;
    path.record(NOW, Measurement::Report(Box::new(nonsense)));
    assert_eq!(path.one_way(Direction::Down).to_report(NOW), told(0), "1500 is no share of packets");
}

#[test]
fn few_measurements_give_no_advice() {
    let mut path = of_client(None);
    path.record(NOW, Measurement::Packets { direction: Direction::Down, sent: 100, lost: 0 });
    path.record(NOW, Measurement::Achieved(Direction::Down, method("tcp"), 25e6));
    let advised = link_protocol(&path, NOW);
    assert!(advised.value.is_none() && advised.basis.contains("too few measurements"), "{}", advised.basis);
}

#[test]
fn tcp_is_chosen_for_a_day_if_udp_is_blocked() {
    let told = of_server(1000).one_way(Direction::Up).to_report(NOW);
    let mut path = of_client(Some(told));
    path.record(NOW, Measurement::Udp(false));
    let advised =
        |hours: u64, path: &Path| link_protocol(path, NOW + Duration::from_secs(hours * 3600)).value;
    assert_eq!(advised(1, &path), Some("tcp"));
    assert_eq!(advised(25, &path), Some("quic"), "QUIC is tried again");
    path.record(NOW, Measurement::Udp(true));
    assert_eq!(advised(1, &path), Some("quic"), "UDP has got through since");
}

#[test]
fn streams_are_as_few_as_fill_the_path_and_several_only_after_packet_trains() {
    let told =
        |server: &Path| link_streams(&of_client(Some(server.one_way(Direction::Up).to_report(NOW))), NOW);
    let mut server = of_server(1000);
    assert_eq!(told(&server).value, None, "the rate of TCP does not show what more streams would reach");
    (0..3).for_each(|_| {
        server.record(NOW, Measurement::Train(Direction::Up, 1_250_000, Duration::from_millis(10)));
    });
    let by_law = told(&server);
    assert!(by_law.value.is_some_and(|streams| streams > 1), "25 of 125 MB/s: {}", by_law.basis);
    for streams in [12, 4] {
        (0..3).for_each(|_| {
            let method = SendMethod { streams, ..method("tcp") };
            server.record(NOW, Measurement::Achieved(Direction::Up, method, 122e6));
        });
        assert_eq!(told(&server).value, Some(streams), "the fewest streams that filled the path");
        let known = of_client(Some(server.one_way(Direction::Up).to_report(NOW)));
        let said = advise(&known, Direction::Down, &HostFacts::default(), NOW);
        assert_eq!(
            said.protocol.value == Some("tcp"),
            said.streams.value == Some(streams),
            "{}",
            said.streams.basis
        );
    }
}

#[test]
fn tcp_is_chosen_where_it_fills_a_lossy_path() {
    let mut server = of_server(1000);
    server.record(NOW, Measurement::Train(Direction::Up, 262_500, Duration::from_millis(10)));
    let path = of_client(Some(server.one_way(Direction::Up).to_report(NOW)));
    let advised = link_protocol(&path, NOW);
    assert_eq!(advised.value, Some("tcp"), "25 of 26 MB/s, three times: {}", advised.basis);
    // The receiver's fastest seconds do not count where the sender reports its achieved rate.
    let mut path = path;
    (0..5).for_each(|_| {
        path.record(NOW, Measurement::Achieved(Direction::Down, method("quic"), 26e6));
    });
    assert_eq!(link_protocol(&path, NOW).value, Some("tcp"), "hardly faster");
}

#[test]
fn one_report_of_many_packets_outweighs_many_measurements_of_few() {
    let mut server = Path::default();
    server.record(NOW, Measurement::Packets { direction: Direction::Up, sent: 1_000_000, lost: 1000 });
    let mut path = of_client(Some(server.one_way(Direction::Up).to_report(NOW)));
    for _ in 0..16 {
        path.record(NOW, Measurement::Packets { direction: Direction::Down, sent: 10, lost: 0 });
    }
    let loss = path.one_way(Direction::Down).loss(NOW).expect("known");
    assert!((loss.value - 0.001).abs() < 1e-9, "{loss:?}");
}
