//! Allocation of blocks in atlases, and their eviction: bookkeeping only, without a device.
//!
//! An atlas is a 3-D texture divided into slots of one size. Blocks of one size (those of most levels) share
//! atlases; a block smaller than its slot wastes the rest. The least recently seen blocks are evicted first.

use std::collections::HashMap;

use render::device::{BlockStamp, CellsId, Prepared, PreparedBlock};

/// Bytes of the first atlas of a slot size; each further one is as large as all before it together.
pub const FIRST_ATLAS_BYTES: u64 = 64 << 20;
/// Bytes of the largest atlas, which drivers still allocate as one piece.
pub const MAX_ATLAS_BYTES: u64 = 4 << 30;
/// Lists of cells per block, one byte per cell.
pub(crate) const CELL_LISTS: usize = 2;
/// Number of blocks of a level up to which any waste is accepted.
const FEW_BLOCKS: u64 = 8;
/// Largest ratio of a slot to its block.
const MOST_WASTE: u64 = 8;

/// Size of a slot `[z, y, x]`, and of its voxels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSize {
    pub(crate) extent: [u32; 3],
    pub(crate) voxel_bytes: u32,
}

impl SlotSize {
    fn voxels(&self) -> u64 {
        self.extent.iter().map(|&n| u64::from(n)).product()
    }

    /// Returns the bytes of a slot.
    pub(crate) fn bytes(&self) -> u64 {
        self.voxels() * u64::from(self.voxel_bytes)
    }

    /// Returns the words of one list of cells of a block.
    pub(crate) fn cell_words(&self) -> u64 {
        let cells = self.extent.iter().map(|&n| u64::from(n).div_ceil(render::device::CELL as u64));
        cells.product::<u64>().div_ceil(4)
    }

    fn holds(&self, extent: [u32; 3]) -> bool {
        (0..3).all(|axis| extent[axis] <= self.extent[axis])
    }
}

