//! The whole program as a user runs it: `corridor get` of random data without options, over a path that nothing is remembered of and
//! once more after that, and blocks as a viewer requests them. Bare messages over the same link in the same run are measured beside.
//!
//! Times are from the start of the command to its end, so they include processes, connection, description and writing the file.
//! Times of messages begin after their handshake. Every copy is compared with the file.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::Stdio;

use array::{BlockKey, Content, Error, Priority, Result, Source, Urgency, want};
use client::directories::UserDirectories;
use client::url::Location;
use futures::StreamExt;
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use tempfile::TempDir;

use super::super::process::{RunningProcess, command};
use super::super::report::{Better, Case, median};
use super::flows::{Flowed, TransportScene, measured};
use super::limits::{goodput, limited};
use super::messages::MessageTransport;
use crate::rng::SeededRng;

/// Data of one copy, and of one in a quick run, bytes: whole multiples of [`SIDE`] squared.
const BYTES: u64 = 419_430_400;
const QUICK_BYTES: u64 = 40 << 20;
/// Goals by loss, as shares of the rate that the link allows; retransmissions are accounted for in that rate.
const GOALS: &[(f64, f64)] = &[(0.0, 0.90), (1e-3, 0.88), (1e-2, 0.85)];
/// Round trips that a first copy may take besides its data: connection, description, first request.
const ROUND_TRIPS: f64 = 3.0;
/// Rate from which processors are the limit, bytes per second; the goal is then this share of the faster bare messages.
const BOUND_BY_PROCESSORS: f64 = 60e6;
const OF_MESSAGES: f64 = 0.8;
/// Memory for the receiver of blocks, bytes.
const MEMORY_BYTES: u64 = 1 << 30;
/// Rows and columns of a plane of the array: a mebibyte.
const SIDE: u64 = 1024;

/// One way of getting the data, and its measurements.
struct Contestant {
    name: &'static str,
    flows: Vec<Flowed>,
}

/// Runs the group `get`.
pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let bytes = if scene.options.is_quick { QUICK_BYTES } else { BYTES };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("noise.npy");
    write_noise(&file, bytes)?;
    let names = ["auto by QUIC", "TCP with TLS", "first time", "second time", "blocks"];
    let mut all = names.map(|name| Contestant { name, flows: Vec::new() });
    for _ in 0..scene.options.runs.unwrap_or(1) {
        let server =
            RunningProcess::start_at(&scene.side, scene.program, &["serve", &file.to_string_lossy()]).await?;
        let home = tempfile::tempdir()?;
        let found = [
            scene.ours_of(MessageTransport::Quic(link::Choice::default()), bytes).await?,
            scene.ours_of(MessageTransport::Tcp { streams: 1 }, bytes).await?,
            copy(scene, &server, &home, &file, bytes).await?,
            copy(scene, &server, &home, &file, bytes).await?,
            blocks(&server, bytes).await?,
        ];
        all.iter_mut().zip(found).for_each(|(contestant, flowed)| contestant.flows.push(flowed));
    }
    let [by_quic, by_tcp, rest @ ..] = all;
    let peers = [("messages, auto by QUIC", by_quic), ("messages, TCP with TLS", by_tcp)];
    Ok(rest.iter().flat_map(|contestant| cases(scene, contestant, &peers, bytes)).collect())
}

fn cases(scene: &TransportScene<'_>, of: &Contestant, peers: &[(&str, Contestant)], bytes: u64) -> [Case; 2] {
    let what = if of.name == "blocks" { "a viewer's blocks with defaults" } else { "get with defaults" };
    let name = if of.name == "blocks" { what.to_owned() } else { format!("{what}, {}", of.name) };
    let figures = |flows: &[Flowed], figure: fn(&Flowed) -> f64| flows.iter().map(figure).collect::<Vec<_>>();
    let case = |name: &str, unit, better, figure: fn(&Flowed) -> f64| {
        let mut case = Case::measured(name, unit, better, figures(&of.flows, figure)).with("bytes", bytes);
        let peers =
            peers.iter().map(|(name, peer)| ((*name).to_owned(), median(&mut figures(&peer.flows, figure))));
        case.peers = peers.collect();
        case
    };
    let speed = limited(scene, case(&name, "B/s", Better::Higher, Flowed::bytes_per_sec));
    let cost = format!("{name}: processor time");
    [with_goal(scene, speed, bytes), case(&cost, "s/GB", Better::Lower, Flowed::cpu_secs_per_gb)]
}

