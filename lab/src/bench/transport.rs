//! How fast data cross a given link with each controller, beside what others do on it in the same run. The link is made
//! beforehand (`corridor lab`, or a real one), and both sides are named: this program runs on the client's, and starts
//! `corridor serve` and the peers' servers on the other.
//!
//! Groups: `bulk` (one large read on a new connection, its start included), `small` (100 kB on a connection that is warm),
//! and `all` adds every controller to `bulk`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use array::{Error, ErrorKind, Priority, ReadRequest, Result, Selection, Source, Target};
use node::assemble::{Context, assemble};
use node::dial::{Compression, Protocol, Reach};
use node::memory::Budget;
use node::places::Places;
use node::url::Location;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Duration, timeout};

use super::options::Options;
use super::process::{Running, Side};
use super::report::{Better, Case, Report};

/// Bytes of a large read.
const BYTES: u64 = 500_000_000;
/// The same where it only has to work.
const QUICK_BYTES: u64 = 20_000_000;
/// Bytes of a small read.
const SMALL_BYTES: u64 = 100_000;
/// Small reads, one after another, per run.
const SMALL_READS: u64 = 10;
/// Memory of the client, bytes: enough to keep the fastest link here busy.
const MEMORY_BYTES: u64 = 4 << 30;
/// A read that takes longer is given up: its figure is what had come by then at most.
const WITHIN: Duration = Duration::from_secs(180);
/// Port of peers' servers.
const PEER_PORT: u16 = 5201;
/// Share of the link's packets that is left for `rate`: headers of IP and UDP, acknowledged packets, repairs.
const RATE_SHARE: f64 = 0.975;
/// Bytes of data in a packet of 1500 bytes: TCP's share, the goodput that physics allows.
const DATA_SHARE: f64 = 1448.0 / 1500.0;
/// Controllers of `bulk`, and what else `all` has.
const FIRST: &[&str] = &["auto", "polite", "cubic", "bbr"];
const OTHERS: &[&str] = &["reno", "bic", "highspeed", "scalable", "westwood", "vegas"];

/// Peers and iperf3's arguments for them.
const PEERS: &[(&str, &[&str])] = &[
    ("iperf3 cubic", &["-C", "cubic"]),
    ("iperf3 bbr", &["-C", "bbr"]),
    ("iperf3 cubic, 16 streams", &["-C", "cubic", "-P", "16"]),
];

/// Both sides of a run.
struct Bench<'a> {
    options: &'a Options,
    side: Side,
    server: Running,
    /// Files of the client.
    folder: TempDir,
    bytes: u64,
}

pub(super) async fn run(program: &Path, options: &Options) -> Result<Report> {
    let mut report = Report::here("transport", options.link.clone());
    let bytes = if options.is_quick { QUICK_BYTES } else { BYTES };
    let folder = tempfile::tempdir()?;
    let file = flat_file(&folder, bytes)?;
    let side = Side::of(options);
    let server = Running::start_at(&side, program, &["serve", &file]).await?;
    let bench = Bench { options, side, server, folder, bytes };
    if options.has("bulk") {
        bench.bulk(&mut report).await?;
    }
    if options.has("small") {
        report.cases.push(bench.small().await?);
    }
    Ok(report)
}

