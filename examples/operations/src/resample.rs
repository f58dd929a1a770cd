//! `resample`: resamples a selection to a grid of another shape that covers the same space.
//!
//! Along an axis, cell `i` of `m` output cells covers `[i, i + 1) * n / m` of the `n` input cells. `mean` is the mean
//! of the covered input cells, weighted by their overlap (conservative). `linear` interpolates between the centers of
//! the input cells; beyond the outermost centers it is constant. Weights are products of one weight per axis. Elements
//! without a value have no weight; an output cell without any weight is NaN.
//!
//! Results are `f4` if the decoded values are floats of at most 32 bits or integers of at most 16 bits, otherwise `f8`.

use std::ops::Range;

use array::{ArrayInfo, DType, ElementType, Error, MAX_AXES, Result, Selection};
use bytes::Bytes;
use client::remote_call::{CallRequest, Operand, OperationParameters, ResultArray};
use export::bounded_scan::{PARTS_IN_MEMORY, Scan, ScanPart};
use export::read_slabs::{ReadSlab, slabs};
use serde::{Deserialize, Serialize};
use server::answer_memory::MemoryReservation;
use server::ops::{BeginOutcome, Handler, OperationCall};

/// Largest useful amount of memory, in bytes.
const MAX_MEMORY_BYTES: u64 = 48 << 20;
/// Size of a sum with its weight, in bytes.
const SUM_BYTES: usize = size_of::<(f64, f64)>();

/// Method that computes the new values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Mean of the cells covered, weighted by overlap.
    #[default]
    Mean,
    /// Linear interpolation between centers of cells; trilinear for a volume.
    Linear,
}

/// Parameters: shape of the grid and method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resample {
    shape: Vec<u64>,
    #[serde(default)]
    method: Method,
    /// Largest answer that the client accepts, in bytes; not sent to the server.
    #[serde(skip)]
    most_bytes: u64,
}

/// Result besides the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resampled {
    /// Method used.
    pub method: Method,
}

impl Resample {
    /// Creates a call that resamples the elements `of` to `shape`; the client refuses an answer of more than
    /// `most_bytes`.
    #[must_use]
    pub fn asked(of: Operand, shape: Vec<u64>, method: Method, most_bytes: u64) -> CallRequest<Self> {
        CallRequest { of, with: Self { shape, method, most_bytes } }
    }
}

impl OperationParameters for Resample {
    const NAME: &'static str = "resample";
    type Result = Resampled;

    fn most_bytes(&self) -> u64 {
        self.most_bytes
    }
}

/// Server side of the operation.
pub(crate) struct ResampleHandler;

impl Handler for ResampleHandler {
    type Work = CallRequest<Resample>;

    fn name(&self) -> &'static str {
        Resample::NAME
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Self::Work>> {
        let asked = Self::Work::parse(&parameters)?;
        let shape = &asked.with.shape;
        let elements = shape.iter().try_fold(SUM_BYTES as u64, |n, &v| n.checked_mul(v));
        if shape.len() > MAX_AXES || shape.contains(&0) || elements.is_none() {
            return Err(Error::invalid(format!(
                "expected a shape of at most {MAX_AXES} axes, each of at least 1, found {shape:?}"
            )));
        }
        Ok(BeginOutcome::Work(asked))
    }

    async fn run(&self, asked: Self::Work, call: &OperationCall) -> Result<()> {
        let scan = call.scan(&asked.of).await?;
        let Resample { shape, method, .. } = asked.with;
        let grid = Grid::new(method, &scan.selection().shape(), &shape)?;
        let dtype = output(scan.array()?.decoding.output.element());
        call.elements(ResultArray { dtype, shape: shape.clone() }).await?;
        let resampling = Resampling { call, scan, grid, shape, dtype };
        resampling.run().await?;
        call.result(&Resampled { method }).await
    }
}

fn output(decoded: ElementType) -> DType {
    use ElementType::{F64, I32, I64, U32, U64};
    DType::native(if matches!(decoded, F64 | I32 | I64 | U32 | U64) { F64 } else { ElementType::F32 })
}

/// A resampling in progress.
struct Resampling<'a> {
    call: &'a OperationCall,
    scan: Scan,
    grid: Grid,
    /// Shape of the result.
    shape: Vec<u64>,
    dtype: DType,
}

