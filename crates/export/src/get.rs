//! `get`: copies a selection into a file, slab by slab: the array is never in memory as a whole.
//!
//! Values are written as stored, in the byte order of the file kind (the host's for `.npy` and `.raw`), or decoded:
//! with scale, offset and missing values applied.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Attributes, AxisRange, DType, Dataset, Error, ErrorKind, Meaning, Priority,
    ReadRequest, ResolvedIndex, Result, Selection, Source, Target, choose_blocks,
};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::coordinate_selection;
use crate::output::coordinates::{CoordinateArray, CopiedArray};
use crate::output::flat::FlatOutput;
use crate::output::zarr::{MAX_CHUNK_BYTES, ZarrFolder};
use crate::output::{ArrayHeader, FileKind, csv, hdf5, netcdf, normalized_attributes, npy, scale_and_offset};
use crate::read_slabs::{ReadSlab, slabs};
use crate::selection_text::ArraySelection;

/// Number of slabs that are read concurrently with little memory: enough for a path with many small selections.
const MIN_SLABS_IN_FLIGHT: u64 = 8;
/// Maximum number of slabs that are read concurrently: 256 MiB fill 10 Gb/s over 200 ms.
const MAX_SLABS_IN_FLIGHT: u64 = 32;
/// Maximum number of selections in one copy.
const MAX_SELECTIONS: usize = 1 << 20;
/// Size of a slab in bytes, unless stored chunks are larger: some slabs are written while others arrive, also at the
/// end, and the data missing after a lost connection are requested again soon.
const USUAL_SLAB_BYTES: u64 = 8 << 20;
/// Maximum size of a slab, in bytes: a chunk of this size is decoded once.
const MAX_SLAB_BYTES: u64 = 32 << 20;
/// Minimum size of a slab for a small memory budget, in bytes.
const MIN_SLAB_BYTES: u64 = 1 << 20;

/// Attributes that define how stored values are decoded (CF).
const DECODING_ATTRIBUTES: &[&str] = &[
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "valid_min",
    "valid_max",
    "valid_range",
    "_Unsigned",
];

/// Request to copy selections into a file.
#[derive(Clone, Debug)]
pub struct GetRequest {
    /// Selections; several only for `.raw`, one after another in the file.
    pub selections: Vec<ArraySelection>,
    /// Level to read; 0 is full resolution.
    pub level: u8,
    /// Whether decoded values are written instead of those stored.
    pub is_decoded: bool,
    /// Output file, whose extension determines the kind. An existing file is replaced, an existing folder never.
    pub output: PathBuf,
    /// Memory for slabs in flight, in bytes.
    pub memory_bytes: u64,
}

/// Progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Number of bytes of the result that are written.
    pub done_bytes: u64,
    /// Size of the whole result, in bytes.
    pub total_bytes: u64,
}

/// Report of what was written.
#[derive(Clone, Debug)]
pub struct GetReport {
    /// Elements per axis in the file; with several selections those of the last.
    pub shape: Vec<u64>,
    /// Elements per axis of each selection.
    pub selections: Vec<Vec<u64>>,
    /// Type of the elements; with several selections that of the last.
    pub dtype: DType,
    /// Size of the elements, in bytes.
    pub bytes: u64,
    /// Warnings about the selections, for display.
    pub warnings: Vec<String>,
}

