//! Virtual data sets: assembled from parts of other data sets, in this file or others, when they are read.
//!
//! The rules are the library's: a missing source leaves its part at the fill value; axes that follow their sources are as long as
//! the sources; names with `%b` count blocks, up to the first that is missing. If a source is not accessible or does not fit, the
//! whole data set is left out: its part is not filled silently.

mod read;

use std::sync::Arc;

use array::Error;

pub(super) use self::read::read_parts;
use super::files::{LinkError, LinkedFiles, ObjectId};
use super::library::{
    DatasetInfo, DatasetLayout, DataspaceSelection, Datatype, HyperslabAxis, UNLIMITED, VirtualMapping,
};
use super::links;

/// Most sources of one virtual data set of HDF5.
pub(super) const MAX_SOURCES: usize = 16_384;
/// Deepest nesting of virtual data sets as sources of virtual data sets.
const MAX_VIRTUAL_DEPTH: usize = 8;

/// Source data set of virtual data sets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SourceDataset {
    pub(super) id: ObjectId,
    pub(super) facts: DatasetInfo,
    pub(super) shape: Vec<u64>,
    pub(super) parts: Option<Arc<Vec<VirtualPart>>>,
}

/// Part of a virtual data set: elements of a source and their position in the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VirtualPart {
    /// Index in the list of sources.
    source: usize,
    /// The first element of each axis of the source.
    start: Vec<u64>,
    /// Axes of the virtual data set, in its order.
    axes: Vec<VirtualPartAxis>,
}

/// One axis of a [`VirtualPart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VirtualPartAxis {
    target: HyperslabSteps,
    /// Which axis of the source it runs along; none where it has one element.
    source: Option<(usize, HyperslabSteps)>,
}

/// Elements of an axis: blocks of `block` elements, `stride` apart, `len` elements together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HyperslabSteps {
    start: u64,
    stride: u64,
    block: u64,
    len: u64,
}

impl HyperslabSteps {
    /// Makes steps along an axis of `size` elements; steps without a count end there.
    fn of(picked: HyperslabAxis, size: u64) -> Option<Self> {
        let HyperslabAxis { start, stride, count, block } = picked;
        let stride = if stride == 0 { 1 } else { stride };
        let rest = size.saturating_sub(start);
        let len = match (count, block) {
            (_, UNLIMITED) => rest,
            (UNLIMITED, _) => (rest / stride).checked_mul(block)?.checked_add((rest % stride).min(block))?,
            _ => count.checked_mul(block)?,
        };
        let steps =
            Self { start, stride, block: if block == UNLIMITED { rest.max(1) } else { block.max(1) }, len };
        steps.end()?;
        Some(steps)
    }

    fn at(self, index: u64) -> u64 {
        self.start + index / self.block * self.stride + index % self.block
    }

    /// Beyond the last one.
    fn end(self) -> Option<u64> {
        let Some(last) = self.len.checked_sub(1) else { return Some(0) };
        (last / self.block)
            .checked_mul(self.stride)?
            .checked_add(last % self.block)?
            .checked_add(self.start)?
            .checked_add(1)
    }

    /// Returns the index of the element at `place`.
    fn index_of(self, place: u64) -> Option<u64> {
        let from_start = place.checked_sub(self.start)?;
        let (blocks, within) = (from_start / self.stride, from_start % self.stride);
        // Blocks that touch one another are one.
        let index = if self.block >= self.stride { from_start } else { blocks * self.block + within };
        (within < self.block && index < self.len).then_some(index)
    }
}

/// Reason why a virtual data set is left out.
type Obstacle = String;

/// Finds the sources of a virtual data set.
pub(super) struct SourceFinder<'a> {
    pub(super) files: &'a mut LinkedFiles,
    pub(super) found: &'a mut Vec<SourceDataset>,
    /// Virtual data sets that are being resolved.
    above: Vec<ObjectId>,
}

impl<'a> SourceFinder<'a> {
    pub(super) fn new(files: &'a mut LinkedFiles, found: &'a mut Vec<SourceDataset>) -> Self {
        Self { files, found, above: Vec::new() }
    }

    /// Shape and parts of the virtual data set `id`.
    pub(super) fn parts(
        &mut self,
        id: ObjectId,
        element: &Datatype,
    ) -> Result<(Vec<u64>, Vec<VirtualPart>), Obstacle> {
        if self.above.contains(&id) || self.above.len() >= MAX_VIRTUAL_DEPTH {
            return Err("virtual data sets that hold one another".into());
        }
        self.above.push(id);
        let done = self.parts_within(id, element);
        self.above.pop();
        done
    }

