//! One link over several paths between two hosts: two namespaces with a rate-limited pair of virtual network cards for each
//! path. Counts and bytes only. Skipped with a message without root, `ip` or `tc`.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use array::{Error, Priority, Result, Urgency};
use bytes::Bytes;
use link::multistream::{AcceptedSession, StreamRegistry, connect};
use link::{Fingerprint, Identity, Link, Operation, ReadSink, TcpMonitor, Trust, carrier::tcp, carrier::tls};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use wire::{ClientConfig, ServerConfig};

/// Number of paths between the two hosts.
const PATHS: u8 = 3;
const RATE: &str = "200mbit";
const ITEM_BYTES: u64 = 1 << 20;
const ITEMS: u32 = 48;
const PORT: u16 = 9_000;
const SOON: Duration = Duration::from_secs(60);

fn run(program: &str, arguments: &[&str]) -> std::result::Result<Vec<u8>, String> {
    let out = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// Two hosts connected by [`PATHS`] pairs of cards; the server's addresses are 10.79.n.1, the client's 10.79.n.2.
struct Hosts {
    server: String,
    client: String,
}

impl Hosts {
    fn make() -> std::result::Result<Self, String> {
        let name = |side: &str| format!("rails{}{side}", std::process::id());
        let hosts = Self { server: name("a"), client: name("b") };
        let Self { server, client } = &hosts;
        for host in [server, client] {
            run("ip", &["netns", "add", host])?;
            run("ip", &["-n", host, "link", "set", "lo", "up"])?;
        }
        for path in 0..PATHS {
            let (near, far) = (format!("ra{path}"), format!("rb{path}"));
            run(
                "ip",
                &[
                    "link", "add", &near, "netns", server, "type", "veth", "peer", "name", &far, "netns",
                    client,
                ],
            )?;
            for (host, card, end) in [(server, &near, 1), (client, &far, 2)] {
                run("ip", &["-n", host, "addr", "add", &format!("10.79.{path}.{end}/24"), "dev", card])?;
                run("ip", &["-n", host, "link", "set", card, "up"])?;
            }
            let shape = ["root", "tbf", "rate", RATE, "burst", "256kb", "latency", "50ms"];
            run("tc", &[&["-n", server, "qdisc", "add", "dev", &near], &shape[..]].concat())?;
        }
        Ok(hosts)
    }

    /// Returns the bytes that the client has received over each path.
    fn arrived(&self) -> Vec<u64> {
        let of = |path: u8| {
            let card = format!("rb{path}");
            let told = run("ip", &["-n", &self.client, "-s", "-j", "link", "show", &card]).expect("counts");
            let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
            told[0]["stats64"]["rx"]["bytes"].as_u64().expect("bytes")
        };
        (0..PATHS).map(of).collect()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in [&self.server, &self.client] {
            // It may not exist.
            drop(run("ip", &["netns", "delete", host]));
        }
    }
}

/// Runs `work` on a thread of `host`, with a runtime of its own.
fn on<T: Send>(host: &str, work: impl Future<Output = T> + Send) -> T {
    let inside = || {
        let namespace = File::open(format!("/run/netns/{host}")).expect("a namespace");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, inside).expect("a thread");
        thread.join().expect("no panic")
    })
}

