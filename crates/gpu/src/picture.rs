//! Picture in the types and the layout of the shader.
//!
//! Everything that needs more than `f32` is computed here, in `f64`: positions are relative to an anchor near
//! the eye, those within a level to a whole voxel near that anchor.

use array::{Error, Result};
use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};
use render::device::{
    NO_SIDE, Prepared, PreparedBlock, PreparedLevel, PreparedSurface, SEVERAL_SIDES, Sides, VisibleCells,
    VoxelFormat,
};
use render::{Isosurface, Slice};
use view::ValueScale;

/// Most levels of a picture.
pub(crate) const MAX_LEVELS: usize = array::MAX_LEVELS;
/// Most isosurfaces of a picture.
pub(crate) const MAX_SURFACES: usize = Isosurface::MAX_COUNT;
/// Most slices of a picture.
pub(crate) const MAX_SLICES: usize = Slice::MAX_COUNT;
/// Largest number of samples along a ray, up to which integers are exact in `f32`.
const MAX_SAMPLES: f64 = (1u64 << 23) as f64;
/// Largest side of a level, voxels: they are counted in 32 bits.
const MAX_SIDE: u64 = 1 << 30;
/// Steps between the possible origins of parallel rays, the longest stride.
const LONGEST_STRIDE: f64 = 256.0;