/// Adds the goal: a share of the link's rate after some round trips or, where processors are the limit, of the rate of bare messages.
fn with_goal(scene: &TransportScene<'_>, case: Case, bytes: u64) -> Case {
    let link = &scene.options.link;
    let Some((goodput, rate)) = goodput(link).zip(link.rate) else { return case };
    if rate >= BOUND_BY_PROCESSORS {
        let best = case.peers.values().flatten().copied().fold(0.0, f64::max);
        return case.aiming(OF_MESSAGES * best);
    }
    let loss = link.loss.unwrap_or_default();
    let share = GOALS.iter().rfind(|(of, _)| *of <= loss).map_or(1.0, |(_, share)| *share);
    let least_secs = bytes as f64 / goodput + ROUND_TRIPS * link.rtt.unwrap_or_default();
    case.aiming(share * bytes as f64 / least_secs)
}

/// One `corridor get` with the state directory `home`.
async fn copy(
    scene: &TransportScene<'_>,
    server: &RunningProcess,
    home: &TempDir,
    file: &Path,
    bytes: u64,
) -> Result<Flowed> {
    let into = home.path().join("copy.npy");
    let mut command = command(scene.program, home.path());
    command.env("XDG_STATE_HOME", home.path());
    command.args(["get", server.text("url")?, "--output"]).arg(&into);
    let work = async {
        let done = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().await?;
        if done.status.success() {
            return Ok(bytes as f64);
        }
        Err(Error::internal(format!("`corridor get` said: {}", String::from_utf8_lossy(&done.stderr).trim())))
    };
    let flowed = measured(server, work).await?;
    check_same(file, &into)?;
    std::fs::remove_file(&into)?;
    Ok(flowed)
}

/// All blocks of the array, requested at once, with an empty state directory.
async fn blocks(server: &RunningProcess, bytes: u64) -> Result<Flowed> {
    let home = tempfile::tempdir()?;
    let location: Location = server.text("url")?.parse()?;
    let work = async {
        let context =
            Context::new(UserDirectories::below(home.path()), MemoryBudget::viewing(MEMORY_BYTES), None);
        let source = assemble(&location, &context).await?.source;
        let dataset = source.describe().await?;
        let key = |index| BlockKey {
            dataset: dataset.id,
            generation: dataset.generation,
            array: 0,
            level: 0,
            index,
        };
        let count = dataset.array(0)?.level(0)?.block_count();
        let urgency = Urgency::of(Priority::NORMAL);
        let (wants, handles): (Vec<_>, Vec<_>) = (0..count).map(|index| want(key(index), urgency)).unzip();
        let mut completions = source.blocks(wants);
        let mut arrived = 0;
        while let Some(done) = completions.next().await {
            if let Content::Data { bytes, .. } = &done.result?.content {
                arrived += bytes.len() as u64;
            }
        }
        drop(handles);
        if arrived != bytes {
            return Err(Error::corrupt(format!("expected {bytes} bytes in blocks, found {arrived}")));
        }
        Ok(arrived as f64)
    };
    measured(server, work).await
}

/// Writes an incompressible array of bytes as numpy does.
fn write_noise(file: &Path, bytes: u64) -> Result<()> {
    let header = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {SIDE}, {SIDE}), }}",
        bytes / (SIDE * SIDE)
    );
    // Magic, version and length before it, a newline behind: a multiple of 64.
    let padded = format!("{header:<width$}\n", width = (header.len() + 11).next_multiple_of(64) - 11);
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&u16::try_from(padded.len()).unwrap_or_default().to_le_bytes())?;
    out.write_all(padded.as_bytes())?;
    let mut rng = SeededRng::new(1);
    for _ in 0..bytes / 8 {
        out.write_all(&rng.bits().to_le_bytes())?;
    }
    Ok(out.flush()?)
}

/// Checks that a copy has the data of the file; their headers may be padded differently.
fn check_same(file: &Path, copy: &Path) -> Result<()> {
    let (mut original, mut copied) = (data(file)?, data(copy)?);
    let (mut ours, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let (ours_bytes, theirs_bytes) = (fill(&mut original, &mut ours)?, fill(&mut copied, &mut theirs)?);
        if ours[..ours_bytes] != theirs[..theirs_bytes] {
            return Err(Error::corrupt("expected a copy of the same bytes, found others"));
        }
        if ours_bytes == 0 {
            return Ok(());
        }
    }
}

/// Reads the data of an `.npy` file, after its header.
fn data(file: &Path) -> Result<impl Read + use<>> {
    let mut reader = BufReader::with_capacity(1 << 20, std::fs::File::open(file)?);
    let mut start = [0; 10];
    reader.read_exact(&mut start)?;
    let mut header = vec![0; usize::from(u16::from_le_bytes([start[8], start[9]]))];
    reader.read_exact(&mut header)?;
    Ok(reader)
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
