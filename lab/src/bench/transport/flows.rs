//! One flow from the server's side to this one: ours by each protocol and controller, and other projects'.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, ErrorKind, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Duration, timeout};

use super::super::options::Options;
use super::super::process::{LinkSide, RunningProcess, own_cpu_secs};
use super::super::wall_clock;
use super::messages::{MAX_MESSAGE_BYTES, MessageClient, MessageServerReady, MessageTransport};
use super::{blind, stock};

/// Ports of peers' servers.
const IPERF3_PORT: u16 = 5201;
const UDT_PORT: u16 = 5202;
const SRT_PORT: u16 = 5203;
/// Time for a server that cannot be asked whether it is ready.
const START_PAUSE: Duration = Duration::from_millis(700);
/// A flow may take as many times as long as the link needs at the least; then its figure is what came until then.
const PATIENCE: f64 = 1.5;
const LEAST_PATIENCE: Duration = Duration::from_secs(4);
/// Longest time of a flow where nothing is known of the link.
const DEFAULT_WITHIN: Duration = Duration::from_secs(60);
/// Windows and peers' buffers: so many bandwidth-delay products of the link, and never less.
const WINDOW_PRODUCTS: f64 = 4.0;
const LEAST_WINDOW_BYTES: f64 = 64e6;
/// Bytes of the headers of IPv4 and UDP.
const HEADER_BYTES: u32 = 28;
/// UDT's packets, bytes.
const PACKET_BYTES: f64 = 1500.0;

const UDT_SOURCE: &str = include_str!("../../../peers/udt_flow.cpp");

/// Other projects' ways to send, as `--peers` names them: name, and iperf3's arguments where it is iperf3's.
pub(super) const PEERS: &[(&str, Option<&[&str]>)] = &[
    ("iperf3-cubic", Some(&["-C", "cubic"])),
    ("iperf3-bbr", Some(&["-C", "bbr"])),
    ("iperf3-cubic-16", Some(&["-C", "cubic", "-P", "16"])),
    ("udt", None),
    ("srt", None),
    ("quinn", None),
];

/// Result of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flowed {
    bytes: f64,
    secs: f64,
    /// Processor time of both sides.
    cpu_secs: f64,
}

impl Flowed {
    pub(super) fn bytes_per_sec(&self) -> f64 {
        self.bytes / self.secs.max(1e-9)
    }

    pub(super) fn cpu_secs_per_gb(&self) -> f64 {
        self.cpu_secs / (self.bytes.max(1.0) / 1e9)
    }
}

/// Both sides of a run.
pub(super) struct TransportScene<'a> {
    pub(super) options: &'a Options,
    pub(super) side: LinkSide,
    pub(super) program: &'a Path,
    server: RunningProcess,
    pub(super) ready: MessageServerReady,
    /// Files of peers.
    folder: TempDir,
    /// Bytes of a long flow.
    pub(super) bytes: u64,
}

impl<'a> TransportScene<'a> {
    pub(super) async fn open(program: &'a Path, options: &'a Options, bytes: u64) -> Result<Self> {
        let side = LinkSide::of(options);
        let (server, ready) = message_server(&side, program).await?;
        Ok(Self { options, side, program, server, ready, folder: tempfile::tempdir()?, bytes })
    }

    /// Bytes that may be in flight.
    pub(super) fn window_bytes(&self) -> u64 {
        let link = &self.options.link;
        let product = link.rate.unwrap_or_default() * link.rtt.unwrap_or_default();
        rounded(LEAST_WINDOW_BYTES.max(WINDOW_PRODUCTS * product))
    }

    /// Longest time that a flow of so many bytes may take.
    fn within(&self, bytes: u64) -> Duration {
        let least = |rate: f64| Duration::from_secs_f64(PATIENCE * bytes as f64 / rate);
        self.options.link.rate.map_or(DEFAULT_WITHIN, |rate| least(rate).max(LEAST_PATIENCE))
    }

    /// Resident memory of the server's side, bytes.
    pub(super) fn server_bytes(&self) -> Option<f64> {
        self.server.resident_bytes()
    }

