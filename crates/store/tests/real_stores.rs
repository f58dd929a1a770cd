//! HDF5 files and Zarr stores that others wrote: stored values against what h5py and zarr-python found.
//!
//! Looks for a directory with a `MANIFEST.json` named by `CORRIDOR_TEST_DATA`; without it there is nothing to do.

use std::path::{Path, PathBuf};

use array::{ArrayInfo, Selection, Target};
use corridor_store::{CancelFlag, Format, OpenOptions, open_format};
use serde::Deserialize;

#[derive(Deserialize)]
struct Entry {
    files: Vec<PathBuf>,
    variables: Vec<Variable>,
}

#[derive(Deserialize)]
struct Variable {
    var: String,
    /// The name of the file it is in, where an entry has several files.
    file: Option<PathBuf>,
    shape: Vec<u64>,
    dtype: String,
    min: f64,
    max: f64,
    mean: f64,
}

/// The file or store that holds a variable; `None` when it is of another format.
fn holder(entry: &Entry, variable: &Variable) -> Option<PathBuf> {
    let first = entry.files.first()?;
    let store = first.ancestors().find(|p| p.extension().is_some_and(|e| e == "zarr"));
    if let Some(store) = store {
        return Some(store.to_owned());
    }
    if !first.starts_with("formats/hdf5") {
        return None;
    }
    let named = |file: &PathBuf| entry.files.iter().find(|f| f.file_name() == file.file_name()).cloned();
    match &variable.file {
        Some(file) => named(file),
        // The grids of a patch hierarchy lie in the one file that is neither text nor boundary.
        None => entry
            .files
            .iter()
            .find(|f| entry.files.len() == 1 || f.to_string_lossy().contains(".cpu"))
            .cloned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn check(format: &dyn Format, number: u32, info: &ArrayInfo, variable: &Variable) -> array::Result<()> {
    let (target, region) = Target::new(info.shape(), info.dtype.size_bytes())?;
    format.read(number, 0, &Selection::all(info.shape()), region, &CancelFlag::default())?;
    let bytes = target.into_vec()?;
    let count = bytes.len() / info.dtype.size_bytes();
    let values: Vec<f64> =
        (0..count).filter_map(|i| info.dtype.scalar_at(&bytes, i)).map(|v| v.as_f64()).collect();
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = values.iter().sum::<f64>() / count as f64;
    assert_eq!(
        (min.to_bits(), max.to_bits()),
        (variable.min.to_bits(), variable.max.to_bits()),
        "{}",
        info.name
    );
    let scale = min.abs().max(max.abs());
    assert!(
        (mean - variable.mean).abs() <= 1e-9 * scale,
        "{}: mean {mean}, not {}",
        info.name,
        variable.mean
    );
    Ok(())
}

#[test]
fn stored_values_agree_with_other_libraries() {
    let Some(root) = std::env::var_os("CORRIDOR_TEST_DATA") else {
        println!("skipped: CORRIDOR_TEST_DATA is not set");
        return;
    };
    let root = Path::new(&root);
    let manifest = std::fs::read_to_string(root.join("MANIFEST.json")).unwrap();
    let manifest: Vec<serde_json::Value> = serde_json::from_str(&manifest).unwrap();
    // Entries of other kinds describe their variables differently.
    let entries = manifest.into_iter().filter_map(|entry| serde_json::from_value::<Entry>(entry).ok());
    let mut checked = 0;
    for entry in entries {
        for variable in &entry.variables {
            let Some(path) = holder(&entry, variable) else { continue };
            let format = open_format(&root.join(&path).to_string_lossy(), &OpenOptions::default()).unwrap();
            let dataset = format.dataset();
            let (number, info) = dataset.find(&variable.var).unwrap();
            assert_eq!(info.shape(), variable.shape, "{}", info.name);
            let names = [info.dtype.to_string(), info.dtype.element().name().to_owned()];
            assert!(names.contains(&variable.dtype), "{}: {names:?}, not {}", info.name, variable.dtype);
            check(&*format, number, info, variable).unwrap();
            checked += 1;
        }
    }
    println!("{checked} arrays agree");
    assert!(checked >= 30, "only {checked} arrays were found");
}
