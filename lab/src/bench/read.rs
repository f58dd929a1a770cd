//! Reads of an array that another process serves, on loopback with encryption: one large read, and small ones one after
//! another. The limit is the same number of bytes over a bare connection in the same run.

use std::path::Path;
use std::sync::Arc;

use array::{Priority, ReadRequest, Result, Selection, Source, Target};
use client::directories::UserDirectories;
use client::url::Location;
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use server::stack::Stack;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::process::RunningProcess;
use super::raw_file;
use super::report::{BenchReport, Better, Case, Link};
use super::wall_clock;

/// Runs of each case.
const RUNS: usize = 5;
/// Voxels a side.
const SIDE: u64 = 768;
/// Bytes of the large read.
const BYTES: u64 = SIDE * SIDE * SIDE;
/// Small reads, one after another, per run.
const SMALL_READS: u64 = 200;
/// Memory of the client, bytes; less than the array, so that the cache cannot hold it.
const MEMORY_BYTES: u64 = 128 << 20;

pub(super) async fn run(program: &Path) -> Result<BenchReport> {
    let mut report = BenchReport::here("read", Link::default());
    let folder = tempfile::tempdir()?;
    let file = flat_file(&folder)?;
    let server = RunningProcess::start(program, &["serve", &file]).await?;
    let stack = connect(server.text("url")?, &folder).await?;
    let mut large = Vec::new();
    let mut small = Vec::new();
    let mut bare = Vec::new();
    for _ in 0..RUNS {
        large.push(BYTES as f64 / wall_clock::seconds(read_all(&stack.source)).await?);
        small.push(wall_clock::seconds(read_rows(&stack.source)).await? / SMALL_READS as f64);
        bare.push(BYTES as f64 / wall_clock::seconds(bare_stream(BYTES)).await?);
    }
    let bare = Case::measured("bare connection", "B/s", Better::Higher, bare);
    let limit = bare.ours.unwrap_or_default();
    report.cases.push(
        Case::measured("one read of the whole array", "B/s", Better::Higher, large)
            .with("bytes", BYTES)
            .limited(limit, "the same bytes over a bare TCP connection without encryption, same run"),
    );
    report.cases.push(
        Case::measured("small reads, one after another", "s", Better::Lower, small)
            .with("bytes", SIDE)
            .with("reads", SMALL_READS),
    );
    report.cases.push(bare);
    Ok(report)
}

async fn connect(url: &str, folder: &TempDir) -> Result<Stack> {
    let location: Location = url.parse()?;
    let directories = UserDirectories::below(folder.path());
    let context = Context::new(directories, MemoryBudget::viewing(MEMORY_BYTES), None);
    assemble(&location, &context).await
}

async fn read(source: &Arc<dyn Source>, selection: Selection) -> Result<Vec<u8>> {
    let (target, region) = Target::new(&selection.shape(), 1)?;
    let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
    source.read(request, region).await?;
    target.into_vec()
}

async fn read_all(source: &Arc<dyn Source>) -> Result<()> {
    read(source, Selection::all(&[SIDE; 3])).await.map(drop)
}

/// One row at a time, far apart.
async fn read_rows(source: &Arc<dyn Source>) -> Result<()> {
    for i in 0..SMALL_READS {
        let at = i * 7919 % (SIDE * SIDE);
        read(source, Selection::of_box(&[at / SIDE, at % SIDE, 0], &[1, 1, SIDE])).await?;
    }
    Ok(())
}

/// Sends `bytes` from one task to another over loopback.
async fn bare_stream(bytes: u64) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let send = async {
        let (mut socket, _) = listener.accept().await?;
        let piece = vec![7u8; 1 << 20];
        let mut left = bytes;
        while left > 0 {
            let now = left.min(piece.len() as u64);
            socket.write_all(&piece[..usize::try_from(now).unwrap_or(piece.len())]).await?;
            left -= now;
        }
        socket.shutdown().await
    };
    let receive = async {
        let mut socket = TcpStream::connect(address).await?;
        let mut piece = vec![0u8; 1 << 20];
        while socket.read(&mut piece).await? > 0 {}
        Ok(())
    };
    tokio::try_join!(send, receive)?;
    Ok(())
}

/// Writes a raw file with a pattern, and its description.
fn flat_file(folder: &TempDir) -> Result<String> {
    let row: Vec<u8> = (0..BYTES / SIDE).map(|i| (i % 251) as u8).collect();
    let bytes: Vec<u8> = row.iter().copied().cycle().take(usize::try_from(BYTES).unwrap_or(0)).collect();
    std::fs::write(folder.path().join("flat.bin"), bytes)?;
    raw_file::describe(folder.path(), "flat", &[SIDE; 3], "u1")
}