    fn parts_within(
        &mut self,
        id: ObjectId,
        element: &Datatype,
    ) -> Result<(Vec<u64>, Vec<VirtualPart>), Obstacle> {
        let read = |e: Error| e.message().to_owned();
        let object = self.files.object(id).map_err(read)?;
        let (shape, largest) = object.extents().map_err(read)?;
        let mappings = object.mappings(MAX_SOURCES).map_err(read)?;
        drop(object);
        let mut parts = Vec::new();
        let mut follows = vec![false; shape.len()];
        for mapping in &mappings {
            let target = match &mapping.target {
                DataspaceSelection::All => whole(&shape),
                DataspaceSelection::None => continue,
                DataspaceSelection::Regular(axes) if axes.len() == shape.len() => axes.clone(),
                _ => return Err("parts of irregular shape".into()),
            };
            let unlimited = target.iter().position(|axis| axis.count == UNLIMITED || axis.block == UNLIMITED);
            if let Some(axis) = unlimited {
                follows[axis] = true;
            }
            let counts = mapping.file.contains("%b") || mapping.dataset.contains("%b");
            match unlimited.filter(|_| counts) {
                Some(axis) => self.blocks(id, element, mapping, &target, axis, &mut parts)?,
                None => {
                    let names = (plain(&mapping.file), plain(&mapping.dataset));
                    if let Some(source) = self.source(id.file, &names.0, &names.1, element)? {
                        parts.push(self.part(source, mapping, &target, unlimited)?);
                    }
                }
            }
        }
        Ok((followed(shape, &largest, &follows, &parts), parts))
    }

    /// Parts whose sources are counted.
    fn blocks(
        &mut self,
        id: ObjectId,
        element: &Datatype,
        mapping: &VirtualMapping,
        target: &[HyperslabAxis],
        axis: usize,
        parts: &mut Vec<VirtualPart>,
    ) -> Result<(), Obstacle> {
        for number in 0.. {
            if parts.len() >= MAX_SOURCES {
                return Err(format!("more than {MAX_SOURCES} sources"));
            }
            let (file, dataset) = (counted(&mapping.file, number), counted(&mapping.dataset, number));
            let Some(source) = self.source(id.file, &file, &dataset, element)? else { break };
            let mut target = target.to_vec();
            let along = &mut target[axis];
            let start = along.stride.checked_mul(number).and_then(|n| n.checked_add(along.start));
            along.start = start.ok_or("a part that is too far away")?;
            along.count = 1;
            parts.push(self.part(source, mapping, &target, None)?);
        }
        Ok(())
    }

    /// The number of a source; none where nothing is there.
    fn source(
        &mut self,
        from: usize,
        file: &str,
        dataset: &str,
        element: &Datatype,
    ) -> Result<Option<usize>, Obstacle> {
        let named = |reason: String| format!("its source `{dataset}` in `{file}`: {reason}");
        let number = match file {
            "." => from,
            _ => match self.files.follow(from, file) {
                Ok(number) => number,
                Err(LinkError::Missing(_)) => return Ok(None),
                Err(LinkError::Refused(reason)) => return Err(named(reason)),
            },
        };
        let id = match links::resolve_path(self.files, number, dataset) {
            Ok(id) => id,
            Err(LinkError::Missing(_)) => return Ok(None),
            Err(LinkError::Refused(reason)) => return Err(named(reason)),
        };
        if let Some(known) = self.found.iter().position(|source| source.id == id) {
            return match self.found.get(known).is_some_and(|source| source.facts.element == *element) {
                true => Ok(Some(known)),
                false => Err(named("elements of another type".into())),
            };
        }
        let object = self.files.object(id).map_err(|e| named(e.message().to_owned()))?;
        let facts = object.facts().map_err(|e| named(e.message().to_owned()))?;
        drop(object);
        if facts.element != *element || facts.inner_axes > 0 {
            return Err(named("elements of another type".into()));
        }
        let (shape, parts) = match facts.layout {
            DatasetLayout::Virtual => {
                let (shape, parts) = self.parts(id, element).map_err(named)?;
                (shape, Some(Arc::new(parts)))
            }
            _ => {
                if let Some(reason) = super::walk::obstacle(&facts) {
                    return Err(named(reason));
                }
                (facts.shape.clone().unwrap_or_default(), None)
            }
        };
        self.found.push(SourceDataset { id, facts, shape, parts });
        Ok(Some(self.found.len() - 1))
    }