impl Resampling<'_> {
    /// Computes the result part by part. If possible, parts cover whole stored chunks, so that each is decoded once.
    async fn run(&self) -> Result<()> {
        let covered = |(axis, n): (usize, u64)| self.grid.0[axis].outputs(n);
        let grain: Option<Vec<u64>> =
            self.scan.grain()?.map(|g| g.into_iter().enumerate().map(covered).collect());
        let total: u64 = self.shape.iter().product();
        let mut done = 0;
        let all = Selection::all(&self.shape);
        // A third for the sums, the rest for the input elements.
        let most = (self.call.node.answer_memory.capacity_bytes() / 8)
            .clamp(self.call.node.answer_memory.own_bytes(), MAX_MEMORY_BYTES);
        for slab in slabs(&all, SUM_BYTES, grain.as_deref(), most / 3) {
            let mut memory = self.call.enter(most).await;
            let granted = memory.admitted().await;
            if granted >= most {
                done += self.part(slab, memory, granted).await?;
            } else {
                drop(memory);
                let least = self.call.node.answer_memory.own_bytes();
                for part in slab.parts(SUM_BYTES, grain.as_deref(), least / 3) {
                    let mut memory = self.call.enter(least).await;
                    let granted = memory.admitted().await;
                    done += self.part(part, memory, granted).await?;
                }
            }
            self.call.progress(done, total);
        }
        Ok(())
    }

    /// Computes and sends one part of the result; returns its number of elements. `memory` is held until the client has
    /// received it.
    async fn part(&self, slab: ReadSlab, memory: MemoryReservation, granted_bytes: u64) -> Result<u64> {
        let counts = slab.selection.shape();
        let outputs: Vec<Range<u64>> = slab.start.iter().zip(&counts).map(|(&s, &n)| s..s + n).collect();
        let inputs: Vec<Range<u64>> = self.grid.0.iter().zip(&outputs).map(|(a, r)| a.inputs(r)).collect();
        let start: Vec<u64> = inputs.iter().map(|r| r.start).collect();
        let count: Vec<u64> = inputs.iter().map(|r| r.end - r.start).collect();
        let scan = self.scan.of_box(&start, &count)?;
        let stored = scan.array()?.dtype.size_bytes() as u64;
        let bytes_each = PARTS_IN_MEMORY * stored + 2 * size_of::<f64>() as u64;
        let part_bytes = granted_bytes * 2 / 3 / bytes_each * stored;
        let elements: u64 = counts.iter().product();
        let sums = vec![(0.0, 0.0); usize::try_from(elements).unwrap_or(0)];
        let grid = self.grid.clone();
        let add = move |sums: &mut Vec<(f64, f64)>, part: &ScanPart, array: &ArrayInfo| {
            let inputs = part.start.iter().zip(&start).zip(part.selection.shape());
            let inputs: Vec<Range<u64>> =
                inputs.map(|((&at, &start), n)| start + at..start + at + n).collect();
            grid.add(&part.values(array)?, &inputs, sums, &outputs);
            Ok(())
        };
        let sums = scan.fold(part_bytes, &[], sums, add, |_| ()).await?;
        let mut bytes = memory.hold(encoded(&sums, self.dtype));
        let (stretch_bytes, offsets) = slab.stretches(&self.shape, self.dtype.size_bytes());
        for offset in offsets {
            let stretch =
                bytes.split_to(usize::try_from(stretch_bytes).unwrap_or(usize::MAX).min(bytes.len()));
            self.call.piece(offset, stretch).await?;
        }
        Ok(elements)
    }
}

/// Encodes the results, in the host's byte order.
#[expect(clippy::cast_possible_truncation, reason = "the result is single precision by its type")]
fn encoded(sums: &[(f64, f64)], dtype: DType) -> Vec<u8> {
    let values = sums.iter().map(|(sum, weight)| if *weight > 0.0 { sum / weight } else { f64::NAN });
    match dtype.element() {
        ElementType::F32 => values.flat_map(|v| (v as f32).to_ne_bytes()).collect(),
        _ => values.flat_map(f64::to_ne_bytes).collect(),
    }
}

/// Weights between input and output cells, axis by axis.
#[derive(Clone, Debug)]
struct Grid(Vec<Axis>);

#[derive(Clone, Copy, Debug)]
struct Axis {
    method: Method,
    /// Number of input cells.
    n: u64,
    /// Number of output cells.
    m: u64,
}

impl Grid {
    fn new(method: Method, from: &[u64], to: &[u64]) -> Result<Self> {
        if from.len() != to.len() || from.contains(&0) {
            return Err(Error::invalid(format!(
                "expected a shape of {} axes for elements of the shape {from:?}, found {to:?}",
                from.len()
            )));
        }
        Ok(Self(from.iter().zip(to).map(|(&n, &m)| Axis { method, n, m }).collect()))
    }

    /// Adds the weighted values of the box `inputs` to the sums of the box `outputs`, both in C order.
    fn add(&self, values: &[f64], inputs: &[Range<u64>], sums: &mut [(f64, f64)], outputs: &[Range<u64>]) {
        let along = self.0.iter().zip(inputs).zip(outputs);
        let links: Vec<Links> = along.map(|((axis, inputs), outputs)| axis.links(inputs, outputs)).collect();
        add_along(&links, values, sums, (0, 0), 1.0);
    }
}

/// Weights along one axis between the cells of an input box and those of an output box.
struct Links {
    /// Number of cells of the input and output box along the axis.
    sizes: (usize, usize),
    /// Input cell, output cell, and weight of the input cell for the output cell.
    all: Vec<(usize, usize, f64)>,
}