    /// Datagrams of packets of `mtu` bytes, sent blindly.
    pub(super) async fn blind(&self, mtu: u32, during: Duration) -> Result<Flowed> {
        let payload_bytes = mtu.saturating_sub(HEADER_BYTES);
        let mut secs = 0.0;
        let work = async {
            let (bytes, took) =
                blind::receive(self.ready.blind, &self.ready.fingerprint, payload_bytes, during).await?;
            secs = took;
            Ok(bytes as f64)
        };
        let measured = measured(&self.server, work).await?;
        Ok(Flowed { secs, ..measured })
    }

    /// A long flow of ours on a new connection, its start included; the handshake is over before.
    pub(super) async fn ours(&self, way: MessageTransport) -> Result<Flowed> {
        self.ours_of(way, self.bytes).await
    }

    /// A long flow as [`TransportScene::ours`] makes one, of so many bytes.
    pub(super) async fn ours_of(&self, way: MessageTransport, bytes: u64) -> Result<Flowed> {
        let client = MessageClient::connect(&self.ready, way, self.window_bytes()).await?;
        let arrived = Arc::<AtomicU64>::default();
        let count = bytes.div_ceil(MAX_MESSAGE_BYTES);
        let work = async {
            let receiving = client.receive(count, bytes / count, Arc::clone(&arrived)).await?;
            // Late: what has come until then counts.
            timeout(self.within(bytes), receiving).await.unwrap_or(Ok(()))?;
            Ok(arrived.load(Ordering::Relaxed) as f64)
        };
        measured(&self.server, work).await
    }

    /// A long flow by another project.
    pub(super) async fn peer(&self, name: &str, iperf3: Option<&[&str]>) -> Result<Flowed> {
        match (iperf3, name) {
            (Some(arguments), _) => {
                self.iperf3(arguments, (self.within(self.bytes).as_secs_f64() / PATIENCE).ceil()).await
            }
            (None, "udt") => self.udt().await,
            (None, "srt") => self.srt().await,
            _ => self.stock().await,
        }
    }

    async fn stock(&self) -> Result<Flowed> {
        let client = stock::StockClient::connect(self.ready.stock, self.ready.fingerprint.parse()?).await?;
        let mut arrived = 0;
        let work = async {
            let fetching = client.fetch(self.bytes, |bytes| arrived += bytes);
            timeout(self.within(self.bytes), fetching).await.unwrap_or(Ok(()))?;
            Ok(arrived as f64)
        };
        measured(&self.server, work).await
    }

    /// The kernel's TCP for so many seconds.
    pub(super) async fn iperf3(&self, arguments: &[&str], secs: f64) -> Result<Flowed> {
        let port = IPERF3_PORT.to_string();
        let server = RunningProcess::other(&self.side, "iperf3", &["-s", "-p", &port], IPERF3_PORT).await?;
        let patience = DEFAULT_WITHIN.max(Duration::from_secs_f64(2.0 * PATIENCE * secs));
        let (address, secs) = (self.side.address.to_string(), format!("{secs}"));
        let mut command = Command::new("iperf3");
        command.args(["-J", "-R", "-c", &address, "-p", &port, "-t", &secs]).args(arguments);
        let mut told = Value::Null;
        let work = async {
            told = json(output(command, patience).await?)?;
            Ok(0.0)
        };
        let measured = measured(&server, work).await?;
        let figure = |name| told.pointer(&format!("/end/sum_received/{name}")).and_then(Value::as_f64);
        let (Some(bytes), Some(secs)) = (figure("bytes"), figure("seconds")) else {
            return Err(Error::internal(format!("iperf3 said {}", told["error"])));
        };
        Ok(Flowed { bytes, secs, ..measured })
    }

    async fn udt(&self) -> Result<Flowed> {
        let program = self.build_udt().await?;
        let (address, port) = (self.side.address.to_string(), UDT_PORT.to_string());
        let (buffer, bytes) = (self.window_bytes().to_string(), self.bytes.to_string());
        let secs = self.within(self.bytes).as_secs_f64().to_string();
        let program = program.to_string_lossy();
        let server = RunningProcess::unasked(&self.side, &program, &["serve", &address, &port, &buffer])?;
        tokio::time::sleep(START_PAUSE).await;
        let mut command = Command::new(&*program);
        command.args(["fetch", &address, &port, &buffer, &bytes, &secs]);
        let mut told = Value::Null;
        let work = async {
            told = json(output(command, self.within(self.bytes) * 2).await?)?;
            Ok(told["bytes"].as_f64().unwrap_or_default())
        };
        let measured = measured(&server, work).await?;
        Ok(Flowed { secs: told["secs"].as_f64().unwrap_or(measured.secs), ..measured })
    }