impl Bench<'_> {
    async fn bulk(&self, report: &mut Report) -> Result<()> {
        let peers = self.peers().await;
        let rate = self.options.link.rate.map(|rate| format!("rate={:.3}Mb/s", rate * 8e-6 * RATE_SHARE));
        let others = if self.options.only.iter().any(|name| name == "all") { OTHERS } else { &[] };
        let names = FIRST.iter().chain(others).map(|name| (*name).to_owned());
        for name in rate.into_iter().chain(names) {
            let reach = Reach { choice: Some(parse(&name)?), ..plain(Protocol::Quic) };
            let label = name.split('=').next().unwrap_or_default();
            let mut case = self.case(&format!("one read, {label} by QUIC"), reach).await?;
            case.peers =
                peers.iter().map(|(name, figure)| ((*name).to_owned(), figure.clone().ok())).collect();
            case.why = peers
                .iter()
                .filter_map(|(name, f)| Some(format!("{name}: {}", f.as_ref().err()?)))
                .collect::<Vec<_>>()
                .join("; ");
            report.cases.push(case.with("controller", name));
        }
        let by_tcp = plain(Protocol::Tcp);
        report.cases.push(self.case("one read, TCP with TLS", by_tcp).await?);
        Ok(())
    }

    async fn case(&self, name: &str, reach: Reach) -> Result<Case> {
        let mut rates = Vec::new();
        for _ in 0..self.options.runs.unwrap_or(1) {
            rates.push(self.read_all(reach).await?);
        }
        let case = Case::measured(name, "B/s", Better::Higher, rates).with("bytes", self.bytes);
        let limit = self.options.link.rate.map(|rate| rate * DATA_SHARE);
        Ok(match limit {
            Some(limit) => case.limited(limit, "the link's rate without headers of packets of 1500 bytes"),
            None => case,
        })
    }

    async fn source(&self, reach: Reach) -> Result<Arc<dyn Source>> {
        let location: Location = self.server.text("url")?.parse()?;
        let places = Places::below(self.folder.path());
        let context = Context::new(places, Budget::reading(MEMORY_BYTES), None).reaching(reach);
        Ok(assemble(&location, &context).await?.source)
    }

    /// Bytes per second of one read on a new connection, of which the handshake is over.
    async fn read_all(&self, reach: Reach) -> Result<f64> {
        let source = self.source(reach).await?;
        source.describe().await?;
        let secs = seconds(timeout(WITHIN, read(&source, self.bytes))).await;
        secs.map_or_else(
            |error| if error.kind() == ErrorKind::TimedOut { Ok(f64::NAN) } else { Err(error) },
            |secs| Ok(self.bytes as f64 / secs),
        )
    }

    async fn small(&self) -> Result<Case> {
        let source = self.source(plain(Protocol::Quic)).await?;
        read(&source, self.bytes.min(QUICK_BYTES)).await?;
        let mut times = Vec::new();
        for _ in 0..self.options.runs.unwrap_or(3) * usize::try_from(SMALL_READS).unwrap_or(1) {
            times.push(seconds(timeout(WITHIN, read(&source, SMALL_BYTES))).await?);
        }
        let case = Case::measured("100 kB on a warm connection", "s", Better::Lower, times)
            .with("bytes", SMALL_BYTES);
        Ok(match (self.options.link.rtt, self.options.link.rate) {
            (Some(rtt), Some(rate)) => case
                .limited(rtt + SMALL_BYTES as f64 / rate, "a round trip, and the bytes at the link's rate")
                .aiming(rtt + 10e-3),
            _ => case,
        })
    }

    /// Bytes per second of others on the same link, or why there is no figure.
    async fn peers(&self) -> Vec<(&'static str, std::result::Result<f64, String>)> {
        let mut found = Vec::new();
        let arguments = ["-s", "-p", &PEER_PORT.to_string()];
        let server = Running::other(&self.side, "iperf3", &arguments, PEER_PORT).await;
        for (name, arguments) in PEERS {
            let figure = match &server {
                _ if !self.options.wants_peer(name) && !self.options.wants_peer("iperf3") => {
                    Err("not asked for".to_owned())
                }
                Ok(_) => self.iperf3(arguments).await.map_err(|e| e.to_string()),
                Err(error) => Err(error.to_string()),
            };
            found.push((*name, figure));
        }
        found
    }

    async fn iperf3(&self, arguments: &[&str]) -> Result<f64> {
        let address = self.side.address.to_string();
        let bytes = self.bytes.to_string();
        let asked = ["-J", "-R", "-c", &address, "-p", &PEER_PORT.to_string(), "-n", &bytes];
        let mut command = Command::new("iperf3");
        let running = command.args(asked).args(arguments).kill_on_drop(true).output();
        let late = |_| Error::new(ErrorKind::TimedOut, format!("took longer than {} s", WITHIN.as_secs()));
        let out = timeout(WITHIN, running).await.map_err(late)??;
        let said: Value = serde_json::from_slice(&out.stdout)
            .map_err(|e| Error::internal(format!("expected JSON of iperf3, found: {e}")))?;
        let bits = said.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
        bits.map(|bits| bits / 8.0).ok_or_else(|| Error::internal(format!("iperf3 said {}", said["error"])))
    }
}

/// By a protocol, as it is: data go as they are, so that bytes tell of the link.
fn plain(protocol: Protocol) -> Reach {
    Reach { protocol, choice: None, compression: Compression::None }
}

fn parse(name: &str) -> Result<link::Choice> {
    name.parse().map_err(|refusal: link::Refusal| Error::invalid(refusal.to_string()))
}

async fn read(source: &Arc<dyn Source>, bytes: u64) -> Result<()> {
    let selection = Selection::of_box(&[0], &[bytes]);
    let (target, region) = Target::new(&[bytes], 1)?;
    source.read(ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, region).await?;
    target.into_vec().map(drop)
}

async fn seconds<E>(work: impl Future<Output = std::result::Result<Result<()>, E>>) -> Result<f64> {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = Instant::now();
    work.await.map_err(|_| Error::new(ErrorKind::TimedOut, "took too long"))??;
    Ok(start.elapsed().as_secs_f64())
}

/// A file of `bytes` zeros, of which none rest on the disk, with its description.
fn flat_file(folder: &TempDir, bytes: u64) -> Result<String> {
    std::fs::File::create(folder.path().join("flat.bin"))?.set_len(bytes)?;
    let description = folder.path().join("flat.toml");
    std::fs::write(&description, format!("file = \"flat.bin\"\nshape = [{bytes}]\ndtype = \"u1\"\n"))?;
    Ok(description.to_string_lossy().into_owned())
}
