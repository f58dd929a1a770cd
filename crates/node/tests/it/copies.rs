//! `get`: the written file contains the selected elements.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use array::conformance::{MemorySource, one_array};
use array::{
    Completions, Dataset, Indexing, ReadRequest, Region, Result, Selection, Source, Want, cut_by_grid,
};
use client::remote::RemoteSource;
use export::get::{GetRequest, get};
use export::selection_text::ArraySelection;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use server::stack::Stack;

use crate::common::{Served, local, read};

async fn copy(stack: &Stack, texts: &[&str], output: &Path, is_decoded: bool) -> Result<()> {
    let request = GetRequest {
        selections: texts.iter().map(|t| ArraySelection::parse(t).unwrap()).collect(),
        level: 0,
        is_decoded,
        output: output.to_path_buf(),
        memory_bytes: 1 << 20,
    };
    get(Arc::clone(&stack.source), &request, &|_| ()).await.map(drop)
}

/// Returns the expected bytes of a selection, in the host's byte order, with axes of negative steps reversed.
#[expect(clippy::cast_possible_truncation, reason = "a small volume")]
async fn expected(stack: &Stack, text: &str) -> Vec<u8> {
    let dataset = stack.source.describe().await.unwrap();
    let array = &dataset.arrays[0];
    let mut bytes = read(&stack.source, 0, Selection::all(array.shape())).await.unwrap();
    array.dtype.to_native(&mut bytes);
    let resolved = Indexing::parse(text).unwrap().resolve(array.shape()).unwrap();
    let item = array.dtype.size_bytes();
    let shape: Vec<usize> = array.shape().iter().map(|&n| n as usize).collect();
    let ranges = resolved.selection.ranges();
    let places: Vec<Vec<usize>> = (0..shape.len())
        .map(|a| {
            let mut at: Vec<usize> = (0..ranges[a].count).map(|i| ranges[a].index(i) as usize).collect();
            if resolved.reversed[a] {
                at.reverse();
            }
            at
        })
        .collect();
    let mut out = Vec::new();
    for &z in &places[0] {
        for &y in &places[1] {
            for &x in &places[2] {
                let at = ((z * shape[1] + y) * shape[2] + x) * item;
                out.extend_from_slice(&bytes[at..at + item]);
            }
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_and_npy_files_have_the_selected_elements_in_host_order() {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let stack = local(folder.path(), sample.to_str().unwrap()).await;
    for text in ["", "::-1, ::2, 3:90", "5, ::-3, ::-1", "0:0", "160, 93, 102"] {
        let expect = expected(&stack, text).await;
        let raw = folder.path().join("out.raw");
        copy(&stack, &[&format!("[{text}]")], &raw, false).await.unwrap();
        assert!(std::fs::read(&raw).unwrap() == expect, "[{text}]");
        let npy = folder.path().join("out.npy");
        copy(&stack, &[&format!("[{text}]")], &npy, false).await.unwrap();
        let bytes = std::fs::read(&npy).unwrap();
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"));
        assert!(bytes[bytes.len() - expect.len()..] == expect, "[{text}]");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_selections_are_written_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let stack = local(folder.path(), sample.to_str().unwrap()).await;
    let raw = folder.path().join("out.raw");
    copy(&stack, &["[0]", "[1, ::-1]", "[0:0]", "[2]"], &raw, false).await.unwrap();
    let mut expect = Vec::new();
    for text in ["0", "1, ::-1", "2"] {
        expect.extend(expected(&stack, text).await);
    }
    assert!(std::fs::read(&raw).unwrap() == expect);
    assert!(copy(&stack, &["[0]", "[1]"], &folder.path().join("x.npy"), false).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn zarr_and_netcdf_are_read_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let stack = local(folder.path(), sample.to_str().unwrap()).await;
    for name in ["out.zarr", "out.nc"] {
        let out = folder.path().join(name);
        copy(&stack, &["[::2, ::-1, 7:100]"], &out, false).await.unwrap();
        let back = local(folder.path(), out.to_str().unwrap()).await;
        // A copy also contains its coordinates as arrays.
        let dataset = back.source.describe().await.unwrap();
        let mut arrays = (0..).zip(&dataset.arrays);
        let (number, array) = arrays.find(|(_, array)| array.shape().len() == 3).unwrap();
        let mut bytes = read(&back.source, number, Selection::all(array.shape())).await.unwrap();
        array.dtype.to_native(&mut bytes);
        assert!(bytes == expected(&stack, "::2, ::-1, 7:100").await, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_copy_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let stack = local(folder.path(), "synthetic:linear?shape=1048576,1048576,1048576&dtype=u8").await;
    let out = tempfile::tempdir().unwrap();
    assert!(copy(&stack, &[""], &out.path().join("x.npy"), false).await.is_err());
    assert!(copy(&stack, &["[0]"], &out.path().join("x.tiff"), false).await.is_err());
    assert!(copy(&stack, &["[2000000]"], &out.path().join("x.npy"), false).await.is_err());
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

/// Source that counts how often reads decode each chunk of one level.
struct ChunkCountingSource {
    inner: Arc<dyn Source>,
    level: u8,
    chunks: Mutex<BTreeMap<Vec<u64>, usize>>,
}

impl Source for ChunkCountingSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.inner.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.inner.blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        assert_eq!(request.level, self.level);
        let (selection, level) = (request.selection.clone(), usize::from(self.level));
        let dataset = self.inner.describe().now_or_never().unwrap().unwrap();
        let chunk = dataset.arrays[0].levels[level].chunk.clone().unwrap();
        let per_axis = cut_by_grid(&selection, &chunk);
        let places = per_axis.iter().fold(vec![Vec::new()], |found: Vec<Vec<u64>>, axis| {
            found.iter().flat_map(|at| axis.iter().map(|c| [&at[..], &[c.0]].concat())).collect()
        });
        for place in places {
            *self.chunks.lock().entry(place).or_default() += 1;
        }
        self.inner.read(request, into)
    }
}

/// Returns `count` consecutive elements of two bytes, little-endian.
fn counting_elements(count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| u16::try_from(i % 65_521).unwrap().to_le_bytes()).collect()
}

/// Creates a source of 40 x 300 x 500 elements of two bytes, and a coarser level with other chunks.
fn two_levels() -> MemorySource {
    let mut dataset = one_array("<u2".parse().unwrap(), &[40, 300, 500], &[16, 16, 16]);
    let mut coarse = dataset.arrays[0].levels[0].clone();
    coarse.shape = vec![40, 200, 500];
    coarse.factor = vec![1.0, 1.5, 1.0];
    coarse.chunk = Some(vec![7, 40, 9]);
    dataset.arrays[0].levels[0].chunk = Some(vec![16, 20, 30]);
    dataset.arrays[0].levels.push(coarse);
    let elements =
        dataset.arrays[0].levels.iter().map(|level| counting_elements(level.shape.iter().product()).into());
    let elements = vec![elements.collect()];
    MemorySource::new(dataset, elements).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_decodes_each_chunk_of_its_level_once() {
    // Rows of chunks have 4.8 and 1.4 MB; a slab has 1 MiB with this little memory.
    for (level, name) in [(0, "out.npy"), (1, "out.npy"), (0, "out.zarr"), (1, "out.zarr")] {
        let folder = tempfile::tempdir().unwrap();
        let memory: Arc<dyn Source> = Arc::new(two_levels());
        let counted =
            Arc::new(ChunkCountingSource { inner: Arc::clone(&memory), level, chunks: Mutex::default() });
        let output = folder.path().join(name);
        let request = GetRequest {
            selections: vec![ArraySelection::parse("").unwrap()],
            level,
            is_decoded: false,
            output: output.clone(),
            memory_bytes: 1 << 20,
        };
        get(Arc::clone(&counted) as Arc<dyn Source>, &request, &|_| ()).await.unwrap();
        let chunks = counted.chunks.lock().clone();
        assert!(chunks.len() > 600 && chunks.values().all(|&n| n == 1), "level {level}, {name}");

        let dataset = memory.describe().await.unwrap();
        let shape = dataset.arrays[0].levels[usize::from(level)].shape.clone();
        let expect = counting_elements(shape.iter().product());
        let found = if name.ends_with(".npy") {
            let file = std::fs::read(&output).unwrap();
            file[file.len() - expect.len()..].to_vec()
        } else {
            let back = local(folder.path(), output.to_str().unwrap()).await;
            read(&back.source, 0, Selection::all(&shape)).await.unwrap()
        };
        assert!(found == expect, "level {level}, {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_read_assembles_wide_rows_of_chunks() {
    // A row of chunks has 8 MB, more than the server reads at a time.
    let folder = tempfile::tempdir().unwrap();
    let here = local(folder.path(), "synthetic:waves?shape=40,512,1000&dtype=u16").await;
    let stored = folder.path().join("wide.zarr");
    copy(&here, &[""], &stored, false).await.unwrap();
    let served = Served::start(&[stored.to_str().unwrap()]).await;
    let far = RemoteSource::new(served.dialer(), String::new());
    let whole = Selection::all(&[40, 512, 1000]);
    let far: Arc<dyn Source> = Arc::new(far);
    let (expect, found) = (read(&here.source, 0, whole.clone()).await, read(&far, 0, whole).await);
    assert!(found.unwrap() == expect.unwrap());
}