/// Copies selections; calls `on_progress` after each slab.
///
/// # Errors
/// The errors of the source; `Invalid` for an unknown extension; `Io` if the file cannot be written. After an error, no
/// file exists under the output's name.
///
/// # Cancel safety
/// Dropping the future removes the partial output.
pub async fn get(
    source: Arc<dyn Source>,
    request: &GetRequest,
    on_progress: &(dyn Fn(CopyProgress) + Send + Sync),
) -> Result<GetReport> {
    let kind = FileKind::of(&request.output)?;
    let dataset = source.describe().await?;
    let (mut selections, mut warnings) = (Vec::with_capacity(request.selections.len()), Vec::new());
    for selection in &request.selections {
        let (selection, found) = selection.with_indexing(&source, &dataset, request.level).await?;
        selections.push(selection);
        warnings.extend(found);
    }
    let request = &GetRequest { selections, ..request.clone() };
    let copies = plan_all(&dataset, request, kind)?;
    let total_bytes = end_of(&copies)?;
    let last = copies.last().ok_or_else(|| Error::invalid("expected a selection, found none"))?;
    let report = GetReport {
        shape: last.written.shape.clone(),
        selections: copies.iter().map(|copy| copy.written.shape.clone()).collect(),
        dtype: last.written.dtype,
        bytes: total_bytes,
        warnings,
    };
    let copied =
        CopiedArray { source: &source, dataset: &dataset, array: &last.array, resolved: &last.resolved };
    if kind == FileKind::Csv {
        on_progress(CopyProgress { done_bytes: 0, total_bytes });
        last.table(&copied, request).await?;
        on_progress(CopyProgress { done_bytes: total_bytes, total_bytes });
        return Ok(report);
    }
    // Coordinates of other levels differ.
    let scales =
        if kind == FileKind::NetCdf && last.level == 0 { copied.scales().await? } else { Vec::new() };
    let sink = Arc::new(last.create(request, kind, total_bytes, &scales)?);
    let mut done_bytes = 0;
    on_progress(CopyProgress { done_bytes, total_bytes });
    let parts = {
        let (sink, memory_bytes) = (Arc::clone(&sink), request.memory_bytes);
        copies
            .into_iter()
            .flat_map(move |copy| copy.parts(&sink, memory_bytes).map(move |slab| (Arc::clone(&copy), slab)))
    };
    let mut slabs = stream::iter(parts)
        .map(|(copy, slab)| {
            let (sink, source) = (Arc::clone(&sink), Arc::clone(&source));
            async move { copy.one_slab(source, slab, sink).await }
        })
        .buffer_unordered(usize::try_from(slabs_in_flight(request.memory_bytes)).unwrap_or(1));
    while let Some(bytes) = slabs.try_next().await? {
        done_bytes += bytes;
        on_progress(CopyProgress { done_bytes, total_bytes });
    }
    drop(slabs);
    let now = source.describe().await?;
    if (now.id, now.generation) != (dataset.id, dataset.generation) && !now.has_grown_from(&dataset) {
        let what = "the data changed while they were copied; copy them again";
        return Err(Error::new(ErrorKind::Stale, what));
    }
    let sink = Arc::into_inner(sink).ok_or_else(|| Error::internal("a slab is still being written"))?;
    sink.finish()?;
    Ok(report)
}

/// Returns the number of slabs read concurrently, within this memory.
fn slabs_in_flight(memory_bytes: u64) -> u64 {
    (memory_bytes / (2 * USUAL_SLAB_BYTES)).clamp(MIN_SLABS_IN_FLIGHT, MAX_SLABS_IN_FLIGHT)
}

/// Plans the copy of every selection, with its offset in the file.
fn plan_all(dataset: &Dataset, request: &GetRequest, kind: FileKind) -> Result<Vec<Arc<ArrayCopy>>> {
    let count = request.selections.len();
    if count > MAX_SELECTIONS || (count > 1 && kind != FileKind::Raw) {
        return Err(Error::invalid(format!(
            "expected one selection (or up to {MAX_SELECTIONS} and an output that ends in .raw), found {count}"
        )));
    }
    let mut copies: Vec<Arc<ArrayCopy>> = Vec::with_capacity(count);
    for selection in &request.selections {
        let begins_at = end_of(&copies)?;
        copies.push(Arc::new(ArrayCopy::plan(dataset, selection, request, kind, begins_at)?));
    }
    Ok(copies)
}

/// Returns the byte offset after the last copy in the data of the file.
fn end_of(copies: &[Arc<ArrayCopy>]) -> Result<u64> {
    let Some(last) = copies.last() else { return Ok(0) };
    let too_large = || Error::too_large("the selections have 2^64 bytes or more");
    last.begins_at.checked_add(last.size_bytes()?).ok_or_else(too_large)
}

/// Plan of the copy of one selection, made before any data are read.
struct ArrayCopy {
    array: ArrayInfo,
    number: u32,
    level: u8,
    /// Box that is decoded as a whole on that level; see [`array::Level::grain`].
    grain: Option<Vec<u64>>,
    resolved: ResolvedIndex,
    is_decoded: bool,
    written: ArrayHeader,
    /// Byte offset in the data of the file.
    begins_at: u64,
}

