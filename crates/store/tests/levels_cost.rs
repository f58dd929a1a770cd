//! Cost of added levels in requests and bytes, counted on real files. There is only one test here: the counts
//! are those of the whole process.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::conformance::fetch;
use array::{BlockKey, Dataset, LevelOrigin, Source};
use corridor_store::{FormatSource, IoCounts, Levels, OpenOptions, open_format, process_io_counts};

fn describe_raw(dir: &Path, side: u64) -> String {
    let text = format!("file = 'data.bin'\nshape = [{side}, {side}, {side}]\ndtype = 'uint8'\n");
    let path = dir.join("volume.toml");
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn open(location: &str, side_dir: Option<PathBuf>) -> Levels {
    let options = OpenOptions { side_dir, ..OpenOptions::default() };
    let format = open_format(location, &options).unwrap();
    Levels::new(FormatSource::new(format), &options)
}

/// Every block of the coarsest level of this origin.
async fn coarsest(levels: &Levels, origin: LevelOrigin) -> Vec<u8> {
    let dataset: Arc<Dataset> = levels.describe().await.unwrap();
    let all = &dataset.arrays[0].levels;
    let number = all.iter().rposition(|l| l.origin == origin).unwrap();
    let key = |index| BlockKey {
        dataset: dataset.id,
        generation: dataset.generation,
        array: 0,
        level: u8::try_from(number).unwrap(),
        index,
    };
    let keys: Vec<BlockKey> = (0..all[number].block_count()).map(key).collect();
    let answers = fetch(levels, &keys).await;
    keys.iter().flat_map(|k| answers[k].result.as_ref().unwrap().bytes().unwrap().to_vec()).collect()
}

fn since(before: IoCounts) -> IoCounts {
    let now = process_io_counts();
    IoCounts { requests: now.requests - before.requests, bytes: now.bytes - before.bytes }
}

#[tokio::test]
async fn levels_cost_what_they_must() {
    // A sampled level of 64 GiB: one request per row of samples.
    let dir = tempfile::tempdir().unwrap();
    File::create(dir.path().join("data.bin")).unwrap().set_len(1 << 36).unwrap();
    let levels = open(&describe_raw(dir.path(), 4096), None);
    let before = process_io_counts();
    assert_eq!(coarsest(&levels, LevelOrigin::Sampled).await.len(), 64 * 64 * 64);
    let cost = since(before);
    assert_eq!(cost.requests, 64 * 64);
    assert!(cost.bytes < 17 << 20, "{cost:?}");

    // Means use every byte once, in boxes: of 100 rows of 100 bytes in each of 800 planes, with the gaps between rows.
    // After reopening, nothing is read.
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..200u32 * 200 * 200).map(|i| (i / 7 % 251).to_le_bytes()[0]).collect();
    std::fs::write(dir.path().join("data.bin"), &bytes).unwrap();
    let location = describe_raw(dir.path(), 200);
    let side = || Some(dir.path().join("side"));
    let levels = open(&location, side());
    let before = process_io_counts();
    let first = coarsest(&levels, LevelOrigin::Mean).await;
    let cost = since(before);
    assert_eq!((cost.requests, cost.bytes), (800, 800 * (99 * 200 + 100)));
    drop(levels);
    let levels = open(&location, side());
    let before = process_io_counts();
    assert_eq!(coarsest(&levels, LevelOrigin::Mean).await, first);
    assert_eq!(since(before), IoCounts::default(), "a kept level reads no data");

    // A file that changed finds nothing old.
    std::fs::write(dir.path().join("data.bin"), vec![9; bytes.len()]).unwrap();
    let levels = open(&location, side());
    assert!(coarsest(&levels, LevelOrigin::Mean).await.iter().all(|&b| b == 9));
}