fn byte(item: u32, at: u64) -> u8 {
    (at.wrapping_add(u64::from(item) * 77).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

async fn answer(operation: &Operation) -> Result<()> {
    for item in 0..ITEMS {
        let bulk: Bytes = (0..ITEM_BYTES).map(|at| byte(item, at)).collect();
        operation.item(Bytes::new(), bulk).await?;
    }
    Ok(())
}

async fn serve(link: Link) -> Result<()> {
    let (connection, driver) = link::serve(link, ServerConfig::default())?;
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    connection.hello().await?;
    connection.accept();
    while let Some(operation) = connection.next().await {
        match answer(&operation).await {
            Ok(()) => operation.done(),
            Err(error) => operation.fail(error),
        }
    }
    Ok(())
}

/// Serves on all addresses until dropped; sends the fingerprint first.
async fn server(ready: mpsc::Sender<Fingerprint>, over: tokio::sync::oneshot::Receiver<()>) {
    let identity = Identity::self_signed(&["rails".into()]).expect("an identity");
    let config = identity.server_config(&tls::SERVED).expect("an identity");
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await.expect("a port");
    ready.send(identity.fingerprint()).expect("somebody waits");
    let serving = async {
        let (registry, mut tasks) = (StreamRegistry::default(), JoinSet::<Result<()>>::new());
        while let Ok((stream, peer)) = listener.accept().await {
            let (config, registry) = (Arc::clone(&config), registry.clone());
            tasks.spawn(async move {
                tcp::prepare(&stream)?;
                let watch = TcpMonitor::on(&stream);
                let session = tls::accept(stream, config).await?;
                match registry.accept(session, watch, peer.to_string()).await? {
                    AcceptedSession::Link(link) => serve(link).await,
                    AcceptedSession::Stream(stream) => stream.run().await,
                    AcceptedSession::Other(_) => Ok(()),
                }
            });
        }
    };
    tokio::select! {
        () = serving => {}
        _ = over => {}
    }
}

/// Receiver that compares every byte.
struct Compares {
    left: u64,
}

impl ReadSink for Compares {
    fn item(&mut self, _: u32, _: Bytes, bulk_bytes: u64) -> Result<()> {
        assert_eq!(bulk_bytes, ITEM_BYTES);
        Ok(())
    }

    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], _: bool) -> Result<()> {
        assert!(bytes.iter().zip(offset..).all(|(found, at)| *found == byte(item, at)), "{item} at {offset}");
        self.left = self.left.checked_sub(bytes.len() as u64).expect("no byte arrives twice");
        Ok(())
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        if self.left == 0 { Ok(()) } else { Err(Error::corrupt(format!("{} bytes are missing", self.left))) }
    }
}

/// Fetches everything after `streams` have joined; returns the bytes that each path carried meanwhile.
async fn fetch(hosts: &Hosts, whom: Fingerprint, rails: &str, streams: u32) -> Vec<u64> {
    let rails = if rails.is_empty() { Ok(link::multistream::Rails::default()) } else { rails.parse() };
    let trust = Trust::Fingerprint(whom);
    let connecting = connect("10.79.0.1", PORT, &trust, 1, rails.expect("rails"));
    let link = connecting.await.expect("a link");
    let flow = link.flow().expect("a flow");
    let (client, driver) = link::connect(link, ClientConfig::default()).expect("a client");
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    let joining = async {
        while flow.statistics().streams < streams {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, joining).await.expect("all streams join");
    let before = hosts.arrived();
    let receiver = Box::new(Compares { left: u64::from(ITEMS) * ITEM_BYTES });
    let asked = client.receive("all", Bytes::new(), Urgency::of(Priority::NORMAL), receiver).await;
    tokio::time::timeout(SOON, asked.expect("asked")).await.expect("it ends").expect("every byte");
    hosts.arrived().iter().zip(before).map(|(after, before)| after - before).collect()
}

#[test]
fn a_link_uses_several_paths_at_a_time_and_continues_on_those_that_are_left() {
    let hosts = match Hosts::make() {
        Ok(hosts) => hosts,
        Err(why) => {
            assert!(!rustix::process::geteuid().is_root() || !why.contains("exists"), "{why}");
            eprintln!("skipped: {why}");
            return;
        }
    };
    let (ready, whom) = mpsc::channel();
    let (over, ended) = tokio::sync::oneshot::channel();
    std::thread::scope(|scope| {
        let serving = || on(&hosts.server, server(ready, ended));
        std::thread::Builder::new().spawn_scoped(scope, serving).expect("a thread");
        let whom = whom.recv().expect("a server");
        let all = u64::from(ITEMS) * ITEM_BYTES;

        let alone = on(&hosts.client, fetch(&hosts, whom, "", 1));
        assert!(alone[0] > all && alone[1] + alone[2] < all / 100, "one path only: {alone:?}");

        let rails = "10.79.1.1,10.79.2.2@10.79.2.1:9000";
        let shared = on(&hosts.client, fetch(&hosts, whom, rails, 3));
        assert!(shared.iter().all(|bytes| *bytes > all / 10), "each path carries its share: {shared:?}");
        assert!(shared.iter().sum::<u64>() < all + all / 4, "nothing is sent twice: {shared:?}");

        // The other paths carry the data of a disabled one.
        run("ip", &["-n", &hosts.server, "link", "set", "ra2", "down"]).expect("one path is disabled");
        let fewer = on(&hosts.client, fetch(&hosts, whom, rails, 2));
        assert!(fewer[0] > all / 10 && fewer[1] > all / 10 && fewer[2] < all / 100, "two paths: {fewer:?}");
        drop(over);
    });
}