/// Adds along the axes of `links`, recursively; `at` are the positions of the value and of the sum from the axes
/// before.
fn add_along(links: &[Links], values: &[f64], sums: &mut [(f64, f64)], at: (usize, usize), weight: f64) {
    let Some((axis, rest)) = links.split_first() else {
        let (value, sum) = (values[at.0], &mut sums[at.1]);
        if value.is_finite() {
            sum.0 += value * weight;
            sum.1 += weight;
        }
        return;
    };
    for &(from, to, share) in &axis.all {
        let at = (at.0 * axis.sizes.0 + from, at.1 * axis.sizes.1 + to);
        add_along(rest, values, sums, at, weight * share);
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "indices below 2^53, clamped to the axis"
)]
impl Axis {
    /// Returns the input cells that contribute to a range of output cells.
    fn inputs(&self, outputs: &Range<u64>) -> Range<u64> {
        let (n, m) = (u128::from(self.n), u128::from(self.m));
        match self.method {
            Method::Mean => {
                let first = u128::from(outputs.start) * n / m;
                let end = (u128::from(outputs.end) * n).div_ceil(m);
                first as u64..end as u64
            }
            Method::Linear => {
                let first = self.center(outputs.start).floor() as u64;
                let last = self.center(outputs.end - 1).floor() as u64 + 1;
                first..last.min(self.n - 1) + 1
            }
        }
    }

    /// Returns the weights of a range of input cells for a range of output cells.
    fn links(&self, inputs: &Range<u64>, outputs: &Range<u64>) -> Links {
        let mut all = Vec::new();
        for output in outputs.clone() {
            let made_of = self.inputs(&(output..output + 1));
            for input in made_of.start.max(inputs.start)..made_of.end.min(inputs.end) {
                let weight = self.weight(input, output);
                if weight > 0.0 {
                    all.push(((input - inputs.start) as usize, (output - outputs.start) as usize, weight));
                }
            }
        }
        Links { sizes: ((inputs.end - inputs.start) as usize, (outputs.end - outputs.start) as usize), all }
    }

    /// Approximate number of output cells for `n` input cells.
    fn outputs(&self, n: u64) -> u64 {
        let m = u128::from(n) * u128::from(self.m) / u128::from(self.n);
        u64::try_from(m).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the position of the center of an output cell, in input cells from the center of the first one; limited
    /// to the centers of the first and the last input cell.
    fn center(&self, output: u64) -> f64 {
        let at = (output as f64 + 0.5) * (self.n as f64 / self.m as f64) - 0.5;
        at.clamp(0.0, (self.n - 1) as f64)
    }

    /// Returns the weight of an input cell for an output cell.
    fn weight(&self, input: u64, output: u64) -> f64 {
        match self.method {
            Method::Mean => {
                // Exact, in units of 1 / m of a cell.
                let (n, m) = (u128::from(self.n), u128::from(self.m));
                let low = (u128::from(input) * m).max(u128::from(output) * n);
                let high = (u128::from(input + 1) * m).min(u128::from(output + 1) * n);
                high.saturating_sub(low) as f64 / m as f64
            }
            Method::Linear => (1.0 - (self.center(output) - input as f64).abs()).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resamples one axis, added in pieces of `piece` cells.
    fn line(method: Method, values: &[f64], m: u64, piece: usize) -> Vec<f64> {
        let grid = Grid::new(method, &[values.len() as u64], &[m]).unwrap();
        let mut sums = vec![(0.0, 0.0); usize::try_from(m).unwrap()];
        for (number, part) in values.chunks(piece).enumerate() {
            let start = (number * piece) as u64;
            let inputs = start..start + part.len() as u64;
            grid.add(part, std::slice::from_ref(&inputs), &mut sums, std::slice::from_ref(&(0..m)));
        }
        sums.iter().map(|(sum, weight)| sum / weight).collect()
    }

    #[test]
    fn means_are_weighted_by_overlap() {
        for piece in [1, 2, 6] {
            assert_eq!(line(Method::Mean, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, piece), [1.5, 3.5, 5.5]);
            assert_eq!(line(Method::Mean, &[0.0, 3.0, 6.0], 2, piece), [1.0, 5.0]);
            assert_eq!(line(Method::Mean, &[1.0, 2.0], 4, piece), [1.0, 1.0, 2.0, 2.0]);
            assert_eq!(line(Method::Mean, &[1.0, f64::NAN, 5.0, f64::NAN], 2, piece), [1.0, 5.0]);
        }
        assert!(line(Method::Mean, &[f64::NAN], 1, 1)[0].is_nan());
    }

    #[test]
    fn linear_interpolation_is_constant_beyond_the_outermost_centers() {
        for piece in [1, 3] {
            assert_eq!(line(Method::Linear, &[0.0, 4.0], 4, piece), [0.0, 1.0, 3.0, 4.0]);
            assert_eq!(line(Method::Linear, &[0.0, 1.0, 2.0], 3, piece), [0.0, 1.0, 2.0]);
            assert_eq!(line(Method::Linear, &[7.0], 3, piece), [7.0, 7.0, 7.0]);
            assert_eq!(line(Method::Linear, &[0.0, f64::NAN], 4, piece)[..3], [0.0, 0.0, 0.0]);
        }
    }
}
