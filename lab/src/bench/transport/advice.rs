//! Value of the advice for a path. An array is fetched as is advised after a probe and after a transfer, beside the same
//! array fetched by hand over a grid of protocols, streams and controllers, and beside TCP as the system comes.
//!
//! Each fetch is a `corridor get` from its start to its end. The fetches by hand have a server and a memory of paths of
//! their own; those by advice have others, which know nothing at first. A fetch by hand that takes several times as long
//! as the link would need is given up.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use array::{Error, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::timeout;

use super::super::process::{RunningProcess, command};
use super::super::report::{Better, Case, median};
use super::super::wall_clock;
use super::flows::{TransportScene, rounded};
use super::limits::limited;

/// Time that a fetch takes at the link's rate, seconds, and the shorter one for a quick run.
const FETCH_SECS: f64 = 6.0;
const QUICK_SECS: f64 = 1.0;
/// Share of the best by hand that advice is to reach.
const GOAL: f64 = 0.95;
/// Share of the link's rate that is asked for by hand: headers, acknowledgements, and some room.
const RATE_SHARE: f64 = 0.95;
/// A fetch by hand that takes so many times what the link's rate would is given up: it is not the best one.
const GIVEN_UP_AFTER: f64 = 5.0;
/// Name of the system's own TCP among the peers.
const UNTUNED: &str = "iperf3-cubic";

/// A server of one array of zeros, with what clients of it remember.
struct AdviceServer {
    server: RunningProcess,
    home: TempDir,
}

impl AdviceServer {
    async fn open(scene: &TransportScene<'_>, file: &Path) -> Result<Self> {
        let arguments = ["serve", &file.to_string_lossy()];
        let server = RunningProcess::start_at(&scene.side, scene.program, &arguments).await?;
        Ok(Self { server, home: tempfile::tempdir()? })
    }

    /// Bytes per second of one fetch, everything included.
    async fn fetch(&self, scene: &TransportScene<'_>, bytes: u64, how: &[&str]) -> Result<f64> {
        let into = self.home.path().join("fetched.npy");
        let start = wall_clock::now();
        let mut arguments = vec!["get", self.server.text("url")?, "--compression", "none", "--output"];
        let output = into.to_string_lossy();
        arguments.push(&output);
        self.run(scene, &[&arguments, how].concat()).await?;
        let rate = bytes as f64 / start.elapsed().as_secs_f64();
        std::fs::remove_file(&into)?;
        Ok(rate)
    }

    async fn run(&self, scene: &TransportScene<'_>, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = command(scene.program, self.home.path());
        command.env("XDG_STATE_HOME", self.home.path()).args(arguments);
        let done = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        let said = String::from_utf8_lossy(&done.stderr);
        Err(Error::internal(format!("`corridor {}` ended with: {}", arguments[0], said.trim())))
    }

    /// Sends packet trains; returns the advice for receiving here, with its reason.
    async fn probe(&self, scene: &TransportScene<'_>) -> Result<Value> {
        let told = self.run(scene, &["path", "--probe", "--json", self.server.text("url")?]).await?;
        let report: Value = serde_json::from_slice(&told)
            .map_err(|e| Error::internal(format!("expected the JSON of a path: {e}")))?;
        Ok(report["link"].clone())
    }
}

/// Runs all fetches, by advice and by hand; returns the cases.
pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let rate = scene
        .options
        .link
        .rate
        .ok_or_else(|| Error::invalid("expected the rate of the link, `--link rate=N`"))?;
    let bytes = rounded(rate * if scene.options.is_quick { QUICK_SECS } else { FETCH_SECS });
    let folder = tempfile::tempdir()?;
    let file = zeros(folder.path(), bytes)?;
    let by_hand = by_hand(rate);
    let mut rates = vec![Vec::new(); by_hand.len()];
    let (mut probed, mut taught, mut untuned) = (Vec::new(), Vec::new(), Vec::new());
    let mut advice = Value::Null;
    let place = AdviceServer::open(scene, &file).await?;
    for _ in 0..scene.options.runs.unwrap_or(1) {
        for ((_, how), rates) in by_hand.iter().zip(&mut rates) {
            let how: Vec<&str> = how.split_whitespace().collect();
            let patience = Duration::from_secs_f64(GIVEN_UP_AFTER * bytes as f64 / rate);
            match timeout(patience, place.fetch(scene, bytes, &how)).await {
                Ok(fetched) => rates.push(fetched?),
                Err(_) => rates.push(0.0),
            }
        }
        let place = AdviceServer::open(scene, &file).await?;
        advice = place.probe(scene).await?;
        let how = ["--link", "auto", "--streams", "auto"];
        probed.push(place.fetch(scene, bytes, &how).await?);
        taught.push(place.fetch(scene, bytes, &how).await?);
        if scene.options.wants_peer(UNTUNED) {
            let secs = (bytes as f64 / rate).ceil();
            untuned.push(scene.iperf3(&["-C", "cubic"], secs).await?.bytes_per_sec());
        }
    }
    let case = |name: &str, values: Vec<f64>| {
        let case = Case::measured(name, "B/s", Better::Higher, values);
        let mut case = limited(scene, case.with("bytes", bytes).with("advice", advice.clone()));
        // Of those that were given up nothing is known.
        let middle = |values: &[f64]| median(&mut values.to_vec()).filter(|&rate| rate > 0.0);
        let peers = by_hand.iter().zip(&rates).map(|((name, _), rates)| (name.clone(), middle(rates)));
        case.peers = peers.collect();
        let best = case.peers.values().flatten().copied().fold(0.0, f64::max);
        case.peers.insert(UNTUNED.to_owned(), middle(&untuned));
        case.aiming(GOAL * best)
    };
    Ok(vec![case("fetched as advised after a probe", probed), case("and after one transfer", taught)])
}

/// Names and arguments of the fetches by hand.
fn by_hand(rate_bytes_per_sec: f64) -> Vec<(String, String)> {
    let by_tcp = [1, 4, 16]
        .map(|streams| (format!("tcp, {streams} streams"), format!("--link tcp --streams {streams}")));
    let fixed = format!("rate={:.3}Mb/s", rate_bytes_per_sec * 8e-6 * RATE_SHARE);
    let by_quic = ["auto", "polite", "cubic", "bbr", &fixed].map(|choice| {
        let name = choice.split('=').next().unwrap_or_default();
        (format!("quic, {name}"), format!("--link quic --controller {choice}"))
    });
    by_tcp.into_iter().chain(by_quic).collect()
}

/// An array of zeros of which none rest on a disk: where it is described.
fn zeros(folder: &Path, bytes: u64) -> Result<PathBuf> {
    std::fs::File::create(folder.join("zeros.bin"))?.set_len(bytes)?;
    let description = folder.join("zeros.toml");
    std::fs::write(&description, format!("file = \"zeros.bin\"\nshape = [{bytes}]\ndtype = \"u1\"\n"))?;
    Ok(description)
}
