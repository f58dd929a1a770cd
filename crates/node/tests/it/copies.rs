//! `get`: what is in the file is what was selected.

use std::path::Path;
use std::sync::Arc;

use node::array::{Indexing, Result, Selection, Source};
use node::assemble::Stack;
use node::get::{GetRequest, get};
use node::pick::Pick;

use crate::common::{local, read};

async fn copy(stack: &Stack, texts: &[&str], output: &Path, is_decoded: bool) -> Result<()> {
    let request = GetRequest {
        picks: texts.iter().map(|t| Pick::parse(t).unwrap()).collect(),
        level: 0,
        is_decoded,
        output: output.to_path_buf(),
        memory_bytes: 1 << 20,
    };
    get(Arc::clone(&stack.source), &request, &|_| ()).await.map(drop)
}

/// The expected bytes, in the host's byte order, axes reversed as asked.
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
async fn raw_and_npy_hold_the_selected_elements_in_host_order() {
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
async fn many_selections_stand_one_after_another() {
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
        let array = back.source.describe().await.unwrap().arrays[0].clone();
        let mut bytes = read(&back.source, 0, Selection::all(array.shape())).await.unwrap();
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
    assert!(copy(&stack, &["[0]"], &out.path().join("x.h5"), false).await.is_err());
    assert!(copy(&stack, &["[2000000]"], &out.path().join("x.npy"), false).await.is_err());
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}
