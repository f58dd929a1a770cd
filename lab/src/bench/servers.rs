//! One read from several servers of the same file: whether the rates of limited links add up, and whether a read is exact
//! although one of four servers is killed during it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, Priority, ReadRequest, Result, Selection, Source, Target};
use client::dial::{Compression, ConnectOptions};
use client::directories::UserDirectories;
use client::url::{Location, Url};
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use tempfile::TempDir;

use super::options::Options;
use super::process::RunningProcess;
use super::raw_file;
use super::relay::Relay;
use super::report::{BenchReport, Better, Case, Link, median};
use super::wall_clock;
use crate::rng::SeededRng;

/// Rate of each server's link, bytes per second.
const RATE: f64 = 25e6;
/// Bytes of a row of the file.
const ROW_BYTES: u64 = 1 << 20;
/// Bytes read from servers with limited links.
const LIMITED_BYTES: u64 = 256 << 20;
/// Bytes read while a server is killed.
const KILLED_BYTES: u64 = 2_000 << 20;
/// Reads during which a server is killed.
const KILLS: usize = 50;
/// Runs of the other cases.
const RUNS: usize = 3;
/// Memory of the client besides the result, bytes.
const MEMORY_BYTES: u64 = 512 << 20;
/// Links of servers of different speed, as shares of [`RATE`].
const UNEQUAL: [f64; 4] = [1.0, 0.5, 0.25, 0.1];

pub(super) async fn run(program: &Path, options: &Options) -> Result<BenchReport> {
    let mut report = BenchReport::here("servers", Link::default());
    let scale = if options.is_quick { 16 } else { 1 };
    let folder = tempfile::tempdir()?;
    if options.has("rates") {
        rates(program, &folder, options.runs.unwrap_or(RUNS), LIMITED_BYTES / scale, &mut report).await?;
    }
    if options.has("kill") {
        let kills = options.runs.unwrap_or(if options.is_quick { 3 } else { KILLS });
        killed(program, &folder, kills, KILLED_BYTES / scale, &mut report).await?;
    }
    Ok(report)
}

/// Speed with 1, 2 and 4 servers, and with 4 of different speed.
async fn rates(
    program: &Path,
    folder: &TempDir,
    runs: usize,
    bytes: u64,
    report: &mut BenchReport,
) -> Result<()> {
    let file = flat_file(folder, bytes)?;
    let groups: [Vec<f64>; 4] = [vec![1.0], vec![1.0; 2], vec![1.0; 4], UNEQUAL.to_vec()];
    let mut found: [Vec<f64>; 4] = Default::default();
    for _ in 0..runs {
        for (shares, found) in groups.iter().zip(&mut found) {
            let (mut servers, mut relays, mut urls) = (Vec::new(), Vec::new(), Vec::new());
            for share in shares {
                let server = RunningProcess::start(program, &["serve", &file]).await?;
                let mut url: Url = server.text("url")?.parse()?;
                let address: SocketAddr = url.authority().parse().map_err(|_| no_address(&url))?;
                let relay = Relay::start(address, RATE * share).await?;
                url.port = relay.address.port();
                urls.push(url);
                servers.push(server);
                relays.push(relay);
            }
            let source = connect(&urls, folder).await?;
            found.push(bytes as f64 / read_all(&source, bytes).await?.0);
        }
    }
    let one = median(&mut found[0]).unwrap_or_default();
    for (shares, found) in groups.iter().zip(found) {
        let sum: f64 = shares.iter().sum();
        let equal = shares.iter().all(|s| *s == shares[0]);
        let name = format!("{} servers{}", shares.len(), if equal { "" } else { " of different speed" });
        report.cases.push(
            Case::measured(&name, "B/s", Better::Higher, found)
                .with("bytes", bytes)
                .with("rates", shares.iter().map(|s| s * RATE).collect::<Vec<_>>())
                .limited(sum * RATE, "the sum of the rates that relays before the servers let through")
                .aiming(0.9 * sum * one),
        );
    }
    Ok(())
}

