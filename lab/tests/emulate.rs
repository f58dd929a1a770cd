//! An emulated link with real packets: only the link loses packets, and nothing remains after its end. Counts and bytes
//! only; `corridor lab check` measures times and shares. Skipped with a message without root or TUN devices.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use corridor_lab::emulate::{Change, Engine, Options, Running, change, down, stats_of, up};

/// Creates a link named after the test and the process; `None` if the machine does not support it.
fn link(name: &str, options: &Options) -> Option<Running> {
    let name = format!("{name}{}", std::process::id());
    match up(&name, options, Engine::Tun) {
        Ok(link) => Some(link),
        Err(error) => {
            assert!(!Path::new("/dev/net/tun").exists() || !is_root(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| u8::try_from(i.wrapping_mul(2_654_435_761) >> 7 & 0xFF).expect("a byte")).collect()
}

/// Sends `sent` by TCP from a to b; returns the bytes that arrived.
fn transferred(link: &Running, sent: &[u8]) -> Vec<u8> {
    let listener = link.inside(1, || TcpListener::bind("10.77.0.2:9000")).expect("inside").expect("bound");
    let mut stream =
        link.inside(0, || TcpStream::connect("10.77.0.2:9000")).expect("inside").expect("connected");
    let (mut taken, _) = listener.accept().expect("a connection");
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .spawn_scoped(scope, move || stream.write_all(sent).expect("sent"))
            .expect("a thread");
        let mut received = Vec::new();
        taken.read_to_end(&mut received).expect("received");
        received
    })
}

#[test]
fn tcp_arrives_byte_for_byte_through_loss_jitter_and_late_packets() {
    let options = Options {
        rate: "200mbit".into(),
        rtt: "4ms".into(),
        jitter: "1ms".into(),
        loss: "2%".into(),
        late: "2%:2ms".into(),
        ..Options::default()
    };
    let Some(link) = link("tcp", &options) else { return };
    let sent = bytes(3_000_000);
    assert!(transferred(&link, &sent) == sent, "other bytes arrived");
    let counted = link.stats().forward;
    assert!(counted.packets_in >= 2_000, "{counted:?}");
    assert!(counted.packets_lost > 0 && counted.packets_late > 0, "{counted:?}");
    assert!(counted.bytes_in > 3_000_000, "{counted:?}");
    assert_eq!(counted.packets_failed, 0, "{counted:?}");
}

#[test]
fn every_datagram_is_accounted_for() {
    let options =
        Options { rate: "none".into(), rtt: "2ms".into(), loss: "10%".into(), ..Options::default() };
    let Some(link) = link("udp", &options) else { return };
    let receiver = link.inside(1, || UdpSocket::bind("10.77.0.2:9000")).expect("inside").expect("bound");
    receiver.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let sender = link.inside(0, || UdpSocket::bind("10.77.0.1:0")).expect("inside").expect("bound");
    let mut arrived = 0;
    // Few at a time: packets that a socket's buffer drops are not lost by the link.
    for _ in 0..100 {
        for number in 0..20u8 {
            sender.send_to(&[number; 100], "10.77.0.2:9000").expect("sent");
        }
        std::thread::sleep(Duration::from_millis(2));
        receiver.set_nonblocking(true).expect("set");
        while receiver.recv(&mut [0; 200]).is_ok() {
            arrived += 1;
        }
        receiver.set_nonblocking(false).expect("set");
    }
    while receiver.recv(&mut [0; 200]).is_ok() {
        arrived += 1;
    }
    let counted = link.stats().forward;
    assert_eq!(counted.packets_in, 2_000, "{counted:?}");
    assert_eq!(counted.packets_in, counted.packets_out + counted.packets_lost, "{counted:?}");
    assert_eq!(counted.packets_out, arrived, "{counted:?}");
    assert!((120..280).contains(&counted.packets_lost), "{counted:?}");
}

#[test]
fn hosts_of_one_side_share_the_link_and_receive_only_their_packets() {
    let options = Options { hosts: 3, rtt: "2ms".into(), ..Options::default() };
    let Some(link) = link("hosts", &options) else { return };
    let sender = link.inside(0, || UdpSocket::bind("10.77.0.1:0")).expect("inside").expect("bound");
    for host in 1..=3usize {
        let address = format!("{}:9000", link.addresses()[host]);
        let receiver = link.inside(host, || UdpSocket::bind(&address)).expect("inside").expect("bound");
        receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        sender.send_to(address.as_bytes(), &address).expect("sent");
        let mut buffer = [0; 64];
        let size = receiver.recv(&mut buffer).expect("it arrives");
        assert_eq!(&buffer[..size], address.as_bytes());
    }
    assert_eq!(link.stats().forward.packets_out, 3);
}

#[test]
fn a_link_changes_while_it_is_up() {
    let Some(mut link) = link("change", &Options { rtt: "2ms".into(), ..Options::default() }) else { return };
    let name = format!("change{}", std::process::id());
    let sender = link.inside(0, || UdpSocket::bind("10.77.0.1:0")).expect("inside").expect("bound");
    let receiver = link.inside(1, || UdpSocket::bind("10.77.0.2:9000")).expect("inside").expect("bound");
    let passes = |link: &mut Running, loss: &str, within: Duration| {
        // Another process requests changes, and this one makes them.
        let asked = Change { loss: Some(loss.into()), ..Change::default() };
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| change(&name, &asked));
            while !asking.is_finished() {
                link.follow().expect("followed");
                std::thread::sleep(Duration::from_millis(5));
            }
            asking.join().expect("asked").expect("changed");
        });
        // The threads check at least every tenth of a second.
        std::thread::sleep(Duration::from_millis(300));
        receiver.set_read_timeout(Some(within)).expect("a timeout");
        sender.send_to(loss.as_bytes(), "10.77.0.2:9000").expect("sent");
        let mut buffer = [0; 64];
        receiver.recv(&mut buffer).is_ok_and(|size| &buffer[..size] == loss.as_bytes())
    };
    assert!(!passes(&mut link, "100%", Duration::from_millis(300)));
    assert!(passes(&mut link, "0%", Duration::from_secs(10)));
    assert_eq!(link.stats().forward.packets_lost, 1);
    let nonsense = Change { rate: Some("fast".into()), ..Change::default() };
    assert!(change(&name, &nonsense).expect_err("not understood").to_string().contains("--rate"));
    assert!(link.change(&nonsense).is_err());
    assert!(passes(&mut link, "0.0%", Duration::from_secs(10)), "the link has its former properties");
}

#[test]
fn nothing_is_left_of_a_link_that_ended() {
    let Some(mut link) = link("gone", &Options::default()) else { return };
    let name = format!("gone{}", std::process::id());
    link.publish().expect("written");
    assert_eq!(stats_of(&name).expect("there"), link.stats());
    let again = up(&name, &Options::default(), Engine::Tun).expect_err("in use");
    assert!(again.to_string().contains("corridor lab down"), "{again}");
    let namespaces: Vec<String> = link.namespaces().into_iter().map(str::to_owned).collect();
    drop(link);
    assert!(stats_of(&name).is_err());
    for namespace in namespaces {
        assert!(!Path::new("/run/netns").join(&namespace).exists(), "{namespace}");
    }
    assert!(down(&name).is_err(), "no link has this name any more");
}
