//! Time to the first picture: from joining a view of a 64 GB array that another process serves to the first picture
//! that shows a block of it.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use link::Trust;
use session::{Item, JoinParams, ParticipantNote};
use tempfile::TempDir;
use tokio::task::JoinSet;
use wire::{ClientConfig, ops};

use super::process::RunningProcess;
use super::raw_file;
use super::report::{BenchReport, Better, Case, Link};
use super::wall_clock;

/// Runs of each case; both processes are started anew for each.
const RUNS: usize = 5;
/// Voxels a side: 64 GB of bytes.
const SIDE: u64 = 4096;
/// Memory that the viewer may use for blocks.
const MEMORY: &str = "512MiB";
/// Memory that a user who asked for [`MEMORY`] may expect the whole process to stay under, bytes.
const PEAK_BYTES: f64 = (1u64 << 30) as f64;
/// Goal, seconds.
const GOAL_SECS: f64 = 1.0;
/// Size that a JPEG of an empty picture does not reach, bytes.
const BLANK_BYTES: usize = 4096;
/// Longest wait for a picture.
const WITHIN: Duration = Duration::from_secs(60);
/// Time that the viewer then goes on loading, before its memory is read.
const SETTLE: Duration = Duration::from_secs(10);

pub(super) async fn run(program: &Path) -> Result<BenchReport> {
    let mut report = BenchReport::here("first-picture", Link::default());
    let folder = tempfile::tempdir()?;
    let field = format!("synthetic:waves?shape={SIDE},{SIDE},{SIDE}&dtype=u8");
    let file = sparse_file(&folder)?;
    for (name, location) in [("computed field", &field), ("flat file", &file)] {
        let mut seconds = Vec::new();
        let mut peaks = Vec::new();
        for _ in 0..RUNS {
            let (first, peak) = once(program, location).await?;
            seconds.push(first);
            peaks.extend(peak);
        }
        report.cases.push(
            Case::measured(&format!("first picture, {name}"), "s", Better::Lower, seconds)
                .with("bytes", SIDE * SIDE * SIDE)
                .aiming(GOAL_SECS),
        );
        report.cases.push(
            Case::measured(&format!("viewer's peak memory, {name}"), "B", Better::Lower, peaks)
                .with("memory", MEMORY)
                .aiming(PEAK_BYTES),
        );
    }
    Ok(report)
}

/// Seconds to the first picture, and the viewer's peak memory after loading for a while.
async fn once(program: &Path, location: &str) -> Result<(f64, Option<f64>)> {
    let server = RunningProcess::start(program, &["serve", location]).await?;
    let viewer = RunningProcess::start(program, &["view", server.text("url")?, "--memory", MEMORY]).await?;
    let port = port_of(viewer.text("url")?)?;
    let config = ClientConfig { token: viewer.text("token")?.to_owned(), ..ClientConfig::default() };
    let mut running = JoinSet::new();
    let start = wall_clock::now();
    let link = link::carrier::ws::connect("127.0.0.1", port, &Trust::Plain).await?;
    let (client, driver) = link::connect(link, config)?;
    running.spawn(driver);
    let join = JoinParams {
        session: "main".into(),
        name: "bench".into(),
        width: 1024,
        height: 800,
        resume: String::new(),
    };
    let urgency = Urgency::of(Priority::INTERACTIVE);
    let mut answer = client.request(ops::JOIN, ops::encode_json(&join)?, urgency).await?;
    let first = tokio::time::timeout(WITHIN, async {
        while let Some(item) = answer.next_item().await {
            let item = item?;
            let Item::Frame(frame) = ops::decode_json::<Item>(&item.body, "an item of `join`")? else {
                continue;
            };
            answer.note(ops::encode_json(&ParticipantNote::Shown { frame: frame.id })?)?;
            // With a block there and its values known, so that something is seen of it.
            if frame.fidelity.blocks_present > 0 && item.bulk.len() > BLANK_BYTES {
                return Ok(start.elapsed().as_secs_f64());
            }
        }
        Err(Error::new(ErrorKind::Unreachable, "the session ended before a picture"))
    });
    let seconds = first.await.map_err(|_| Error::new(ErrorKind::TimedOut, "no picture"))??;
    // Loading goes on behind the first picture; the budget must hold then too.
    let rest = tokio::time::timeout(SETTLE, async {
        while let Some(Ok(item)) = answer.next_item().await {
            if let Ok(Item::Frame(frame)) = ops::decode_json::<Item>(&item.body, "an item of `join`") {
                answer.note(ops::encode_json(&ParticipantNote::Shown { frame: frame.id })?)?;
            }
        }
        Ok::<(), Error>(())
    });
    if let Ok(ended) = rest.await {
        ended?;
    }
    Ok((seconds, viewer.peak_bytes()))
}

/// The port in `http://HOST:PORT/...`.
pub(super) fn port_of(url: &str) -> Result<u16> {
    let authority = url.split("://").nth(1).and_then(|rest| rest.split(['/', '#']).next());
    let port = authority.and_then(|a| a.rsplit(':').next()).and_then(|p| p.parse().ok());
    port.ok_or_else(|| Error::internal(format!("expected an address with a port, found `{url}`")))
}

/// Writes a raw file of 64 GB, sparse on disk: a ball, on the rows that the coarse levels (factors 16 to 64) sample.
fn sparse_file(folder: &TempDir) -> Result<String> {
    let file = std::fs::File::create(folder.path().join("big.bin"))?;
    file.set_len(SIDE * SIDE * SIDE)?;
    for factor in [16, 32, 64] {
        let places: Vec<u64> = (0..SIDE / factor).map(|i| i * factor + (factor - 1) / 2).collect();
        for &z in &places {
            for &y in &places {
                file.write_all_at(&ball_row(z, y), (z * SIDE + y) * SIDE)?;
            }
        }
    }
    raw_file::describe(folder.path(), "big", &[SIDE; 3], "u1")
}

/// Row `z`, `y` of a ball that is brightest in the middle of the volume.
#[expect(clippy::cast_possible_truncation, reason = "clamped to the range of a byte")]
fn ball_row(z: u64, y: u64) -> Vec<u8> {
    let middle = SIDE as f64 / 2.0;
    let square = |v: u64| (v as f64 - middle).powi(2);
    let value = |x: u64| 255.0 - (square(x) + square(y) + square(z)).sqrt() * 255.0 / (0.75 * middle);
    (0..SIDE).map(|x| value(x).clamp(0.0, 255.0) as u8).collect()
}
