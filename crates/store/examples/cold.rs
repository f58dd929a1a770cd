//! How fast a file that is on the disk only is read: many small reads at random, and rows far apart.
//!
//! `cargo run --release -p corridor-store --example cold -- FILE` makes FILE (2 GB) if it is not there. Before each
//! case the system is asked to forget the file; `warm` cases follow without.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use array::{Priority, ReadRequest, Selection, Source, Target};
use corridor_store::OpenOptions;
use futures::executor::block_on;
use futures::stream::{self, StreamExt};

/// Rows of the file, and bytes of a row.
const ROWS: u64 = 500_000;
const ROW_BYTES: u64 = 4096;
/// Small reads that are given together, and how many such are under way: as a server does.
const TOGETHER: usize = 64;
const UNDER_WAY: usize = 4;
const READS: u64 = 20_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "what it finds is printed, and times are what it finds"
)]
fn main() -> Outcome<()> {
    let path = std::env::args().nth(1).ok_or("expected the name of a file that ends with .nrrd")?;
    let path = Path::new(&path);
    if !path.exists() {
        make(path)?;
    }
    let options = OpenOptions::default();
    let source = corridor_store::open(path.to_str().ok_or("expected UTF-8")?, &options)?;
    // Multiplying by a number without common factor with the count visits each row once.
    let random: Vec<Selection> = (0..READS).map(|n| row(n * 238_853 % ROWS)).collect();
    let every = |text: &str| Selection::parse(text, &[ROWS, ROW_BYTES]);
    let cases = [
        ("20,000 rows of 4 KiB at random", random),
        ("every 25th row, one read", vec![every("::25, :")?]),
        ("64 elements of every 10th row, one read", vec![every("::10, 0:64")?]),
    ];
    for (name, selections) in &cases {
        for how in ["cold", "warm"] {
            if how == "cold" {
                forget(path)?;
            }
            let start = Instant::now();
            block_on(read(&*source, selections))?;
            println!("{name}, {how}: {:.3} s", start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

fn row(number: u64) -> Selection {
    Selection::of_box(&[number, 0], &[1, ROW_BYTES])
}

async fn read(source: &dyn Source, selections: &[Selection]) -> Outcome<()> {
    let calls = selections.chunks(TOGETHER).map(|selections| async move {
        let mut reads = Vec::new();
        let mut targets = Vec::new();
        for selection in selections {
            let (target, region) = Target::new(&selection.shape(), 1)?;
            let selection = selection.clone();
            reads.push((ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, region));
            targets.push(target);
        }
        let ends: Vec<_> = source.read_many(reads).collect().await;
        ends.into_iter().try_for_each(|(_, end)| end)
    });
    let ends: Vec<array::Result<()>> = stream::iter(calls).buffer_unordered(UNDER_WAY).collect().await;
    Ok(ends.into_iter().collect::<array::Result<()>>()?)
}

/// A file whose bytes no disk makes smaller.
fn make(path: &Path) -> Outcome<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write!(file, "NRRD0004\ntype: uint8\ndimension: 2\nsizes: {ROW_BYTES} {ROWS}\nencoding: raw\n\n")?;
    let mut state = 1u64;
    for _ in 0..ROWS * ROW_BYTES / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes())?;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}

/// Has the system drop what it keeps of a file.
fn forget(path: &Path) -> Outcome<()> {
    rustix::fs::fadvise(&File::open(path)?, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}
