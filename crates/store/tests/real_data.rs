//! Files that others wrote, against what other libraries found in them.
//!
//! Looks for a directory with a `MANIFEST.json` (minimum, maximum, mean and number of valid values of each
//! variable, as h5py, netCDF4, nibabel and pynrrd see them) named by `CORRIDOR_TEST_DATA`; without it there is nothing to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{ArrayInfo, Selection, Target, decode};
use corridor_store::{CancelFlag, Format, OpenOptions, open_format};
use serde::Deserialize;

#[derive(Deserialize)]
struct Entry {
    files: Vec<PathBuf>,
    variables: Vec<Variable>,
}

#[derive(Debug, Deserialize)]
struct Variable {
    var: String,
    shape: Vec<u64>,
    dtype: String,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    valid: Option<u64>,
}

const ENDINGS: [&str; 6] = [".nhdr", ".nrrd", ".nii.gz", ".nii", ".nc", ".cdf"];

#[derive(Debug)]
struct Found {
    min: f64,
    max: f64,
    mean: f64,
    valid: u64,
}

/// Reads everything and decodes it.
#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn found(format: &Arc<dyn Format>, number: u32, info: &ArrayInfo) -> array::Result<Found> {
    let selection = Selection::all(info.shape());
    let (target, region) = Target::new(info.shape(), info.dtype.size_bytes())?;
    format.read(number, 0, &selection, region, &CancelFlag::default())?;
    let decoded = decode(&target.into_vec()?, info.dtype, &info.decoding)?;
    let output = info.decoding.output;
    let values = (0..decoded.len() / output.size_bytes()).filter_map(|i| output.scalar_at(&decoded, i));
    let values: Vec<f64> = values.map(|v| v.as_f64()).filter(|v| !v.is_nan()).collect();
    Ok(Found {
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        mean: values.iter().sum::<f64>() / values.len() as f64,
        valid: values.len() as u64,
    })
}

/// Returns the differences between a variable and its entry in the manifest, in words; `None` when there are
/// none.
fn differences(name: &str, format: &Arc<dyn Format>, variable: &Variable) -> Option<String> {
    let dataset = format.dataset();
    let wanted = if dataset.arrays.len() == 1 { "" } else { variable.var.as_str() };
    let (number, info) = match dataset.find(wanted) {
        Ok(array) => array,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let mut shape = variable.shape.clone();
    if name.contains(".nii") {
        // nibabel gives the fastest axis first.
        shape.reverse();
    }
    // The manifest gives the type as stored, or as decoded where the library decodes.
    let types = [
        info.dtype.to_string(),
        info.dtype.element().name().into(),
        info.decoding.output.element().name().into(),
    ];
    let found = match found(format, number, info) {
        Ok(found) => found,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let close = |expected: Option<f64>, found: f64| {
        expected.is_none_or(|e| (e - found).abs() <= 1e-6 * e.abs().max(found.abs()).max(1e-30))
    };
    let same = info.shape() == shape
        && types.iter().any(|t| variable.dtype.contains(t.as_str()))
        && close(variable.min, found.min)
        && close(variable.max, found.max)
        && close(variable.mean, found.mean)
        && variable.valid.is_none_or(|v| v == found.valid);
    (!same).then(|| format!("{name}: expected {variable:?}, found {:?} {types:?} {found:?}", info.shape()))
}

#[test]
fn values_are_those_that_other_libraries_read() {
    let Some(root) = std::env::var_os("CORRIDOR_TEST_DATA") else {
        println!("skipped: CORRIDOR_TEST_DATA names no directory of test data");
        return;
    };
    let root = Path::new(&root);
    let entries: Vec<Entry> =
        serde_json::from_slice(&std::fs::read(root.join("MANIFEST.json")).unwrap()).unwrap();
    let (mut checked, mut wrong) = (0, Vec::new());
    for entry in entries {
        let name = entry.files[0].to_string_lossy().into_owned();
        if !ENDINGS.iter().any(|e| name.ends_with(e)) || (entry.files.len() > 1 && !name.ends_with(".nhdr")) {
            continue;
        }
        let format = open_format(&root.join(&name).to_string_lossy(), &OpenOptions::default()).unwrap();
        for variable in &entry.variables {
            wrong.extend(differences(&name, &format, variable));
            checked += 1;
        }
        println!("{name}: {} variables", entry.variables.len());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 20, "expected the sample files, found {checked} variables");
}