/// Returns the slot sizes for the blocks of a picture, and the index of the one that each level (finest
/// first) uses.
pub(crate) fn slot_sizes(prepared: &Prepared) -> (Vec<SlotSize>, Vec<usize>) {
    let voxel_bytes = u32::try_from(prepared.format.bytes()).expect("at most 4");
    let mut sizes: Vec<SlotSize> = Vec::new();
    let mut of_levels = Vec::new();
    for level in &prepared.levels {
        let block: [u64; 3] = [0, 1, 2].map(|axis| level.block[axis].min(level.shape[axis]));
        let extent = [0, 1, 2].map(|axis| {
            let ghost = u64::from(axis == 2 || level.shape[axis] > 1);
            u32::try_from(block[axis] + ghost).expect("sides of blocks are below 2^21")
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

/// Limits of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtlasLimits {
    /// Limit of all atlases together, bytes.
    pub(crate) limit_bytes: u64,
    pub(crate) max_atlases: usize,
    /// Longest side of an atlas, voxels.
    pub(crate) max_side: u32,
    /// Limit of the cells of all slots together, bytes.
    pub(crate) max_cell_bytes: u64,
}

/// Step that makes room for more blocks of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Add an atlas with this number of slots per axis.
    Add([u32; 3]),
    /// Drop the atlas of this number first: none of its blocks is of a size in use.
    Drop(usize),
    /// No growth is possible: blocks replace one another.
    Full,
}

/// Returns the slots per axis `[z, y, x]` of an atlas of at most `bytes`; `None` if not even one slot fits.
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

/// Atlas.
#[derive(Debug)]
pub(crate) struct Atlas {
    pub(crate) size: SlotSize,
    pub(crate) grid: [u32; 3],
    pages: Vec<Option<Page>>,
    free: Vec<u32>,
    last_seen: u64,
}

/// Block in a slot.
#[derive(Clone, Debug)]
struct Page {
    stamp: BlockStamp,
    last_seen: u64,
    /// Pictures that its cells on the device are valid for; `None` if it has no cells there.
    cells_id: Option<CellsId>,
}

/// Location of a block on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageLocation {
    /// Number of the atlas.
    pub(crate) atlas: usize,
    pub(crate) slot: u32,
}

/// Set of all atlases.
#[derive(Debug, Default)]
pub(crate) struct AtlasSet {
    atlases: Vec<Atlas>,
    pages: HashMap<BlockStamp, PageLocation>,
    /// Counter of dispatches.
    now: u64,
}

impl AtlasSet {
    pub(crate) fn atlases(&self) -> &[Atlas] {
        &self.atlases
    }

    /// Begins another dispatch.
    pub(crate) fn tick(&mut self) {
        self.now += 1;
    }

    /// Returns the bytes of all atlases.
    pub(crate) fn bytes(&self) -> u64 {
        self.atlases.iter().map(Atlas::bytes).sum()
    }

    /// Returns the bytes of the atlases of one slot size.
    pub(crate) fn bytes_of(&self, size: &SlotSize) -> u64 {
        self.atlases.iter().filter(|a| a.size == *size).map(Atlas::bytes).sum()
    }

    /// Returns the location of a block, if it is in an atlas.
    pub(crate) fn find(&self, block: &PreparedBlock) -> Option<PageLocation> {
        self.pages.get(&block.stamp).copied()
    }

    /// Marks a block as seen by the current dispatch.
    pub(crate) fn mark_seen(&mut self, at: PageLocation) {
        let atlas = &mut self.atlases[at.atlas];
        atlas.last_seen = self.now;
        if let Some(page) = &mut atlas.pages[at.slot as usize] {
            page.last_seen = self.now;
        }
    }

    /// Returns true if the cells of a block are not those that a picture needs, and assumes that they are
    /// uploaded then.
    pub(crate) fn lacks_cells(&mut self, at: PageLocation, id: &CellsId) -> bool {
        let page = self.atlases[at.atlas].pages[at.slot as usize].as_mut();
        let lacking = page.filter(|page| page.cells_id.as_ref() != Some(id));
        lacking.map(|page| page.cells_id = Some(id.clone())).is_some()
    }

    /// Marks all cells as missing.
    pub(crate) fn forget_cells(&mut self) {
        let pages = self.atlases.iter_mut().flat_map(|atlas| &mut atlas.pages).flatten();
        pages.for_each(|page| page.cells_id = None);
    }

    pub(crate) fn add(&mut self, size: SlotSize, grid: [u32; 3]) {
        let slots = grid.iter().product();
        let (pages, free) = (vec![None; slots as usize], (0..slots).rev().collect());
        self.atlases.push(Atlas { size, grid, pages, free, last_seen: self.now });
    }

    /// Returns how blocks of one of the `used` sizes, which have equal shares of the memory, get more room,
    /// by at most `most_bytes` at once.
    pub(crate) fn growth(
        &self,
        size: &SlotSize,
        used: &[SlotSize],
        limits: &AtlasLimits,
        most_bytes: u64,
    ) -> Growth {
        let own = self.bytes_of(size);
        let share = (limits.limit_bytes / used.len() as u64).saturating_sub(own);
        let left = limits.limit_bytes.saturating_sub(self.bytes());
        let wanted = own.clamp(FIRST_ATLAS_BYTES, MAX_ATLAS_BYTES).min(share).min(most_bytes);
        let Some(slots) = grid(size, wanted, limits.max_side) else { return Growth::Full };
        let has_place = self.atlases.len() < limits.max_atlases && self.cells_fit(size, slots, limits);
        if has_place && slot_count(slots) * size.bytes() <= left {
            return Growth::Add(slots);
        }
        match (self.unused(used), grid(size, wanted.min(left), limits.max_side)) {
            (Some(number), _) => Growth::Drop(number),
            (None, Some(slots)) if has_place => Growth::Add(slots),
            (None, _) => Growth::Full,
        }
    }

    fn cells_fit(&self, size: &SlotSize, slots: [u32; 3], limits: &AtlasLimits) -> bool {
        let present: u64 = self.atlases.iter().map(Atlas::all_cell_words).sum();
        4 * (present + CELL_LISTS as u64 * size.cell_words() * slot_count(slots)) <= limits.max_cell_bytes
    }

    /// Returns the least recently seen atlas of those with none of these sizes.
    pub(crate) fn unused(&self, used: &[SlotSize]) -> Option<usize> {
        let unused = self.atlases.iter().enumerate().filter(|(_, atlas)| !used.contains(&atlas.size));
        unused.min_by_key(|(_, atlas)| atlas.last_seen).map(|(number, _)| number)
    }

    /// Removes an atlas and its blocks.
    pub(crate) fn remove_atlas(&mut self, number: usize) {
        self.atlases.remove(number);
        self.pages.retain(|_, at| at.atlas != number);
        self.pages.values_mut().for_each(|at| at.atlas -= usize::from(at.atlas > number));
    }

    /// Puts a block into a free slot of its size, if there is one.
    pub(crate) fn place(&mut self, size: &SlotSize, block: &PreparedBlock) -> Option<PageLocation> {
        let has_room = |atlas: &Atlas| atlas.size == *size && !atlas.free.is_empty();
        let number = self.atlases.iter().position(has_room)?;
        let atlas = &mut self.atlases[number];
        let slot = atlas.free.pop()?;
        atlas.last_seen = self.now;
        let page = Page { stamp: block.stamp.clone(), last_seen: self.now, cells_id: None };
        atlas.pages[slot as usize] = Some(page);
        let at = PageLocation { atlas: number, slot };
        self.pages.insert(block.stamp.clone(), at);
        Some(at)
    }

    /// Frees up to `count` slots of a size: of dropped blocks first, then of the least recently seen, but of
    /// none that the current dispatch saw. Returns the number.
    pub(crate) fn evict(&mut self, size: &SlotSize, count: usize) -> usize {
        let mut victims: Vec<(u64, PageLocation)> = Vec::new();
        for (number, atlas) in self.atlases.iter().enumerate().filter(|(_, atlas)| atlas.size == *size) {
            for (slot, page) in (0u32..).zip(&atlas.pages) {
                let Some(page) = page else { continue };
                let age = if page.stamp.is_gone() { 0 } else { page.last_seen };
                if age < self.now {
                    victims.push((age, PageLocation { atlas: number, slot }));
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

    fn remove(&mut self, at: PageLocation) {
        let atlas = &mut self.atlases[at.atlas];
        if let Some(page) = atlas.pages[at.slot as usize].take() {
            self.pages.remove(&page.stamp);
            atlas.free.push(at.slot);
        }
    }
}

impl Atlas {
    /// Returns the bytes of its texels.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots() * self.size.bytes()
    }

    pub(crate) fn slots(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns the lowest texel `[x, y, z]` of a slot.
    pub(crate) fn texel(&self, slot: u32) -> [u32; 3] {
        let [_, ny, nx] = self.grid;
        let [ez, ey, ex] = self.size.extent;
        [slot % nx * ex, slot / nx % ny * ey, slot / (nx * ny) * ez]
    }

    /// Returns the words of the cells of all slots.
    pub(crate) fn all_cell_words(&self) -> u64 {
        CELL_LISTS as u64 * self.size.cell_words() * self.slots()
    }
}

/// Returns the number of slots of an atlas.
pub(crate) fn slot_count(slots: [u32; 3]) -> u64 {
    slots.iter().map(|&n| u64::from(n)).product()
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

    /// Atlases that are added one after another until so many blocks have room; and whether they all have.
    fn filled(size: SlotSize, blocks: u64, limits: &AtlasLimits) -> (AtlasSet, bool) {
        let mut atlas_set = AtlasSet::default();
        loop {
            let slots: u64 = atlas_set.atlases.iter().map(Atlas::slots).sum();
            if slots >= blocks {
                return (atlas_set, true);
            }
            match atlas_set.growth(&size, &[size], limits, u64::MAX) {
                Growth::Add(slots) => atlas_set.add(size, slots),
                Growth::Drop(number) => panic!("atlas {number} is in use"),
                Growth::Full => return (atlas_set, false),
            }
        }
    }

    /// 64 GB and ghost voxels: all of it has room on a device of 80 GiB, on a smaller one a part, and the rest is paged.
    #[test]
    fn four_thousand_voxels_a_side_fit_a_large_device() {
        let limits = |gib: u64| AtlasLimits {
            limit_bytes: gib << 30,
            max_atlases: 32,
            max_side: 16_384,
            max_cell_bytes: u64::from(u32::MAX),
        };
        for side in [32, 64, 128, 256] {
            let size = SlotSize { extent: [side + 1; 3], voxel_bytes: 1 };
            let blocks = u64::from(4096 / side).pow(3);
            let (atlas_set, is_whole) = filled(size, blocks, &limits(80));
            let largest = atlas_set.atlases.iter().map(Atlas::bytes).max();
            assert!(is_whole && atlas_set.atlases.len() <= 32, "{side}: {} atlases", atlas_set.atlases.len());
            assert!(
                largest <= Some(4 << 30) && atlas_set.bytes() <= 80 << 30,
                "{side}: {largest:?}, {}",
                atlas_set.bytes()
            );
            assert!(atlas_set.bytes() >= 4096u64.pow(3));
            let (atlas_set, is_whole) = filled(size, blocks, &limits(40));
            assert!(!is_whole && atlas_set.bytes() <= 40 << 30, "{side}: {}", atlas_set.bytes());
            assert!(atlas_set.bytes() > 36 << 30, "{side}: what there is is used: {}", atlas_set.bytes());
            // Blocks of its sides would never fit atlases of a device whose textures are small.
            let narrow = AtlasLimits { max_side: side, ..limits(80) };
            assert_eq!(AtlasSet::default().growth(&size, &[size], &narrow, u64::MAX), Growth::Full);
        }
    }
}