/// Layout of the shader's `Picture`, without its levels.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct PictureHead {
    volume: RayEntry,
    world: RayEntry,
    box_low: [f32; 3],
    opaque: f32,
    box_high: [f32; 3],
    is_perspective: u32,
    clip_low: [f32; 3],
    has_clip: u32,
    clip_high: [f32; 3],
    level_count: u32,
    squares: [f32; 3],
    direction: f32,
    mixed_squares: [f32; 3],
    pub(crate) place_mask: u32,
    half: [f32; 2],
    size: [u32; 2],
    pub(crate) first_row: u32,
    pub(crate) row_count: u32,
    pub(crate) is_first_pass: u32,
    pub(crate) stands_in: u32,
    valid: [f32; 2],
    missing_at: u32,
    missing_count: u32,
    labels_at: u32,
    wanted_is_here: u32,
    middle: f32,
    is_thin: u32,
    sense: [f32; 2],
    palette: [f32; 2],
    palette_at: u32,
    surface_count: u32,
    slice_count: u32,
    slices_are_alone: u32,
    entry_map: [f32; 2],
    scale: u32,
    spare_scale: u32,
    light: [f32; 3],
    spare: f32,
    soft: [f32; 2],
    cue: [f32; 2],
    occlusion_scale: [f32; 3],
    occlusion_strength: f32,
    occlusion_shift: [f32; 3],
    lookup_steps: f32,
    occlusion_cells: [u32; 3],
    occlusion_at: u32,
    cue_strength: f32,
    spares: [f32; 3],
    surfaces: [SurfaceEntry; MAX_SURFACES],
    slices: [SliceEntry; MAX_SLICES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SurfaceEntry {
    color: [f32; 4],
    place: f32,
    spare: [f32; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SliceEntry {
    axis: u32,
    at: f32,
    spare: [u32; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct RayEntry {
    origin: [f32; 4],
    origin_across: [f32; 4],
    origin_upward: [f32; 4],
    step: [f32; 4],
    step_across: [f32; 4],
    step_upward: [f32; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct LevelEntry {
    scale: [f32; 3],
    stride_log2: u32,
    shift: [f32; 3],
    is_wanted: u32,
    anchor: [i32; 4],
    last_voxel: [i32; 4],
    block: [i32; 4],
    last_place: [i32; 4],
}

/// Layout of the shader's `Block`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct BlockEntry {
    start: [i32; 3],
    flags: u32,
    shape: [u32; 3],
    gap: u32,
    last: [u32; 3],
    pub(crate) field: u32,
    pub(crate) texel: [u32; 3],
    pub(crate) atlas: u32,
    origin: f32,
    gain: f32,
    level: u32,
    side: u32,
    pub(crate) sides: u32,
    isovalues: u32,
    highest: f32,
    spare: u32,
}

/// Layout of the shader's `Place`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct PlaceEntry {
    at: [i32; 3],
    level: u32,
    block: u32,
    spare: [u32; 3],
}

/// Marks a block without an atlas.
pub(crate) const NO_ATLAS: u32 = u32::MAX;
const NO_LEVEL: u32 = u32::MAX;
const NOT_COVERED: u32 = u32::MAX - 1;
const NO_GAP: u32 = u32::MAX;

const HAS_MISSING: u32 = 1;
const HIDDEN: u32 = 2;
const FULL: u32 = 4;
const FULL_BENT: u32 = 8;
const FADE_X: u32 = 16;

/// Numbers of a picture, in the shader's types and layout.
#[derive(Debug)]
pub(crate) struct GpuPicture {
    pub(crate) head: PictureHead,
    pub(crate) levels: Vec<LevelEntry>,
    pub(crate) blocks: Vec<BlockEntry>,
    pub(crate) places: Vec<PlaceEntry>,
    /// Words after the tables: missing values, the palette, the isovalues of surfaces.
    pub(crate) words: Vec<u32>,
    /// Distances of blocks from the eye, in voxels of level 0.
    pub(crate) distances: Vec<f32>,
}

impl GpuPicture {
    /// # Errors
    /// `Unsupported` for what `f32` cannot represent.
    pub(crate) fn new(prepared: &Prepared) -> Result<Self> {
        check(prepared)?;
        let eye_world = eye(prepared);
        let eye = prepared.volume_from_world.transform_point3(eye_world);
        let (low, high) = prepared.volume_box;
        let anchor = eye.clamp(low, high).round();
        let level = |l: &PreparedLevel| level_entry(l, anchor, l.level_index == prepared.wanted_level_index);
        let levels: Vec<LevelEntry> = prepared.levels.iter().map(level).collect();
        let mut words = TableWords::new(prepared);
        let block = |b: &PreparedBlock| block_entry(prepared, &levels, b, words.isovalues(b));
        let blocks: Vec<BlockEntry> = prepared.blocks.iter().map(block).collect();
        let places = places(prepared);
        let distances = prepared.blocks.iter().map(|b| distance(prepared, b, eye)).collect();
        let mut head = head(prepared, [eye_world, eye - anchor, anchor]);
        head.missing_at = words.missing_at;
        head.palette_at = words.palette_at;
        head.occlusion_at = words.put_occlusion();
        head.place_mask = u32::try_from(places.len() - 1).expect("a bounded number of blocks");
        head.level_count = u32::try_from(levels.len()).expect("at most 64 levels");
        Ok(Self { head, levels, blocks, places, words: words.words, distances })
    }

    /// Returns the bytes of the shader's `Picture`.
    pub(crate) fn uniform(&self) -> Vec<u8> {
        let mut bytes = bytemuck::bytes_of(&self.head).to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(&self.levels));
        bytes.resize(size_of::<PictureHead>() + MAX_LEVELS * size_of::<LevelEntry>(), 0);
        bytes
    }
}

fn check(prepared: &Prepared) -> Result<()> {
    if let Some(level) = prepared.levels.iter().find(|l| l.shape.iter().any(|&side| side > MAX_SIDE)) {
        return Err(Error::unsupported(format!(
            "expected levels of at most {MAX_SIDE} voxels a side for a graphics processor, found {:?}",
            level.shape
        )));
    }
    if prepared.is_labels && prepared.format == VoxelFormat::Relative {
        return Err(Error::unsupported(
            "expected labels of at most 16 bits for a graphics processor, found wider ones",
        ));
    }
    let bounds = prepared.view.bounds();
    let (low, high) = (DVec3::from(bounds.min), DVec3::from(bounds.max));
    let eye = eye(prepared);
    let farthest = (eye - low).abs().max((eye - high).abs()).length() / prepared.step_world;
    if farthest > MAX_SAMPLES {
        return Err(Error::unsupported(format!(
            "expected an eye within {MAX_SAMPLES} samples of all data for a graphics processor, found {farthest:.0}"
        )));
    }
    Ok(())
}

/// Returns the origin of the rays in world space: the eye. For parallel rays it is the point nearest to the
/// volume's center that lies a whole number of the longest strides before or behind the eye.
fn eye(prepared: &Prepared) -> DVec3 {
    let lens = &prepared.lens;
    if lens.is_perspective {
        return lens.eye;
    }
    let bounds = prepared.view.bounds();
    let middle = (DVec3::from(bounds.min) + DVec3::from(bounds.max)) / 2.0;
    let strides = (middle - lens.eye).dot(lens.forward) / (prepared.step_world * LONGEST_STRIDE);
    lens.eye + lens.forward * (strides.round() * LONGEST_STRIDE * prepared.step_world)
}

#[expect(clippy::cast_possible_truncation, reason = "a shader's numbers are f32")]
fn head(prepared: &Prepared, [eye_world, origin, anchor]: [DVec3; 3]) -> PictureHead {
    let lens = &prepared.lens;
    let (low, high) = prepared.volume_box;
    let volume = prepared.volume_from_world.matrix3;
    let clip =
        prepared.clip.map(|c| [c.min, c.max].map(|p| (DVec3::from(p) - eye_world).as_vec3().to_array()));
    let [xx, yy, zz, xy, xz, yz] = prepared.light.squares;
    let light = prepared.light.shares;
    let dimming = &prepared.dimming;
    let grid = dimming.occlusion.as_deref();
    // Parallel rays begin this number of steps behind the camera's own.
    let moved = (eye_world - lens.eye).dot(lens.forward) / prepared.step_world;
    let labels = prepared.table_count() * render::device::TABLE_WORDS;
    let half = if lens.is_perspective { lens.half.map(|h| h as f32) } else { [0.0; 2] };
    PictureHead {
        volume: rays(prepared, volume, origin),
        world: rays(prepared, DMat3::IDENTITY, DVec3::ZERO),
        box_low: (low - anchor).as_vec3().to_array(),
        opaque: prepared.opaque,
        box_high: (high - anchor).as_vec3().to_array(),
        is_perspective: u32::from(lens.is_perspective),
        clip_low: clip.map_or([0.0; 3], |c| c[0]),
        has_clip: u32::from(clip.is_some()),
        clip_high: clip.map_or([0.0; 3], |c| c[1]),
        level_count: 0,
        squares: [xx, yy, zz],
        direction: (1.0 / prepared.light.step_length) as f32,
        mixed_squares: [xy, xz, yz],
        place_mask: 0,
        half,
        size: [prepared.size.width, prepared.size.height],
        first_row: 0,
        row_count: 0,
        is_first_pass: 1,
        stands_in: 0,
        valid: prepared.valid.unwrap_or([f32::MIN, f32::MAX]),
        missing_at: 0,
        missing_count: prepared.missing.len() as u32,
        labels_at: if prepared.has_label_colors() { labels as u32 } else { 0 },
        wanted_is_here: u32::from(
            prepared.levels.iter().any(|l| l.level_index == prepared.wanted_level_index),
        ),
        middle: lens.middle as f32,
        is_thin: u32::from(prepared.is_thin),
        sense: prepared.height_scale,
        palette: prepared.palette.map.map(|v| v as f32),
        palette_at: 0,
        surface_count: prepared.surfaces.len() as u32,
        slice_count: prepared.slices.len() as u32,
        slices_are_alone: u32::from(prepared.slices_are_alone),
        entry_map: prepared.entry_map,
        scale: match prepared.scale {
            ValueScale::Linear => 0,
            ValueScale::Log => 1,
            ValueScale::Symlog => 2,
        },
        spare_scale: 0,
        light: [light.ambient, light.diffuse, light.specular],
        spare: 0.0,
        soft: prepared.light.soft,
        cue: dimming
            .cue
            .map_or([0.0; 2], |cue| [(cue.start + moved * cue.per_step) as f32, cue.per_step as f32]),
        occlusion_scale: grid.map_or([0.0; 3], |grid| grid.scale.as_vec3().to_array()),
        occlusion_strength: grid.map_or(0.0, |_| dimming.strength),
        occlusion_shift: grid
            .map_or([0.0; 3], |grid| (anchor * grid.scale + grid.shift).as_vec3().to_array()),
        lookup_steps: dimming.lookup_steps as f32,
        occlusion_cells: grid.map_or([1; 3], |grid| grid.cells.map(|n| n as u32)),
        occlusion_at: 0,
        cue_strength: dimming.cue.map_or(0.0, |cue| cue.strength),
        spares: [0.0; 3],
        surfaces: entries(&prepared.surfaces, |surface: &PreparedSurface| SurfaceEntry {
            color: surface.color,
            place: surface.place,
            spare: [0.0; 3],
        }),
        slices: entries(&prepared.slices, |slice: &Slice| {
            let axis = slice.axis.index();
            SliceEntry { axis: axis as u32, at: (slice.at - anchor[axis]) as f32, spare: [0; 2] }
        }),
    }
}

/// Converts a list to an array padded with zeros.
fn entries<T, E: Zeroable + Copy, const N: usize>(list: &[T], entry: impl Fn(&T) -> E) -> [E; N] {
    let mut entries = [E::zeroed(); N];
    entries.iter_mut().zip(list).for_each(|(to, from)| *to = entry(from));
    entries
}

/// Words after the tables, and the offsets of their parts.
struct TableWords<'a> {
    prepared: &'a Prepared,
    words: Vec<u32>,
    missing_at: u32,
    palette_at: u32,
    isovalues_at: u32,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "fewer words than a binding holds; a shader's numbers are f32"
)]
impl<'a> TableWords<'a> {
    fn new(prepared: &'a Prepared) -> Self {
        let missing_at = prepared.table_words().len();
        let palette_at = missing_at + prepared.missing.len();
        let mut words: Vec<u32> = prepared.missing.iter().map(|value| value.to_bits()).collect();
        let colors = prepared.palette.colors.iter().flat_map(|&[r, g, b]| [r, g, b, 1.0]);
        words.extend(colors.map(f32::to_bits));
        let isovalues_at = (missing_at + words.len()) as u32;
        let (missing_at, palette_at) = (missing_at as u32, palette_at as u32);
        let mut own = Self { prepared, words, missing_at, palette_at, isovalues_at };
        if prepared.format != VoxelFormat::Relative {
            own.put_isovalues(|surface| surface.least);
        }
        own
    }

    /// Appends the cells of the occlusion; returns the index of the first one.
    fn put_occlusion(&mut self) -> u32 {
        let first = self.missing_at + self.words.len() as u32;
        if let Some(grid) = &self.prepared.dimming.occlusion {
            self.words.extend(grid.occlusion.iter().map(|occlusion| occlusion.to_bits()));
        }
        first
    }

    fn put_isovalues(&mut self, tell: impl Fn(&PreparedSurface) -> f32) -> u32 {
        let first = self.missing_at + self.words.len() as u32;
        let values = self.prepared.surfaces.iter().map(|surface| tell(surface).to_bits());
        self.words.extend(values);
        first
    }

    /// Returns the index of the first isovalue in the units of a block's voxels; appends the isovalues for a
    /// block whose voxels are relative to its own range.
    fn isovalues(&mut self, block: &PreparedBlock) -> u32 {
        match block.relative {
            Some(to) => self.put_isovalues(|surface| to.of(surface.stored)),
            None => self.isovalues_at,
        }
    }
}

/// Returns the rays from `origin` in the space that `map` leads to.
fn rays(prepared: &Prepared, map: DMat3, origin: DVec3) -> RayEntry {
    let lens = &prepared.lens;
    let [half_right, half_up] = lens.half;
    let wide = |v: DVec3| v.as_vec3().extend(0.0).to_array();
    let (across, upward) = (map * lens.right * half_right, map * lens.up * half_up);
    let (of_origin, of_step) = if lens.is_perspective { (0.0, prepared.step_world) } else { (1.0, 0.0) };
    RayEntry {
        origin: wide(origin),
        origin_across: wide(across * of_origin),
        origin_upward: wide(upward * of_origin),
        step: wide(map * (lens.forward + lens.right * lens.middle) * prepared.step_world),
        step_across: wide(across * of_step),
        step_upward: wide(upward * of_step),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "sides are below 2^30")]
fn level_entry(level: &PreparedLevel, anchor: DVec3, is_wanted: bool) -> LevelEntry {
    let voxel = anchor * level.scale + level.shift;
    let whole = voxel.floor();
    let wide = |zyx: [u64; 3]| [zyx[2] as i32, zyx[1] as i32, zyx[0] as i32, 0];
    let block = [0, 1, 2].map(|axis| level.block[axis].min(level.shape[axis]));
    LevelEntry {
        scale: level.scale.as_vec3().to_array(),
        stride_log2: level.stride_log2 as u32,
        shift: (voxel - whole).as_vec3().to_array(),
        is_wanted: u32::from(is_wanted),
        anchor: whole.as_ivec3().extend(0).to_array(),
        last_voxel: wide(level.shape.map(|n| n - 1)),
        block: wide(block),
        last_place: wide([0, 1, 2].map(|axis| (level.shape[axis] - 1) / block[axis])),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "sides of blocks are below 2^21")]
fn block_entry(
    prepared: &Prepared,
    levels: &[LevelEntry],
    block: &PreparedBlock,
    isovalues: u32,
) -> BlockEntry {
    let level = level_number(prepared, block.level_index);
    let entry = &levels[level];
    let xyz = |zyx: [usize; 3]| [zyx[2] as u32, zyx[1] as u32, zyx[0] as u32];
    let start = |axis: usize| block.at[2 - axis] as i32 * entry.block[axis] - entry.anchor[axis];
    let mut flags = if block.has_missing { HAS_MISSING } else { 0 };
    for axis in 0..3 {
        flags |= if block.fade.test(axis) { FADE_X << axis } else { 0 };
    }
    let mut gap = NO_GAP;
    match block.field.as_deref() {
        Some(VisibleCells::Hidden { gap: own }) => {
            flags |= HIDDEN;
            gap = own.unwrap_or(NO_GAP);
        }
        Some(VisibleCells::Full { bent }) => flags |= if *bent { FULL | FULL_BENT } else { FULL },
        Some(VisibleCells::Cells(_)) | None => {}
    }
    let side = match block.sides {
        Some(Sides::One(side)) => side,
        Some(Sides::Cells(_)) => SEVERAL_SIDES,
        None => NO_SIDE,
    };
    let (origin, gain) = match block.relative {
        Some(to) => ((prepared.origin - to.low) / to.span, prepared.gain * to.span),
        None => (prepared.origin, prepared.gain),
    };
    BlockEntry {
        start: [start(0), start(1), start(2)],
        flags,
        shape: xyz(block.shape),
        gap,
        last: xyz(block.extent.map(|n| n - 1)),
        field: 0,
        texel: [0; 3],
        atlas: NO_ATLAS,
        origin: origin as f32,
        gain: gain as f32,
        level: level as u32,
        side: u32::from(side),
        sides: 0,
        isovalues,
        highest: block.peaks.as_ref().map_or(0.0, |peaks| peaks.highest),
        spare: 0,
    }
}

fn level_number(prepared: &Prepared, level_index: usize) -> usize {
    prepared.levels.iter().position(|level| level.level_index == level_index).expect("a level that is drawn")
}

/// Returns the distance from the eye to a block's center, in voxels of level 0.
#[expect(clippy::cast_possible_truncation, reason = "for sorting")]
fn distance(prepared: &Prepared, block: &PreparedBlock, eye: DVec3) -> f32 {
    let level = &prepared.levels[level_number(prepared, block.level_index)];
    let middle = |axis: usize| (block.at[axis] * level.block[axis]) as f64 + block.shape[axis] as f64 / 2.0;
    let voxel = DVec3::new(middle(2), middle(1), middle(0));
    ((voxel - level.shift) / level.scale).distance(eye) as f32
}

/// Returns the page table, at least half of which is empty.
#[expect(clippy::cast_possible_truncation, reason = "places are below 2^30, and blocks below 2^31")]
fn places(prepared: &Prepared) -> Vec<PlaceEntry> {
    let count = prepared.blocks.len() + prepared.gaps.len();
    let empty = PlaceEntry { at: [0; 3], level: NO_LEVEL, block: 0, spare: [0; 3] };
    let mut places = vec![empty; (2 * count).next_power_of_two().max(2)];
    let mut put = |level_index: usize, at: [u64; 3], block: u32| {
        let level = level_number(prepared, level_index) as u32;
        let at = [at[2] as i32, at[1] as i32, at[0] as i32];
        let mut i = hash(at, level) as usize & (places.len() - 1);
        while places[i].level != NO_LEVEL {
            i = (i + 1) & (places.len() - 1);
        }
        places[i] = PlaceEntry { at, level, block, spare: [0; 3] };
    };
    for (number, block) in prepared.blocks.iter().enumerate() {
        put(block.level_index, block.at, number as u32);
    }
    // Without the level itself gaps are never looked up.
    if prepared.levels.iter().any(|level| level.level_index == prepared.wanted_level_index) {
        prepared.gaps.iter().for_each(|&at| put(prepared.wanted_level_index, at, NOT_COVERED));
    }
    places
}

/// Hash function of the page table; equal to the shader's.
fn hash(at: [i32; 3], level: u32) -> u32 {
    const PRIMES: [u32; 3] = [73_856_093, 19_349_663, 83_492_791];
    let mixed = at.iter().zip(PRIMES).fold(0, |h, (&a, prime)| h ^ a.cast_unsigned().wrapping_mul(prime));
    let mixed = (mixed ^ level.wrapping_mul(2_654_435_769)).wrapping_mul(2_246_822_519);
    mixed ^ mixed >> 15
}