    /// Builds UDT's sender and receiver, a short program on the library.
    async fn build_udt(&self) -> Result<PathBuf> {
        let program = self.folder.path().join("udt_flow");
        if !program.exists() {
            let source = self.folder.path().join("udt_flow.cpp");
            std::fs::write(&source, UDT_SOURCE)?;
            let mut command = Command::new("c++");
            command.arg("-O2").arg(&source).arg("-o").arg(&program).args(["-ludt", "-lpthread"]);
            output(command, DEFAULT_WITHIN).await.map_err(|e| e.context("building for UDT (libudt-dev)"))?;
        }
        Ok(program)
    }

    /// The project's own program for files, from a file of zeros of which none rest on a disk, into one that is written.
    async fn srt(&self) -> Result<Flowed> {
        let (from, into) = (self.folder.path().join("zeros"), self.folder.path().join("arrived"));
        std::fs::File::create(&from)?.set_len(self.bytes)?;
        let window = self.window_bytes();
        let tuning = format!("rcvbuf={window}&sndbuf={window}&fc={}", rounded(window as f64 / PACKET_BYTES));
        let at = format!("srt://{}:{SRT_PORT}", self.side.address);
        let source = format!("file://{}", from.display());
        let server = RunningProcess::unasked(
            &self.side,
            "srt-file-transmit",
            &["-q", &source, &format!("{at}?mode=listener&{tuning}")],
        )?;
        tokio::time::sleep(START_PAUSE).await;
        let mut command = Command::new("srt-file-transmit");
        command.args(["-q", &format!("{at}?mode=caller&{tuning}"), &format!("file://{}", into.display())]);
        let work = async {
            match output(command, self.within(self.bytes)).await {
                Err(error) if error.kind() != ErrorKind::TimedOut => return Err(error),
                _ => {}
            }
            Ok(std::fs::metadata(&into).map_or(0.0, |file| file.len() as f64))
        };
        let flowed = measured(&server, work).await?;
        std::fs::remove_file(&into)?;
        Ok(flowed)
    }
}

/// A server of messages on `side`.
pub(super) async fn message_server(
    side: &LinkSide,
    program: &Path,
) -> Result<(RunningProcess, MessageServerReady)> {
    let server = RunningProcess::start_at(side, program, &["bench", "messages"]).await?;
    let ready = serde_json::from_value(server.line.clone())
        .map_err(|e| Error::internal(format!("expected where messages come from: {e}")))?;
    Ok((server, ready))
}

/// Measures `work`, which returns the bytes that it received.
pub(super) async fn measured(
    server: &RunningProcess,
    work: impl Future<Output = Result<f64>>,
) -> Result<Flowed> {
    let cpu = || own_cpu_secs() + server.cpu_secs();
    let before = cpu();
    let start = wall_clock::now();
    let bytes = work.await?;
    Ok(Flowed { bytes, secs: start.elapsed().as_secs_f64(), cpu_secs: cpu() - before })
}

async fn output(mut command: Command, within: Duration) -> Result<Vec<u8>> {
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let late = |_| Error::new(ErrorKind::TimedOut, format!("took longer than {} s", within.as_secs()));
    let out = timeout(within, running).await.map_err(late)??;
    if out.status.success() || !out.stdout.is_empty() {
        return Ok(out.stdout);
    }
    Err(Error::internal(String::from_utf8_lossy(&out.stderr).trim().to_owned()))
}

fn json(text: Vec<u8>) -> Result<Value> {
    serde_json::from_slice(&text).map_err(|e| Error::internal(format!("expected JSON of a peer: {e}")))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn rounded(value: f64) -> u64 {
    value.round() as u64
}
