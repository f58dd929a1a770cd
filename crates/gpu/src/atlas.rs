//! Which blocks are in which atlas, and which go when room is short: book-keeping only, no device.
//!
//! An atlas is one 3-D texture cut into slots of one size. Blocks of one size (those of most levels) share atlases; a block
//! smaller than its slot wastes what it does not need. What was not seen longest goes first.

use std::collections::HashMap;

use render::device::{Prepared, PreparedBlock, Stamp};

/// The first atlas of a size; each further one is as large as all before it.
pub const FIRST_ATLAS_BYTES: u64 = 64 << 20;
/// Largest atlas: what drivers allocate in one piece.
pub const MAX_ATLAS_BYTES: u64 = 4 << 30;
/// A level with so few blocks may waste what it likes.
const FEW_BLOCKS: u64 = 8;
/// A block may be so much smaller than its slot.
const MOST_WASTE: u64 = 8;

/// Size of slots `[z, y, x]`, and of what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSize {
    pub(crate) extent: [u32; 3],
    pub(crate) voxel_bytes: u32,
}

impl SlotSize {
    fn voxels(&self) -> u64 {
        self.extent.iter().map(|&n| u64::from(n)).product()
    }

    /// Bytes of a slot.
    pub(crate) fn bytes(&self) -> u64 {
        self.voxels() * u64::from(self.voxel_bytes)
    }

    fn holds(&self, extent: [u32; 3]) -> bool {
        (0..3).all(|axis| extent[axis] <= self.extent[axis])
    }
}

/// The sizes of slots for the blocks of a picture, and which of them each level (finest first) uses.
pub(crate) fn slot_sizes(prepared: &Prepared) -> (Vec<SlotSize>, Vec<usize>) {
    let voxel_bytes = u32::try_from(prepared.format.bytes()).expect("at most 4");
    let mut sizes: Vec<SlotSize> = Vec::new();
    let mut of_levels = Vec::new();
    for level in &prepared.levels {
        let block: [u64; 3] = [0, 1, 2].map(|axis| level.block[axis].min(level.shape[axis]));
        let extent = [0, 1, 2].map(|axis| {
            let apron = u64::from(axis == 2 || level.shape[axis] > 1);
            u32::try_from(block[axis] + apron).expect("sides of blocks are below 2^21")
        });
        let own = SlotSize { extent, voxel_bytes };
        let count: u64 = (0..3).map(|axis| level.shape[axis].div_ceil(block[axis])).product();
        let will_do = |size: &SlotSize| {
            size.holds(extent) && (count <= FEW_BLOCKS || size.voxels() <= own.voxels() * MOST_WASTE)
        };
        let known = sizes.iter().position(will_do);
        of_levels.push(known.unwrap_or(sizes.len()));
        if known.is_none() {
            sizes.push(own);
        }
    }
    (sizes, of_levels)
}

/// Slots per axis `[z, y, x]` of an atlas of about `bytes`, never more; `None` where not even one slot fits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "roots of small numbers")]
pub(crate) fn grid(size: &SlotSize, bytes: u64, max_side: u32) -> Option<[u32; 3]> {
    let most = size.extent.map(|n| max_side / n);
    let count = u32::try_from(bytes / size.bytes()).unwrap_or(u32::MAX);
    if count == 0 || most.contains(&0) {
        return None;
    }
    let x = (f64::from(count).cbrt() as u32).clamp(1, most[2]);
    let y = (f64::from(count / x).sqrt() as u32).clamp(1, most[1]);
    let z = (count / (x * y)).clamp(1, most[0]);
    Some([z, y, x])
}

/// One atlas.
#[derive(Debug)]
pub(crate) struct Atlas {
    pub(crate) size: SlotSize,
    pub(crate) grid: [u32; 3],
    pages: Vec<Option<Page>>,
    free: Vec<u32>,
    last_seen: u64,
}

/// A block in a slot.
#[derive(Clone, Debug)]
struct Page {
    stamp: Stamp,
    last_seen: u64,
    /// The table that its cells were uploaded for.
    cells_of: Option<u64>,
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageAt {
    /// Number of the atlas.
    pub(crate) atlas: usize,
    pub(crate) slot: u32,
}

/// All atlases.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    atlases: Vec<Atlas>,
    pages: HashMap<Stamp, PageAt>,
    /// Counts dispatches.
    now: u64,
}

impl Shelf {
    pub(crate) fn atlases(&self) -> &[Atlas] {
        &self.atlases
    }

    /// Another dispatch begins.
    pub(crate) fn tick(&mut self) {
        self.now += 1;
    }

    /// Bytes of all atlases.
    pub(crate) fn bytes(&self) -> u64 {
        self.atlases.iter().map(Atlas::bytes).sum()
    }

    /// Bytes of the atlases of one size.
    pub(crate) fn bytes_of(&self, size: &SlotSize) -> u64 {
        self.atlases.iter().filter(|a| a.size == *size).map(Atlas::bytes).sum()
    }

    /// Where a block is, if it is here.
    pub(crate) fn find(&self, block: &PreparedBlock) -> Option<PageAt> {
        self.pages.get(&block.stamp).copied()
    }

    /// A picture shows a block.
    pub(crate) fn see(&mut self, at: PageAt) {
        let atlas = &mut self.atlases[at.atlas];
        atlas.last_seen = self.now;
        if let Some(page) = &mut atlas.pages[at.slot as usize] {
            page.last_seen = self.now;
        }
    }

