//! Reads of a selection from blocks, for sources that have no more direct way.
//!
//! The work is bounded: at most [`WINDOW_BLOCKS`] blocks are wanted at a time, whatever the size of the selection; the target is cut
//! lazily, depth first. Blocks that the source does not cover are an error here, since a read returns exact elements.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::SelectAll;

use crate::{
    Block, BlockKey, Completions, Content, Error, ErrorKind, Level, ReadRequest, Region, Result, Selection,
    Source, Urgency, WantHandle, c_strides, cut_by_grid, want,
};

/// Most blocks that one read wants at a time: 64 MiB under way for blocks of 1 MiB.
pub const WINDOW_BLOCKS: usize = 64;

/// Reads `request.selection` into `into` by gathering it from `source.blocks`.
///
/// # Errors
/// `Invalid` if the selection or the target does not fit the level; `NotFound` if a block is not covered; else the error of
/// the source.
///
/// # Cancel safety
/// Dropping the future withdraws every block still wanted and releases the target.
pub fn gather(source: Arc<dyn Source>, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let dataset = source.describe().await?;
        let array = dataset.array(request.array)?;
        let level = array.level(request.level)?;
        let first_key = BlockKey {
            dataset: dataset.id,
            generation: dataset.generation,
            array: request.array,
            level: request.level,
            index: 0,
        };
        let mut pieces = BlockParts::new(&request.selection, level, array.dtype.size_bytes(), into)?;
        let mut waiting: HashMap<BlockKey, (BlockPart, WantHandle)> = HashMap::new();
        let mut answers: SelectAll<Completions> = SelectAll::new();
        loop {
            if waiting.len() <= WINDOW_BLOCKS / 2 {
                let mut wants = Vec::new();
                for piece in pieces.by_ref().take(WINDOW_BLOCKS - waiting.len()) {
                    let key = BlockKey { index: piece.index, ..first_key };
                    let (asked, handle) = want(key, Urgency::of(request.priority));
                    wants.push(asked);
                    waiting.insert(key, (piece, handle));
                }
                if !wants.is_empty() {
                    answers.push(source.blocks(wants));
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            let Some(answer) = answers.next().await else {
                return Err(Error::internal("a source ended its stream without answering every want"));
            };
            if let Some((piece, _)) = waiting.remove(&answer.key) {
                piece.copy_from(&*answer.result?, level, array.dtype.size_bytes())?;
            }
        }
    })
}

/// Checks that a target takes exactly the elements of a selection.
///
/// # Errors
/// `Invalid` when shape or element size differ.
pub fn expect_target(into: &Region, selection: &Selection, item_bytes: usize) -> Result<()> {
    let fits = into.item_bytes() == item_bytes
        && into.shape().len() == selection.ranges().len()
        && into.shape().iter().zip(selection.ranges()).all(|(&n, r)| n as u64 == r.count);
    if fits {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected a target of shape {:?} with {item_bytes} bytes per element, found {:?} with {}",
        selection.shape(),
        into.shape(),
        into.item_bytes()
    )))
}

/// The part of a selection that lies in one block, and the part of the target that it fills.
#[derive(Debug)]
pub struct BlockPart {
    /// The block's index on its level.
    pub index: u64,
    /// Per axis: offset in the block of the first element taken.
    start: Vec<u64>,
    /// Per axis: distance between elements taken.
    step: Vec<u64>,
    region: Region,
}

impl BlockPart {
    /// Copies this part from its block to the target.
    ///
    /// # Errors
    /// `NotFound` if the block is not covered, `Corrupt` if its size differs from that of its level.
    pub fn copy_from(mut self, block: &Block, level: &Level, item_bytes: usize) -> Result<()> {
        let Content::Data { bytes, .. } = &block.content else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("expected data in block {}, found that it is not covered at this level", self.index),
            ));
        };
        let to_usize =
            |n: u64| usize::try_from(n).map_err(|_| Error::too_large("a block larger than the memory"));
        let shape: Vec<usize> =
            level.block_selection(self.index)?.shape().into_iter().map(to_usize).collect::<Result<_>>()?;
        let expected = shape.iter().product::<usize>() * item_bytes;
        if bytes.len() != expected {
            return Err(Error::corrupt(format!(
                "expected a block of {expected} bytes, found {}",
                bytes.len()
            )));
        }
        let mut strides = c_strides(&shape, item_bytes);
        let mut first = 0;
        for ((stride, &start), &step) in strides.iter_mut().zip(&self.start).zip(&self.step) {
            first += to_usize(start)? * *stride;
            *stride = stride.saturating_mul(to_usize(step)?);
        }
        self.region.write_strided(&bytes[first..], &strides)
    }
}