/// One of four servers is killed at a random moment of a read.
async fn killed(
    program: &Path,
    folder: &TempDir,
    kills: usize,
    bytes: u64,
    report: &mut BenchReport,
) -> Result<()> {
    let file = flat_file(folder, bytes)?;
    let mut servers = Vec::new();
    for _ in 0..4 {
        servers.push(RunningProcess::start(program, &["serve", &file]).await?);
    }
    let mut quiet = Vec::new();
    for _ in 0..RUNS {
        let source = connect(&urls_of(&servers)?, folder).await?;
        quiet.push(read_all(&source, bytes).await?.0);
    }
    let quiet = Case::measured("a read from 4 servers, none killed", "s", Better::Lower, quiet);
    // Of the shortest read so far, so that the moment lies within the next one.
    let mut shortest = quiet.min.unwrap_or_default();
    let mut rng = SeededRng::new(0x5eed);
    let (mut exact, mut seconds) = (0, Vec::new());
    for _ in 0..kills {
        let source = connect(&urls_of(&servers)?, folder).await?;
        let victim = usize::try_from(rng.below(4)).unwrap_or_default();
        let moment = Duration::from_secs_f64(shortest * rng.below(1000) as f64 / 1000.0);
        let kill = async {
            tokio::time::sleep(moment).await;
            servers[victim].kill()
        };
        let (read, killed) = tokio::join!(read_all(&source, bytes), kill);
        killed?;
        let (took, is_exact) = read?;
        exact += usize::from(is_exact);
        shortest = shortest.min(took);
        seconds.push(took);
        servers[victim] = RunningProcess::start(program, &["serve", &file]).await?;
    }
    report.cases.push(
        Case::measured(
            "exact reads while one of 4 servers is killed",
            "reads",
            Better::Higher,
            vec![exact as f64],
        )
        .with("bytes", bytes)
        .with("kills", kills)
        .aiming(kills as f64),
    );
    report.cases.push(
        Case::measured("a read from 4 servers, one killed", "s", Better::Lower, seconds).with("bytes", bytes),
    );
    report.cases.push(quiet.with("bytes", bytes));
    Ok(())
}

fn urls_of(servers: &[RunningProcess]) -> Result<Vec<Url>> {
    servers.iter().map(|server| server.text("url")?.parse()).collect()
}

fn no_address(url: &Url) -> Error {
    Error::internal(format!("expected an address, found `{}`", url.authority()))
}

/// All servers as one source, as a person names them in one URL.
async fn connect(urls: &[Url], folder: &TempDir) -> Result<Arc<dyn Source>> {
    let url = Url::joined(urls.iter().cloned())?;
    // What is counted are bytes of the link.
    let reach = ConnectOptions { compression: Compression::None, ..ConnectOptions::default() };
    let context =
        Context::new(UserDirectories::below(folder.path()), MemoryBudget::viewing(MEMORY_BYTES), None)
            .reaching(reach);
    Ok(assemble(&Location::Remote(url), &context).await?.source)
}

/// Reads everything; returns the seconds and whether every byte is correct.
async fn read_all(source: &Arc<dyn Source>, bytes: u64) -> Result<(f64, bool)> {
    let selection = Selection::all(&[bytes / ROW_BYTES, ROW_BYTES]);
    source.describe().await?;
    let (target, region) = Target::new(&selection.shape(), 1)?;
    let start = wall_clock::now();
    source.read(ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, region).await?;
    let took = start.elapsed().as_secs_f64();
    let found = target.into_vec()?;
    let rows = found.chunks_exact(row(0).len());
    Ok((took, rows.enumerate().all(|(n, found)| *found == *row(n))))
}

/// Row `n` of the file; no two of 251 successive rows are equal.
fn row(n: usize) -> Vec<u8> {
    (0..ROW_BYTES).map(|i| ((i + n as u64 * 7) % 251) as u8).collect()
}

/// Writes a raw file and its description.
fn flat_file(folder: &TempDir, bytes: u64) -> Result<String> {
    let rows = usize::try_from(bytes / ROW_BYTES).unwrap_or_default();
    let mut data = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    (0..rows).for_each(|n| data.extend_from_slice(&row(n)));
    std::fs::write(folder.path().join(format!("flat-{bytes}.bin")), data)?;
    raw_file::describe(folder.path(), &format!("flat-{bytes}"), &[bytes / ROW_BYTES, ROW_BYTES], "u1")
}