    /// A part, with its axes and those of its source beside one another.
    fn part(
        &self,
        source: usize,
        mapping: &VirtualMapping,
        target: &[HyperslabAxis],
        unlimited: Option<usize>,
    ) -> Result<VirtualPart, Obstacle> {
        let far = || "a part that is too far away".to_owned();
        let shape = self.found.get(source).map(|source| &source.shape[..]).unwrap_or_default();
        let picked = match &mapping.source {
            DataspaceSelection::All => whole(shape),
            DataspaceSelection::Regular(axes) if axes.len() == shape.len() => axes.clone(),
            DataspaceSelection::None => return Err("a source without elements".into()),
            _ => return Err("sources of irregular shape, or of other axes".into()),
        };
        let sources: Option<Vec<HyperslabSteps>> =
            picked.iter().zip(shape).map(|(axis, n)| HyperslabSteps::of(*axis, *n)).collect();
        let sources = sources.ok_or_else(far)?;
        let beyond = sources.iter().zip(shape).any(|(steps, n)| steps.end().is_none_or(|end| end > *n));
        if beyond {
            return Err(format!("a source of {shape:?} that is smaller than its part"));
        }
        // An axis that follows its source is as long as that.
        let follower = picked.iter().position(|axis| axis.count == UNLIMITED || axis.block == UNLIMITED);
        let len_of = |axis: usize| sources.get(axis).map_or(0, |steps| steps.len);
        let mut axes = Vec::with_capacity(target.len());
        for (number, axis) in target.iter().enumerate() {
            let mut steps = match (unlimited == Some(number), follower) {
                (true, Some(follower)) => {
                    let HyperslabAxis { start, stride, block, .. } = *axis;
                    let len = len_of(follower);
                    let block = if block == UNLIMITED { len.max(1) } else { block.max(1) };
                    HyperslabSteps { start, stride: stride.max(1), block, len }
                }
                (true, None) => return Err("a part without end of a source with one".into()),
                (false, _) => HyperslabSteps::of(*axis, UNLIMITED).ok_or_else(far)?,
            };
            steps.stride = steps.stride.max(1);
            steps.end().ok_or_else(far)?;
            axes.push(VirtualPartAxis { target: steps, source: None });
        }
        // Axes of one element are skipped; the others follow in the same order.
        let mut long = (0..sources.len()).filter(|&n| sources[n].len != 1);
        for axis in axes.iter_mut().filter(|axis| axis.target.len != 1) {
            let number = long.next().filter(|&n| sources[n].len == axis.target.len);
            let number = number.ok_or("a source of another shape than its part")?;
            axis.source = Some((number, sources[number]));
        }
        if long.next().is_some() {
            return Err("a source of another shape than its part".into());
        }
        Ok(VirtualPart { source, start: sources.iter().map(|steps| steps.start).collect(), axes })
    }
}

fn whole(shape: &[u64]) -> Vec<HyperslabAxis> {
    shape.iter().map(|&block| HyperslabAxis { start: 0, stride: block.max(1), count: 1, block }).collect()
}

/// The shape once axes that follow their sources are as long as those reach.
fn followed(mut shape: Vec<u64>, largest: &[u64], follows: &[bool], parts: &[VirtualPart]) -> Vec<u64> {
    for (number, size) in
        shape.iter_mut().enumerate().filter(|(number, _)| follows.get(*number) == Some(&true))
    {
        let ends = parts.iter().filter_map(|part| part.axes.get(number)?.target.end());
        *size = ends.max().unwrap_or(0).min(largest.get(number).copied().unwrap_or(UNLIMITED));
    }
    shape
}

/// Replaces `%%` in a name by one percent sign.
fn plain(name: &str) -> String {
    name.replace("%%", "%")
}

/// A name with the number of a block.
fn counted(name: &str, number: u64) -> String {
    let parts: Vec<String> = name.split("%%").map(|part| part.replace("%b", &number.to_string())).collect();
    parts.join("%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_lie_apart_are_counted_and_found() {
        let steps = HyperslabSteps::of(HyperslabAxis { start: 2, stride: 5, count: UNLIMITED, block: 2 }, 14)
            .unwrap();
        let places: Vec<u64> = (0..steps.len).map(|n| steps.at(n)).collect();
        assert_eq!((places, steps.end()), (vec![2, 3, 7, 8, 12, 13], Some(14)));
        let found: Vec<_> = (0..16).map(|place| steps.index_of(place)).collect();
        let expected: Vec<_> =
            (0..16).map(|p| [2, 3, 7, 8, 12, 13].iter().position(|&q| q == p).map(|n| n as u64)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_count_blocks() {
        assert_eq!(counted("f-%b.h5", 12), "f-12.h5");
        assert_eq!(counted("100%%b-%b", 3), "100%b-3");
        assert_eq!(plain("50%%"), "50%");
    }
}