    /// True where the cells of a block are not there for a table; from now on they are.
    pub(crate) fn lacks_cells(&mut self, at: PageAt, table: u64) -> bool {
        let page = self.atlases[at.atlas].pages[at.slot as usize].as_mut();
        page.is_some_and(|page| page.cells_of.replace(table) != Some(table))
    }

    /// No cells are there any more.
    pub(crate) fn forget_cells(&mut self) {
        let pages = self.atlases.iter_mut().flat_map(|atlas| &mut atlas.pages).flatten();
        pages.for_each(|page| page.cells_of = None);
    }

    pub(crate) fn add(&mut self, size: SlotSize, grid: [u32; 3]) {
        let slots = grid.iter().product();
        let (pages, free) = (vec![None; slots as usize], (0..slots).rev().collect());
        self.atlases.push(Atlas { size, grid, pages, free, last_seen: self.now });
    }

    /// Drops the atlas not used longest of those that have none of these sizes, if there is one; tells its number.
    pub(crate) fn drop_unused(&mut self, used: &[SlotSize]) -> Option<usize> {
        let unused = self.atlases.iter().enumerate().filter(|(_, atlas)| !used.contains(&atlas.size));
        let (number, _) = unused.min_by_key(|(_, atlas)| atlas.last_seen)?;
        self.atlases.remove(number);
        self.pages.retain(|_, at| at.atlas != number);
        self.pages.values_mut().for_each(|at| at.atlas -= usize::from(at.atlas > number));
        Some(number)
    }

    /// Puts a block into a free slot of its size, if there is one.
    pub(crate) fn place(&mut self, size: &SlotSize, block: &PreparedBlock) -> Option<PageAt> {
        let has_room = |atlas: &Atlas| atlas.size == *size && !atlas.free.is_empty();
        let number = self.atlases.iter().position(has_room)?;
        let atlas = &mut self.atlases[number];
        let slot = atlas.free.pop()?;
        atlas.last_seen = self.now;
        let page = Page { stamp: block.stamp.clone(), last_seen: self.now, cells_of: None };
        atlas.pages[slot as usize] = Some(page);
        let at = PageAt { atlas: number, slot };
        self.pages.insert(block.stamp.clone(), at);
        Some(at)
    }

    /// Frees up to `count` slots of a size: of blocks that are gone, then of those not seen longest, but of none that was
    /// seen in this dispatch. Tells how many.
    pub(crate) fn evict(&mut self, size: &SlotSize, count: usize) -> usize {
        let mut victims: Vec<(u64, PageAt)> = Vec::new();
        for (number, atlas) in self.atlases.iter().enumerate().filter(|(_, atlas)| atlas.size == *size) {
            for (slot, page) in (0u32..).zip(&atlas.pages) {
                let Some(page) = page else { continue };
                let age = if page.stamp.is_gone() { 0 } else { page.last_seen };
                if age < self.now {
                    victims.push((age, PageAt { atlas: number, slot }));
                }
            }
        }
        if victims.len() > count {
            victims.select_nth_unstable_by_key(count, |victim| victim.0);
            victims.truncate(count);
        }
        for (_, at) in &victims {
            self.remove(*at);
        }
        victims.len()
    }

    fn remove(&mut self, at: PageAt) {
        let atlas = &mut self.atlases[at.atlas];
        if let Some(page) = atlas.pages[at.slot as usize].take() {
            self.pages.remove(&page.stamp);
            atlas.free.push(at.slot);
        }
    }
}

impl Atlas {
    /// Bytes of its texels.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots() * self.size.bytes()
    }

    pub(crate) fn slots(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The lowest texel `[x, y, z]` of a slot.
    pub(crate) fn texel(&self, slot: u32) -> [u32; 3] {
        let [_, ny, nx] = self.grid;
        let [ez, ey, ex] = self.size.extent;
        [slot % nx * ex, slot / nx % ny * ey, slot / (nx * ny) * ez]
    }

    /// Words that the cells of one block take.
    pub(crate) fn cell_words(&self) -> u64 {
        let cells: u64 =
            self.size.extent.iter().map(|&n| u64::from(n).div_ceil(render::device::CELL as u64)).product();
        cells.div_ceil(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atlas_is_as_large_as_asked_and_no_larger() {
        for (extent, bytes) in [([33; 3], 64 << 20), ([1, 257, 257], 4 << 30), ([65, 33, 129], 3_000_000)] {
            let size = SlotSize { extent, voxel_bytes: 2 };
            let slots = grid(&size, bytes, 2048).unwrap();
            let found: u64 = slots.iter().map(|&n| u64::from(n)).product::<u64>() * size.bytes();
            assert!(found <= bytes, "{extent:?}: {found} of {bytes}");
            let is_full = (0..3).all(|a| slots[a] == 2048 / extent[a]);
            assert!(is_full || found * 2 > bytes, "{extent:?}: {found} of {bytes}");
            assert!((0..3).all(|a| slots[a] * extent[a] <= 2048));
        }
        let size = SlotSize { extent: [33; 3], voxel_bytes: 1 };
        assert_eq!(grid(&size, size.bytes() - 1, 2048), None);
        assert_eq!(grid(&size, size.bytes(), 2048), Some([1; 3]));
        assert_eq!(grid(&size, 1 << 30, 32), None, "a block is larger than a texture may be");
    }
}
