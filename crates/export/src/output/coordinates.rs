//! Coordinates that are copied with an array: those of its axes, their bounds, and those named in its attribute
//! `coordinates` (CF), for the selection that is copied.

use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Attributes, AxisRange, Coordinates, DType, Dataset, ElementType, Priority,
    ReadRequest, ResolvedIndex, Result, Selection, Source, Target,
};

use crate::coordinate_selection::coordinate_array;
use crate::get::{attributes, reverse_axis};

/// Maximum size of a coordinate array that is copied, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum size of all coordinate arrays that are copied, in bytes.
const MAX_ALL_BYTES: u64 = 256 << 20;

/// A coordinate array.
#[derive(Clone, Debug)]
pub(crate) struct CoordinateArray {
    pub(crate) name: String,
    /// Axes of the copied array, in order.
    pub(crate) axes: Vec<usize>,
    /// Name and size of an additional last axis, such as that of bounds.
    pub(crate) own: Option<(String, u64)>,
    /// Type, in this machine's byte order.
    pub(crate) dtype: DType,
    pub(crate) attributes: Attributes,
    /// Elements as stored, C order.
    pub(crate) bytes: Vec<u8>,
}

/// Array that is copied, and the selection.
pub(crate) struct CopiedArray<'a> {
    pub(crate) source: &'a Arc<dyn Source>,
    pub(crate) dataset: &'a Dataset,
    pub(crate) array: &'a ArrayInfo,
    pub(crate) resolved: &'a ResolvedIndex,
}

impl CopiedArray<'_> {
    /// Reads all coordinate arrays.
    ///
    /// # Errors
    /// The errors of reading.
    pub(crate) async fn scales(&self) -> Result<Vec<CoordinateArray>> {
        let mut found: Vec<CoordinateArray> = Vec::new();
        for axis in 0..self.array.axes.len() {
            let name = last(&self.array.axes[axis].name).to_owned();
            if name == last(&self.array.name) {
                continue;
            }
            match coordinate_array(self.dataset, self.array, axis) {
                Some((number, info)) => {
                    self.take(&mut found, number, info, &[axis]).await?;
                    if let Some(Attribute::Text(bounds)) = info.attributes.get("bounds")
                        && let Some((number, bounds)) = self.beside(bounds)
                        && bounds.shape().first() == self.array.shape().get(axis)
                        && bounds.axes.len() == 2
                    {
                        self.take(&mut found, number, bounds, &[axis]).await?;
                    }
                }
                None => found.extend(self.described(axis, name)?),
            }
        }
        if let Some(Attribute::Text(named)) = self.array.attributes.get("coordinates") {
            for name in named.split_whitespace() {
                let Some((number, info)) = self.beside(name) else { continue };
                let place = |axis: &array::Axis| self.array.axes.iter().position(|own| own.name == axis.name);
                let Some(axes) = info.axes.iter().map(place).collect::<Option<Vec<_>>>() else { continue };
                let is_same =
                    axes.iter().zip(info.shape()).all(|(&axis, size)| self.array.shape()[axis] == *size);
                if is_same && axes.is_sorted() && last(&info.name) != last(&self.array.name) {
                    self.take(&mut found, number, info, &axes).await?;
                }
            }
        }
        Ok(found)
    }

    /// Returns the array of this name in the group of the copied array.
    fn beside(&self, name: &str) -> Option<(u32, &ArrayInfo)> {
        let group = self.array.name.rsplit_once('/').map_or(String::new(), |(group, _)| format!("{group}/"));
        let full = format!("{group}{name}");
        let mut all = (0u32..).zip(&self.dataset.arrays);
        all.find(|(_, info)| info.name.trim_matches('/') == full.trim_matches('/'))
    }

    /// Reads an array, with the selection of the copied one along `axes`; an additional axis is read completely.
    async fn take(
        &self,
        found: &mut Vec<CoordinateArray>,
        number: u32,
        info: &ArrayInfo,
        axes: &[usize],
    ) -> Result<()> {
        let name = last(&info.name).to_owned();
        let own = (info.axes.len() > axes.len())
            .then(|| (last(&info.axes[axes.len()].name).to_owned(), info.shape()[axes.len()]));
        let whole = own.iter().map(|(_, count)| AxisRange { start: 0, count: *count, step: 1 });
        let ranges = axes.iter().map(|&axis| self.resolved.selection.ranges()[axis]).chain(whole);
        let selection = Selection::new(ranges)?;
        let (shape, item) = (selection.shape(), info.dtype.size_bytes());
        let size = selection.len().unwrap_or(u64::MAX).saturating_mul(item as u64);
        let taken: u64 = found.iter().map(|scale| scale.bytes.len() as u64).sum();
        if found.iter().any(|scale| scale.name == name) || size > MAX_BYTES || taken + size > MAX_ALL_BYTES {
            return Ok(());
        }
        let (target, region) = Target::new(&shape, item)?;
        let request = ReadRequest { array: number, level: 0, selection, priority: Priority::NORMAL };
        self.source.read(request, region).await?;
        let mut bytes = target.into_vec()?;
        info.dtype.to_native(&mut bytes);
        for (place, _) in axes.iter().enumerate().filter(|(_, axis)| self.resolved.reversed[**axis]) {
            reverse_axis(&mut bytes, &shape, item, place);
        }
        let dtype = DType::native(info.dtype.element());
        let attributes = attributes(info, false);
        found.push(CoordinateArray { name, axes: axes.to_vec(), own, dtype, attributes, bytes });
        Ok(())
    }

    /// Creates a coordinate array from coordinates that only the description contains.
    fn described(&self, axis: usize, name: String) -> Result<Option<CoordinateArray>> {
        let about = &self.array.axes[axis];
        if about.coordinates == Coordinates::Index || name.is_empty() {
            return Ok(None);
        }
        let range = self.resolved.selection.ranges()[axis];
        if range.count > MAX_BYTES / 8 {
            return Ok(None);
        }
        let at = |index: u64| about.coordinates.at(range.index(index));
        let mut values: Vec<f64> = (0..range.count).map(at).collect();
        if self.resolved.reversed[axis] {
            values.reverse();
        }
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let mut attributes = Attributes::new();
        if !about.units.is_empty() {
            attributes.insert("units".to_owned(), Attribute::Text(about.units.clone()));
        }
        let dtype = DType::native(ElementType::F64);
        Ok(Some(CoordinateArray { name, axes: vec![axis], own: None, dtype, attributes, bytes }))
    }
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