/// Output of slabs.
#[derive(Debug)]
enum SlabSink {
    Flat(FlatOutput),
    Zarr(ZarrFolder),
}

impl SlabSink {
    fn finish(self) -> Result<()> {
        match self {
            Self::Flat(file) => file.finish(),
            Self::Zarr(folder) => folder.finish(),
        }
    }
}

impl ArrayCopy {
    fn plan(
        dataset: &Dataset,
        selection: &ArraySelection,
        request: &GetRequest,
        kind: FileKind,
        begins_at: u64,
    ) -> Result<Self> {
        let (number, array, resolved) = selection.resolve(dataset, request.level)?;
        let element = if request.is_decoded { array.decoding.output } else { array.dtype }.element();
        let kept = |axis: &usize| !resolved.dropped[*axis];
        let axes = (0..array.axes.len()).filter(kept).map(|a| array.axes[a].name.clone()).collect();
        let written = ArrayHeader {
            name: array.name.clone(),
            axes,
            shape: resolved.shape(),
            dtype: DType::new(element, kind.byte_order()),
            attributes: attributes(array, request.is_decoded),
        };
        let grain = array.level(request.level)?.grain().map(<[u64]>::to_vec);
        Ok(Self {
            array: array.clone(),
            number,
            level: request.level,
            grain,
            resolved,
            is_decoded: request.is_decoded,
            written,
            begins_at,
        })
    }