/// Cuts a selection and its target by a level's block grid, one piece at a time, C order of the grid.
#[derive(Debug)]
pub struct BlockParts<'a> {
    selection: &'a Selection,
    level: &'a Level,
    cuts: Vec<Vec<(u64, u64, u64)>>,
    /// Rest of the target and number of the next cut, for each axis that is cut so far.
    rest: Vec<(Region, usize)>,
    /// Per axis: the cut that the current piece lies in.
    at: Vec<usize>,
    whole: Option<Region>,
}

impl<'a> BlockParts<'a> {
    /// Elements have `item_bytes`. An empty selection has no pieces.
    ///
    /// # Errors
    /// `Invalid` when the selection does not fit the level, or the target does not fit the selection.
    pub fn new(selection: &'a Selection, level: &'a Level, item_bytes: usize, into: Region) -> Result<Self> {
        selection.check(&level.shape)?;
        expect_target(&into, selection, item_bytes)?;
        if selection.is_empty() {
            return Ok(Self { selection, level, cuts: vec![], rest: vec![], at: vec![], whole: None });
        }
        let cuts = cut_by_grid(selection, &level.block);
        Ok(Self { selection, level, at: vec![0; cuts.len()], cuts, rest: Vec::new(), whole: Some(into) })
    }

    /// The blocks that a selection inside the level touches, in the order of the pieces.
    pub fn indices(selection: &Selection, level: &Level) -> impl Iterator<Item = u64> {
        let cuts = if selection.is_empty() { vec![vec![]] } else { cut_by_grid(selection, &level.block) };
        let grid = level.grid();
        let all = cuts.into_iter().zip(grid).fold(vec![0], |found, (cuts, blocks)| {
            let with = |before: u64| cuts.iter().map(move |cut| before * blocks + cut.0);
            found.into_iter().flat_map(with).collect()
        });
        all.into_iter()
    }

    /// Number of blocks that the selection touches, saturating.
    #[must_use]
    pub fn touched(selection: &Selection, level: &Level) -> u64 {
        let axes = selection.ranges().iter().zip(&level.block);
        axes.fold(1, |n, (range, &block)| {
            let span = if range.count == 0 { 0 } else { (range.end() - 1) / block - range.start / block + 1 };
            n.saturating_mul(span.min(range.count))
        })
    }

    fn piece(&self, region: Region) -> BlockPart {
        let mut position = Vec::with_capacity(self.at.len());
        let mut start = Vec::with_capacity(self.at.len());
        for (axis, &cut) in self.at.iter().enumerate() {
            let (block, first, _) = self.cuts[axis][cut];
            position.push(block);
            start.push(self.selection.ranges()[axis].index(first) - block * self.level.block[axis]);
        }
        let step = self.selection.ranges().iter().map(|r| r.step).collect();
        BlockPart { index: self.level.block_index(&position), start, step, region }
    }
}

impl Iterator for BlockParts<'_> {
    type Item = BlockPart;

    fn next(&mut self) -> Option<BlockPart> {
        // Back to the innermost axis that has cuts left.
        let mut region = match self.whole.take() {
            Some(whole) => whole,
            None => loop {
                let axis = self.rest.len().checked_sub(1)?;
                let (rest, next) = self.rest.pop()?;
                if next < self.cuts[axis].len() {
                    break self.take_cut(axis, next, rest);
                }
            },
        };
        // Then the first cut of every axis further in.
        while self.rest.len() < self.cuts.len() {
            region = self.take_cut(self.rest.len(), 0, region);
        }
        Some(self.piece(region))
    }
}

impl BlockParts<'_> {
    /// Splits cut number `cut` off the front of `rest` and stores the rest.
    fn take_cut(&mut self, axis: usize, cut: usize, rest: Region) -> Region {
        let count = self.cuts[axis][cut].2;
        // A piece is never longer than its target, whose sizes are `usize`.
        let (taken, left) = rest.split(axis, usize::try_from(count).unwrap_or(usize::MAX));
        self.at[axis] = cut;
        self.rest.push((left, cut + 1));
        taken
    }
}
