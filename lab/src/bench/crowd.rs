//! Many clients of one server: what an idle one costs in memory, and whether busy ones get equal shares.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Error, Priority, ReadRequest, Result, Selection, Source, Target};
use client::dial::{Dialer, Endpoint};
use client::remote::RemoteSource;
use client::url::Url;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::options::Options;
use super::process::RunningProcess;
use super::raw_file;
use super::report::{BenchReport, Better, Case, Link};
use super::wall_clock;

/// Clients that are connected, have asked once and do nothing.
const IDLE: usize = 1000;
/// Clients that read as fast as they can.
const BUSY: usize = 100;
/// Duration of their reads.
const BUSY_FOR: Duration = Duration::from_secs(20);
/// Connections made at a time.
const DIALED_AT_ONCE: usize = 32;
/// Voxels a side of the served field.
const SIDE: u64 = 1024;
/// Bytes of one read of a busy client.
const READ_BYTES: u64 = 256 << 10;
/// Bulk bytes that may be on their way to one client.
const WINDOW_BYTES: u64 = 4 << 20;
/// Goals: memory of an idle client, bytes, and slowest over fastest.
const GOALS: (f64, f64) = (65_536.0, 0.8);

pub(super) async fn run(program: &Path, options: &Options) -> Result<BenchReport> {
    let mut report = BenchReport::here("crowd", Link::default());
    let (idle, busy) = if options.is_quick { (IDLE / 10, BUSY / 10) } else { (IDLE, BUSY) };
    let folder = tempfile::tempdir()?;
    let file = flat_file(&folder)?;
    let clients = (4 * (idle + busy)).to_string();
    let server = RunningProcess::start(program, &["serve", &file, "--clients", &clients]).await?;
    let url: Url = server.text("url")?.parse()?;
    // Memory that the first client of all allocates belongs to none of the others.
    let first = connect(&url).await?;
    let before = resident(&server)?;
    let crowd: Vec<_> =
        stream::iter(0..idle).map(|_| connect(&url)).buffer_unordered(DIALED_AT_ONCE).try_collect().await?;
    let each = (resident(&server)? - before) / idle as f64;
    report.cases.push(
        Case::measured("the server's memory for an idle client", "bytes", Better::Lower, vec![each])
            .with("clients", idle)
            .aiming(GOALS.0),
    );
    let workers: Vec<_> =
        stream::iter(0..busy).map(|_| connect(&url)).buffer_unordered(DIALED_AT_ONCE).try_collect().await?;
    let until = wall_clock::now() + BUSY_FOR;
    let work = workers.iter().enumerate().map(|(n, source)| read_until(source, n as u64, until));
    let bytes = futures::future::try_join_all(work).await?;
    let (slowest, fastest) = (bytes.iter().min().copied(), bytes.iter().max().copied());
    let share = slowest.unwrap_or_default() as f64 / fastest.unwrap_or_default().max(1) as f64;
    report.cases.push(
        Case::measured("slowest over fastest busy client", "", Better::Higher, vec![share])
            .with("clients", busy)
            .with("idle clients besides", idle)
            .with("bytes of a read", READ_BYTES)
            .aiming(GOALS.1),
    );
    let rate = bytes.iter().sum::<u64>() as f64 / BUSY_FOR.as_secs_f64();
    report.cases.push(Case::measured("all busy clients together", "B/s", Better::Higher, vec![rate]));
    drop((first, crowd));
    Ok(report)
}

/// A client with a connection of its own that has asked once.
async fn connect(url: &Url) -> Result<Arc<RemoteSource>> {
    let source = RemoteSource::new(Dialer::new(Endpoint::of(url, WINDOW_BYTES)?), url.dataset.clone());
    source.describe().await?;
    Ok(Arc::new(source))
}

/// Reads at scattered positions, one read after another; returns the bytes.
async fn read_until(source: &RemoteSource, client: u64, until: Instant) -> Result<u64> {
    let mut bytes = 0;
    for n in 0.. {
        if wall_clock::now() >= until {
            break;
        }
        let plane = (client * 7919 + n * 104_729) % SIDE;
        let rows = READ_BYTES / SIDE;
        let selection = Selection::of_box(&[plane, 0, 0], &[1, rows, SIDE]);
        let (target, region) = Target::new(&selection.shape(), 1)?;
        let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
        source.read(request, region).await?;
        drop(target);
        bytes += READ_BYTES;
    }
    Ok(bytes)
}

fn resident(server: &RunningProcess) -> Result<f64> {
    server.resident_bytes().ok_or_else(|| Error::unsupported("this system does not tell a process's memory"))
}

/// Writes a sparse raw file: reading it costs little, so that the connections are measured.
fn flat_file(folder: &tempfile::TempDir) -> Result<String> {
    std::fs::File::create(folder.path().join("flat.bin"))?.set_len(SIDE * SIDE * SIDE)?;
    raw_file::describe(folder.path(), "flat", &[SIDE; 3], "u1")
}