    /// Returns coordinates as variables of the file, whose axes are those that are kept.
    fn variables<'a>(&self, scales: &'a [CoordinateArray]) -> Vec<netcdf::CoordinateVariable<'a>> {
        let mut place = 0;
        let places: Vec<Option<usize>> = self
            .resolved
            .dropped
            .iter()
            .map(|dropped| {
                place += usize::from(!dropped);
                (!dropped).then(|| place - 1)
            })
            .collect();
        let of = |scale: &'a CoordinateArray| netcdf::CoordinateVariable {
            scale,
            axes: scale.axes.iter().filter_map(|&axis| places[axis]).collect(),
        };
        scales.iter().map(of).collect()
    }

    /// Writes a small selection as a table.
    async fn table(&self, copied: &CopiedArray<'_>, request: &GetRequest) -> Result<()> {
        let is_text = self.array.meaning == Meaning::Text && self.resolved.dropped.last() == Some(&false);
        self.expect_small(is_text)?;
        let mut columns = Vec::new();
        let axes = self.array.axes.len() - usize::from(is_text);
        for (axis, about) in self.array.axes.iter().enumerate().take(axes) {
            if self.resolved.dropped[axis] {
                continue;
            }
            let values = self.column(copied, axis).await?;
            columns.push(csv::CsvColumn { name: about.name.clone(), values });
        }
        let selection = self.resolved.selection.clone();
        let shape = selection.shape();
        let (target, region) = Target::new(&shape, self.array.dtype.size_bytes())?;
        let read =
            ReadRequest { array: self.number, level: self.level, selection, priority: Priority::NORMAL };
        copied.source.read(read, region).await?;
        let bytes = self.finished(target.into_vec()?, &shape)?;
        let length = shape.last().and_then(|&bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        let text = csv::table(&self.written.name, &columns, |number| {
            if is_text {
                csv::text(&bytes, length, number)
            } else {
                csv::number(self.written.dtype, &bytes, number)
            }
        })?;
        FlatOutput::create(&request.output, text.as_bytes(), 0)?.finish()
    }

    /// Returns the coordinates of the selected samples of an axis, formatted.
    async fn column(&self, copied: &CopiedArray<'_>, axis: usize) -> Result<Vec<String>> {
        let range = self.resolved.selection.ranges()[axis];
        let mut indices: Vec<u64> = (0..range.count).map(|index| range.index(index)).collect();
        if self.resolved.reversed[axis] {
            indices.reverse();
        }
        if self.level != 0 {
            return Ok(indices.iter().map(u64::to_string).collect());
        }
        if let Some(texts) = self.texts(copied, axis).await? {
            return Ok(texts);
        }
        let along =
            coordinate_selection::AxisCoordinates::of(copied.source, copied.dataset, copied.array, axis)
                .await?;
        Ok(indices.iter().map(|&index| along.text(along.value(index))).collect())
    }

    /// Returns the coordinates of the selected samples of an axis with texts; `None` also if they are too large.
    async fn texts(&self, copied: &CopiedArray<'_>, axis: usize) -> Result<Option<Vec<String>>> {
        let found = coordinate_selection::text_array(copied.dataset, copied.array, axis);
        let Some((number, info)) = found else { return Ok(None) };
        let length = info.shape().get(1).copied();
        let range = self.resolved.selection.ranges()[axis];
        let whole = length.map(|count| AxisRange { start: 0, count, step: 1 });
        let selection = Selection::new([range].into_iter().chain(whole))?;
        if selection.len().is_none_or(|bytes| bytes > csv::MAX_BYTES) {
            return Ok(None);
        }
        let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes())?;
        let request = ReadRequest { array: number, level: 0, selection, priority: Priority::NORMAL };
        copied.source.read(request, region).await?;
        let bytes = target.into_vec()?;
        // An array of characters has one for each sample.
        let length = length.map_or(1, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let count = usize::try_from(range.count).unwrap_or(usize::MAX);
        let mut texts =
            (0..count).map(|at| csv::text(&bytes, length, at)).collect::<Result<Vec<String>>>()?;
        if self.resolved.reversed[axis] {
            texts.reverse();
        }
        Ok(Some(texts))
    }

    /// Refuses tables that are too large. A text counts as one element, whatever its length.
    fn expect_small(&self, is_text: bool) -> Result<()> {
        let shape = self.resolved.selection.shape();
        let lines = &shape[..shape.len() - usize::from(is_text)];
        let product = |sizes: &[u64]| sizes.iter().fold(1, |n: u64, &size| n.saturating_mul(size));
        let (count, bytes) = (product(lines), product(&shape));
        let refused = |most: u64, what: &str, found: u64| {
            Err(Error::too_large(format!(
                "expected at most {most} {what} for a table, found {found}; write .nc, .npy or .zarr"
            )))
        };
        if count > csv::MAX_ELEMENTS {
            return refused(csv::MAX_ELEMENTS, "elements", count);
        }
        if is_text && bytes > csv::MAX_BYTES {
            return refused(csv::MAX_BYTES, "bytes of texts", bytes);
        }
        Ok(())
    }

    fn size_bytes(&self) -> Result<u64> {
        let count = self.resolved.selection.len();
        count
            .and_then(|n| n.checked_mul(self.written.dtype.size_bytes() as u64))
            .ok_or_else(|| Error::too_large("the selection has 2^64 bytes or more"))
    }

    fn create(
        &self,
        request: &GetRequest,
        kind: FileKind,
        total: u64,
        scales: &[CoordinateArray],
    ) -> Result<SlabSink> {
        let header = match kind {
            FileKind::Raw => Vec::new(),
            FileKind::Npy => npy::header(&self.written)?,
            FileKind::NetCdf => netcdf::header(&self.written, &self.variables(scales))?,
            FileKind::Csv => return Err(Error::internal("a table is not written in slabs")),
            FileKind::Hdf5 => {
                let begin = |path: &Path| hdf5::begin(path, &self.written);
                return FlatOutput::create_by(&request.output, total, begin).map(SlabSink::Flat);
            }
            FileKind::Zarr => {
                let chunk = self.chunk();
                return ZarrFolder::create(&request.output, &self.written, chunk).map(SlabSink::Zarr);
            }
        };
        let padded = if kind == FileKind::NetCdf { total.next_multiple_of(4) } else { total };
        FlatOutput::create(&request.output, &header, padded).map(SlabSink::Flat)
    }

    /// Returns the chunk shape of a chunked file: the array's own where it fits, otherwise boxes.
    fn chunk(&self) -> Vec<u64> {
        let shape = &self.written.shape;
        let item = self.written.dtype.size_bytes() as u64;
        let steps = self.kept(&self.resolved.selection.ranges().iter().map(|r| r.step).collect::<Vec<_>>());
        let own = self.grain.as_ref().map(|grain| self.kept(grain));
        let own: Option<Vec<u64>> = own
            .map(|c| c.iter().zip(steps).zip(shape).map(|((c, s), &n)| (c / s).clamp(1, n.max(1))).collect());
        let fits = |c: &Vec<u64>| c.iter().fold(item, |n, &v| n.saturating_mul(v)) <= MAX_CHUNK_BYTES;
        own.filter(fits).unwrap_or_else(|| {
            let axes = self.array.axes.iter().zip(&self.resolved.dropped).filter(|(_, dropped)| !**dropped);
            let kinds: Vec<_> = axes.map(|(axis, _)| axis.kind).collect();
            choose_blocks(shape, &kinds, self.written.dtype, None)
        })
    }

    /// Returns the parts to read, lazily: along the chunks of the array for a flat file, along the file's chunks for a
    /// chunked one.
    fn parts(&self, sink: &SlabSink, memory_bytes: u64) -> Box<dyn Iterator<Item = ReadSlab> + Send> {
        let each = memory_bytes / (2 * slabs_in_flight(memory_bytes));
        let item = self.array.dtype.size_bytes().max(self.written.dtype.size_bytes());
        let chunk_bytes = self.grain.iter().flatten().fold(item as u64, |n, &v| n.saturating_mul(v));
        let usual = if self.grain.is_some() { chunk_bytes } else { 0 };
        let most = each.clamp(MIN_SLAB_BYTES, usual.clamp(USUAL_SLAB_BYTES, MAX_SLAB_BYTES));
        match sink {
            SlabSink::Flat(_) => Box::new(slabs(&self.resolved.selection, item, self.grain.as_deref(), most)),
            SlabSink::Zarr(folder) => Box::new(self.parts_of_file(&folder.chunk, item, most)),
        }
    }

    /// Returns boxes of whole chunks of the file, each mapped to the elements of the array.
    fn parts_of_file(
        &self,
        chunk: &[u64],
        item_bytes: usize,
        most_bytes: u64,
    ) -> impl Iterator<Item = ReadSlab> + Send + use<> {
        let ranges = self.resolved.selection.ranges().to_vec();
        let reversed = self.resolved.reversed.clone();
        let mut kept = chunk.iter().copied();
        let grain: Vec<u64> =
            self.resolved.dropped.iter().map(|&d| if d { 1 } else { kept.next().unwrap_or(1) }).collect();
        let chunk_bytes = chunk.iter().fold(item_bytes as u64, |n, &c| n.saturating_mul(c));
        let whole = self.resolved.selection.shape();
        let in_file = Selection::all(&whole);
        slabs(&in_file, item_bytes, Some(&grain), most_bytes.max(chunk_bytes)).filter_map(move |part| {
            let counts = part.selection.shape();
            // `start` counts in the array's order; a reversed axis is mirrored when it is written.
            let start = mirrored(&part.start, &counts, &whole, &reversed);
            let picked = ranges.iter().zip(&start).zip(&counts).map(|((range, &at), &count)| AxisRange {
                start: range.index(at),
                count,
                step: range.step,
            });
            // Parts of a valid selection are valid.
            let selection = Selection::new(picked).ok()?;
            Some(ReadSlab { start, selection })
        })
    }

    async fn one_slab(&self, source: Arc<dyn Source>, slab: ReadSlab, sink: Arc<SlabSink>) -> Result<u64> {
        let ReadSlab { start, selection } = slab;
        let shape = selection.shape();
        let (target, region) = Target::new(&shape, self.array.dtype.size_bytes())?;
        let request =
            ReadRequest { array: self.number, level: self.level, selection, priority: Priority::NORMAL };
        source.read(request, region).await?;
        let bytes = self.finished(target.into_vec()?, &shape)?;
        let whole = self.resolved.selection.shape();
        let start = mirrored(&start, &shape, &whole, &self.resolved.reversed);
        let placed = ReadSlab { start, selection: Selection::all(&shape) };
        let (kept_start, kept_shape) = (self.kept(&placed.start), self.kept(&shape));
        let (size, item) = (bytes.len() as u64, self.written.dtype.size_bytes());
        let begins_at = self.begins_at;
        let write = move || match &*sink {
            SlabSink::Flat(file) => {
                let (stretch_bytes, offsets) = placed.stretches(&whole, item);
                let stretches = bytes.chunks_exact(usize::try_from(stretch_bytes).unwrap_or(usize::MAX));
                let mut places = offsets.into_iter().zip(stretches);
                places.try_for_each(|(at, stretch)| file.put(begins_at + at, stretch))
            }
            SlabSink::Zarr(folder) => folder.put(&kept_start, &kept_shape, &bytes),
        };
        tokio::task::spawn_blocking(write)
            .await
            .map_err(|e| Error::internal(format!("a writer ended early: {e}")))??;
        Ok(size)
    }

    /// Converts the elements of one slab to the form of the file.
    fn finished(&self, mut bytes: Vec<u8>, shape: &[u64]) -> Result<Vec<u8>> {
        if self.is_decoded {
            bytes = array::decode(&bytes, self.array.dtype, &self.array.decoding)?;
        } else {
            self.array.dtype.to_native(&mut bytes);
        }
        self.written.dtype.to_native(&mut bytes);
        let item = self.written.dtype.size_bytes();
        for (axis, _) in self.resolved.reversed.iter().enumerate().filter(|(_, r)| **r) {
            reverse_axis(&mut bytes, shape, item, axis);
        }
        Ok(bytes)
    }

    /// Returns the values of the axes that are kept.
    fn kept(&self, per_axis: &[u64]) -> Vec<u64> {
        per_axis.iter().zip(&self.resolved.dropped).filter(|(_, d)| !**d).map(|(&v, _)| v).collect()
    }
}

