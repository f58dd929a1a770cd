//! Parser of locations `synthetic:NAME?shape=Z,Y,X&dtype=u8&...`.

use array::{DType, ElementType, Error, Result};

use super::SCHEME;

/// Longest axis of a synthetic array, voxels: positions, also half ones, are exact in single precision.
const MAX_AXIS: u64 = 1 << 20;
/// Most time steps of a synthetic array.
const MAX_TIME_STEPS: u64 = 1 << 24;

/// A location that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SyntheticLocation {
    pub(super) name: String,
    /// `[nz, ny, nx]`.
    pub(super) shape: [u64; 3],
    pub(super) dtype: DType,
    /// `None`: no axis of time.
    pub(super) steps: Option<u64>,
    /// World units per voxel, z, y, x.
    pub(super) spacing: [f64; 3],
    /// World position of voxel 0, z, y, x.
    pub(super) origin: [f64; 3],
}

impl SyntheticLocation {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut location = Self {
            name: name.to_owned(),
            shape: [256; 3],
            dtype: DType::native(ElementType::U8),
            steps: None,
            spacing: [1.0; 3],
            origin: [0.0; 3],
        };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "shape" => location.shape = three(key, value, |&n: &u64| (1..=MAX_AXIS).contains(&n))?,
                "dtype" => location.dtype = dtype(value)?,
                "steps" => location.steps = Some(steps(value)?),
                "spacing" => location.spacing = three(key, value, |v: &f64| v.is_finite() && *v != 0.0)?,
                "origin" => location.origin = three(key, value, |v: &f64| v.is_finite())?,
                _ => {
                    return Err(Error::invalid(format!(
                        "expected shape, dtype, steps, spacing or origin, found `{key}`"
                    )));
                }
            }
        }
        Ok(location)
    }

    /// Writes the location in canonical form: equal locations give equal text.
    pub(super) fn canonical(&self) -> String {
        let Self { name, shape, dtype, steps, spacing, origin } = self;
        format!("{name}?shape={shape:?}&dtype={dtype}&steps={steps:?}&spacing={spacing:?}&origin={origin:?}")
    }
}

fn three<T: std::str::FromStr + Copy>(key: &str, value: &str, good: fn(&T) -> bool) -> Result<[T; 3]> {
    let numbers: Vec<T> = value.split(',').filter_map(|v| v.trim().parse().ok()).filter(good).collect();
    match (numbers.as_slice(), value.split(',').count()) {
        (&[z, y, x], 3) => Ok([z, y, x]),
        _ => Err(Error::invalid(format!(
            "expected three numbers `{key}=Z,Y,X` (axes up to {MAX_AXIS}), found `{value}`"
        ))),
    }
}

fn steps(value: &str) -> Result<u64> {
    value.parse().ok().filter(|n| (1..=MAX_TIME_STEPS).contains(n)).ok_or_else(|| {
        Error::invalid(format!("expected a number of time steps from 1 to {MAX_TIME_STEPS}, found `{value}`"))
    })
}

/// Names count bits (`u8`, `f32`); numpy's names (`uint8`) and marked codes (`>u2`) work too.
fn dtype(value: &str) -> Result<DType> {
    let by_bits = ElementType::ALL.into_iter().filter(|&e| e != ElementType::Bool).find(|e| {
        let letter = &e.code()[..1];
        value == format!("{letter}{}", e.size_bytes() * 8)
    });
    let bare_code = by_bits.is_none() && value.len() == 2;
    match by_bits {
        Some(element) => Ok(DType::native(element)),
        // `f4` is ambiguous for a reader who takes `u8` above for eight bits.
        None if bare_code => Err(Error::invalid(format!(
            "expected bits (`u8`, `f32`) or a marked code (`<f4`), found `{value}`"
        ))),
        None => value.parse(),
    }
}