/// Returns the start of a box of `shape` at `start` if the reversed axes of `whole` are counted from their other end.
fn mirrored(start: &[u64], shape: &[u64], whole: &[u64], reversed: &[bool]) -> Vec<u64> {
    let place = |axis: usize| {
        if reversed[axis] { whole[axis] - start[axis] - shape[axis] } else { start[axis] }
    };
    (0..start.len()).map(place).collect()
}

/// Returns the attributes of the array for the file: units, and for stored values the attributes for decoding.
pub(crate) fn attributes(array: &ArrayInfo, is_decoded: bool) -> Attributes {
    let mut all = normalized_attributes(array);
    if !array.units.is_empty() {
        all.insert("units".to_owned(), Attribute::Text(array.units.clone()));
    }
    let decoding = &array.decoding;
    if decoding.is_identity() {
        return all;
    }
    if is_decoded {
        // Otherwise readers of the file would decode the values again.
        all.retain(|name, _| !DECODING_ATTRIBUTES.contains(&name.as_str()));
        return all;
    }
    for (name, value) in scale_and_offset(decoding) {
        // The attributes of the file have the right type: decoded values of single precision are of single precision,
        // too.
        let number = |value: Option<&Attribute>| match value {
            Some(Attribute::Number(value, _)) => Some(value.as_f64().to_bits()),
            _ => None,
        };
        if number(all.get(&name)) != number(Some(&value)) {
            all.insert(name, value);
        }
    }
    if let Some(fill) = decoding.fill_value(array.dtype) {
        all.entry("_FillValue".to_owned()).or_insert(Attribute::Number(fill, Some(array.dtype.element())));
    }
    all
}

/// Reverses the order of elements along one axis of a C-order box.
pub(crate) fn reverse_axis(bytes: &mut [u8], shape: &[u64], item_bytes: usize, axis: usize) {
    let size = |n: &u64| usize::try_from(*n).unwrap_or(usize::MAX);
    let row: usize = shape[axis + 1..].iter().map(size).product::<usize>() * item_bytes;
    let rows = size(&shape[axis]);
    if row == 0 || rows < 2 {
        return;
    }
    for plane in bytes.chunks_exact_mut(row * rows) {
        let (mut low, mut high) = (0, rows - 1);
        while low < high {
            let (before, after) = plane.split_at_mut(high * row);
            before[low * row..(low + 1) * row].swap_with_slice(&mut after[..row]);
            low += 1;
            high -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_reversed_in_place() {
        let mut bytes: Vec<u8> = (0..12).collect();
        reverse_axis(&mut bytes, &[2, 3, 2], 1, 1);
        assert_eq!(bytes, [4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7]);
        let mut bytes = vec![1, 2, 3, 4];
        reverse_axis(&mut bytes, &[2], 2, 0);
        assert_eq!(bytes, [3, 4, 1, 2]);
    }
}
