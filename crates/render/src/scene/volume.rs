//! Array seen as a volume: the assignment of spatial axes, and the positions of every level's voxels and
//! blocks.
//!
//! Geometry only; no voxels. One view is one array at one position along its other axes (time, channel).
//!
//! Two spaces: *world*, and *volume*: positions in voxels of level 0, `(x, y, z)`, voxel centers at whole
//! numbers, so that the volume is the box from -0.5 to n - 0.5. A level's own voxel positions follow from
//! volume positions by a scale and a shift per axis.

use array::{
    Affine, ArrayInfo, BlockKey, Coordinates, DType, Dataset, DatasetId, Decoding, Error, Generation, Level,
    LevelOrigin, Meaning, Result,
};
use glam::{DAffine3, DMat3, DVec3};

use view::DataHints;

use crate::Bounds;

/// Most blocks of one level in one view: the number that fits beside the level in a 64-bit number.
const MAX_BLOCKS: u64 = 1 << 56;
/// Most blocks of the coarsest level of a view: it is always wanted, so all of its blocks may be listed. As
/// many as a volume of 64 voxels a side has if every voxel is a block of its own.
const MAX_COARSEST_BLOCKS: u64 = 1 << 18;

/// Longest side of a block, voxels: positions within a block are `f32`.
pub(crate) const MAX_BLOCK_SIDE: u64 = 1 << 21;

/// One resolution of a [`VolumeView`].
#[derive(Clone, Debug, PartialEq)]
pub struct ViewLevel {
    /// Its number in the array's description.
    pub number: u8,
    /// Method by which it was computed.
    pub origin: LevelOrigin,
    /// Voxels `[z, y, x]`.
    pub shape: [u64; 3],
    /// Block size `[z, y, x]`, voxels.
    pub block: [u64; 3],
    /// Blocks `[z, y, x]`.
    pub grid: [u64; 3],
    /// Voxels of level 0 per voxel, `(x, y, z)`.
    pub factor: DVec3,
    /// Voxel position in this level = `scale * volume position + shift`, per axis `(x, y, z)`.
    pub(crate) scale: DVec3,
    pub(crate) shift: DVec3,
    inverse_scale: DVec3,
    /// Position of this view in the array's block grid; the entries of spatial axes are 0.
    grid_origin: Vec<u64>,
    array_grid: Vec<u64>,
    array_shape: Vec<u64>,
    array_block: Vec<u64>,
    /// Offset of the view in its block along the non-spatial axes.
    pub(crate) offset_in_block: Vec<usize>,
}

/// An array seen as a volume; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeView {
    /// Levels, finest first; of two with the same resolution, a sampled one (or one of corners) comes last.
    pub levels: Vec<ViewLevel>,
    /// Type as which stored elements are interpreted; see [`Decoding::meant`].
    pub dtype: DType,
    /// Conversion of stored values to physical values.
    pub decoding: Decoding,
    /// Intensities are interpolated, labels are not.
    pub meaning: Meaning,
    /// Facts that tell the kind of data.
    pub hints: DataHints,
    /// Map from volume positions to world positions.
    pub world_from_volume: DAffine3,
    /// Position along the non-spatial axes; 0 on spatial ones.
    pub position: Vec<u64>,
    /// True if rows run downward, as those of images do: see [`crate::first_camera`].
    pub(crate) has_image_rows: bool,
    /// True if world space is that of a person: x to the right, y to the front, z upward.
    pub(crate) is_anatomical: bool,
    dataset: DatasetId,
    generation: Generation,
    array: u32,
    /// The array's axes that are z, y, x.
    pub(crate) axes: [Option<usize>; 3],
}

impl VolumeView {
    /// Creates the view of the array numbered `array` as a volume. `position` has one entry per axis (those
    /// of spatial axes are ignored) or none at all, which means 0 everywhere. Absent spatial axes are one
    /// voxel thick; an array without any takes its last three axes as z, y, x.
    ///
    /// # Errors
    /// `NotFound` if there is no such array; `Invalid` if the position lies outside; `Corrupt` if a
    /// level's map to world space cannot be inverted; `Unsupported` beyond 2^56 blocks, or beyond 2^18 of the
    /// coarsest level.
    pub fn new(dataset: &Dataset, array: u32, position: &[u64]) -> Result<Self> {
        let info = dataset.array(array)?;
        info.check()?;
        let Decoding { scale, offset, .. } = info.decoding;
        if !(scale.is_finite() && offset.is_finite() && scale != 0.0) {
            return Err(Error::corrupt(format!(
                "expected a finite decoding, found scale {scale}, offset {offset}"
            )));
        }
        let axes = space_axes(info);
        let side = |l: &Level| axes.iter().flatten().map(|&a| l.block[a].min(l.shape[a])).max().unwrap_or(1);
        if let Some(long) = info.levels.iter().map(side).find(|&n| n > MAX_BLOCK_SIDE) {
            return Err(Error::unsupported(format!(
                "expected blocks of at most {MAX_BLOCK_SIDE} voxels a side, found {long}"
            )));
        }
        let position = checked_position(info, &axes, position)?;
        let world_from_volume = world_map(info, &axes)?;
        if let Some(empty) = info.levels.iter().find(|l| l.shape.contains(&0)) {
            return Err(Error::invalid(format!(
                "expected levels with elements, found shape {:?}",
                empty.shape
            )));
        }
        let mut levels = info
            .levels
            .iter()
            .enumerate()
            .map(|(number, level)| ViewLevel::new(number, level, info, &axes, &position, world_from_volume))
            .collect::<Result<Vec<_>>>()?;
        levels.sort_by(|a, b| {
            let sampled = |l: &ViewLevel| l.origin.is_quick_look();
            a.coarseness().total_cmp(&b.coarseness()).then(sampled(a).cmp(&sampled(b)))
        });
        let most = levels.last().map_or(0, |l| l.grid.iter().product());
        if most > MAX_COARSEST_BLOCKS {
            return Err(Error::unsupported(format!(
                "array `{}`: expected a coarsest level of at most {MAX_COARSEST_BLOCKS} blocks, found {most}",
                info.name
            )));
        }
        Ok(Self {
            levels,
            dtype: info.decoding.meant(info.dtype),
            decoding: info.decoding.clone(),
            meaning: info.meaning,
            hints: DataHints::of(dataset, info),
            world_from_volume,
            position,
            has_image_rows: has_image_rows(dataset, info),
            is_anatomical: info.is_anatomical(),
            dataset: dataset.id,
            generation: dataset.generation,
            array,
            axes,
        })
    }

    /// Returns this view with its values taken for labels. Levels of means are left out, because the mean of two
    /// labels is another one.
    #[must_use]
    pub fn as_labels(mut self) -> Self {
        if self.meaning != Meaning::Labels {
            self.levels.retain(|level| level.origin != LevelOrigin::Mean);
            self.meaning = Meaning::Labels;
            self.hints = DataHints::of_meaning(Meaning::Labels);
        }
        self
    }

    /// Returns the box around the volume in world space.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        let (low, high) = self.volume_box();
        let mut min = DVec3::INFINITY;
        let mut max = DVec3::NEG_INFINITY;
        for corner in 0..8u32 {
            let pick = |axis: usize| if corner >> axis & 1 == 0 { low[axis] } else { high[axis] };
            let world = self.world_from_volume.transform_point3(DVec3::new(pick(0), pick(1), pick(2)));
            min = min.min(world);
            max = max.max(world);
        }
        Bounds { min: min.into(), max: max.into() }
    }

    /// Returns the index of a level in [`VolumeView::levels`] by its number in the array's description.
    ///
    /// # Errors
    /// `Invalid` if there is no such level.
    pub fn level_index_of(&self, number: u8) -> Result<usize> {
        self.levels.iter().position(|l| l.number == number).ok_or_else(|| {
            Error::invalid(format!("expected a level below {}, found {number}", self.levels.len()))
        })
    }

    /// Returns the smallest distance of neighboring voxels at this level, world units; axes of one voxel do
    /// not count.
    #[must_use]
    pub fn spacing_world(&self, level_index: usize) -> f64 {
        let per_axis = self.axis_spacing_world(level_index);
        let thick = self.thick_axes();
        let smallest = (0..3).filter(|&a| thick[a]).map(|a| per_axis[a]).fold(f64::INFINITY, f64::min);
        if smallest.is_finite() { smallest } else { per_axis.min_element() }
    }

    /// Returns the distance of samples for a picture whose finest blocks are of this level, world units: the
    /// smallest voxel spacing times `multiple`. Bounded from below, so that a ray along a much longer spacing
    /// does not take hundreds of samples per voxel.
    #[must_use]
    pub fn step_world(&self, level_index: usize, multiple: f64) -> f64 {
        const MOST_PER_VOXEL_SIDE: f64 = 4.0;
        let (low, high) = self.volume_box();
        let edges_world = self.axis_spacing_world(0) * (high - low);
        let shape = xyz(self.levels[level_index].shape);
        let shortest = edges_world.length() / (MOST_PER_VOXEL_SIDE * (shape.x + shape.y + shape.z));
        (self.spacing_world(level_index) * multiple).max(shortest)
    }

    /// Returns the key of the block at `[z, y, x]` of the grid of a level.
    #[must_use]
    pub fn key(&self, level_index: usize, at: [u64; 3]) -> BlockKey {
        let level = &self.levels[level_index];
        let mut place = level.grid_origin.clone();
        for (axis, &p) in self.axes.iter().zip(&at) {
            if let Some(axis) = *axis {
                place[axis] = p;
            }
        }
        let index = level.array_grid.iter().zip(&place).fold(0, |n, (&g, &p)| n * g + p);
        BlockKey {
            dataset: self.dataset,
            generation: self.generation,
            array: self.array,
            level: level.number,
            index,
        }
    }

    /// Returns the level index of a block and its position `[z, y, x]` in the grid; `None` if it is not part
    /// of this view.
    #[must_use]
    pub fn locate(&self, key: &BlockKey) -> Option<(usize, [u64; 3])> {
        if (key.dataset, key.generation, key.array) != (self.dataset, self.generation, self.array) {
            return None;
        }
        let level_index = self.levels.iter().position(|l| l.number == key.level)?;
        let level = &self.levels[level_index];
        let mut rest = key.index;
        let mut place = level.grid_origin.clone();
        for axis in (0..place.len()).rev() {
            let at = rest % level.array_grid[axis].max(1);
            rest /= level.array_grid[axis].max(1);
            if self.axes.contains(&Some(axis)) {
                place[axis] = at;
            } else if at != place[axis] {
                return None;
            }
        }
        (rest == 0).then(|| (level_index, self.axes.map(|a| a.map_or(0, |a| place[a]))))
    }

    /// Returns the volume's box in volume space: half a voxel around the outermost centers.
    pub(crate) fn volume_box(&self) -> (DVec3, DVec3) {
        (DVec3::splat(-0.5), xyz(self.levels[0].shape) - 0.5)
    }

    /// Returns the world length of one voxel of a level along x, y, z.
    pub(crate) fn axis_spacing_world(&self, level_index: usize) -> DVec3 {
        let m = self.world_from_volume.matrix3;
        DVec3::new(m.x_axis.length(), m.y_axis.length(), m.z_axis.length()) / self.levels[level_index].scale
    }

    /// Returns which of x, y, z have more than one voxel at level 0.
    pub(crate) fn thick_axes(&self) -> [bool; 3] {
        let [z, y, x] = self.levels[0].shape;
        [x > 1, y > 1, z > 1]
    }
}

impl ViewLevel {
    fn new(
        number: usize,
        level: &Level,
        info: &ArrayInfo,
        axes: &[Option<usize>; 3],
        position: &[u64],
        world_from_volume: DAffine3,
    ) -> Result<Self> {
        let space = |values: &[u64]| axes.map(|a| a.map_or(1, |a| values[a]));
        let array_grid = level.grid();
        let grid = space(&array_grid);
        if grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g)).is_none_or(|n| n >= MAX_BLOCKS) {
            return Err(Error::unsupported(format!(
                "expected fewer than 2^56 blocks, found a grid of {grid:?}"
            )));
        }
        let place = place_in_level(level, axes, position);
        let grid_origin = place.iter().zip(&level.block).map(|(p, b)| p / b).collect();
        let in_block = place.iter().zip(&level.block).map(|(p, b)| usize::try_from(p % b));
        let offset_in_block = in_block
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| Error::unsupported("expected blocks that fit memory"))?;
        let [fz, fy, fx] = axes.map(|a| a.map_or(1.0, |a| level.factor[a]));
        let factor = DVec3::new(fx, fy, fz);
        if !(factor.is_finite() && factor.min_element() > 0.0) {
            return Err(Error::corrupt(format!("level {number}: expected positive factors, found {factor}")));
        }
        let aligned = if has_space(info) {
            aligned_map(&level.world_from_voxel, axes, world_from_volume)
        } else {
            None
        };
        // Without a usable map of its own, a level is placed by its downsampling factors.
        let (scale, shift) = aligned.unwrap_or((factor.recip(), (factor.recip() - 1.0) * 0.5));
        Ok(Self {
            number: u8::try_from(number).map_err(|_| Error::unsupported("expected at most 64 levels"))?,
            origin: level.origin,
            shape: space(&level.shape),
            block: space(&level.block),
            grid,
            factor,
            scale,
            shift,
            inverse_scale: scale.recip(),
            grid_origin,
            array_grid,
            array_shape: level.shape.clone(),
            array_block: level.block.clone(),
            offset_in_block,
        })
    }

    /// Returns the shape in elements of the array's block at a position of the view's grid, clipped to the
    /// level.
    pub(crate) fn array_block_shape(&self, axes: &[Option<usize>; 3], at: [u64; 3]) -> Vec<usize> {
        let mut place = self.grid_origin.clone();
        for (axis, &p) in axes.iter().zip(&at) {
            if let Some(axis) = *axis {
                place[axis] = p;
            }
        }
        (0..place.len())
            .map(|a| {
                let count = self.array_block[a]
                    .min(self.array_shape[a].saturating_sub(place[a] * self.array_block[a]));
                usize::try_from(count).unwrap_or(usize::MAX)
            })
            .collect()
    }

    /// Returns the bytes of all blocks of this level in this view, as stored, saturating.
    #[must_use]
    pub fn size_bytes(&self, dtype: DType) -> u64 {
        self.shape.iter().fold(dtype.size_bytes() as u64, |n, &v| n.saturating_mul(v))
    }

    /// Returns the index of a block in the order of the grid.
    pub(crate) fn linear(&self, at: [u64; 3]) -> u64 {
        (at[0] * self.grid[1] + at[1]) * self.grid[2] + at[2]
    }

    /// Returns the shape in voxels `[z, y, x]` of the block at a position in the grid, clipped to the level.
    pub(crate) fn block_shape(&self, at: [u64; 3]) -> [usize; 3] {
        [0, 1, 2].map(|a| {
            let count = self.block[a].min(self.shape[a].saturating_sub(at[a] * self.block[a]));
            usize::try_from(count).unwrap_or(usize::MAX)
        })
    }

    /// Converts a volume position to this level's voxels.
    pub(crate) fn voxel_from_volume(&self, p: DVec3) -> DVec3 {
        p * self.scale + self.shift
    }

    /// Returns the block that holds a volume position, and the position in that block's voxels `(x, y, z)`.
    /// For positions beyond the outermost voxels it is the outermost block, and the position lies outside it.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "clamped"
    )]
    pub(crate) fn place_of(&self, volume: DVec3) -> ([u64; 3], DVec3) {
        let voxel = self.voxel_from_volume(volume);
        let [nz, ny, nx] = self.shape.map(|n| (n - 1) as f64);
        let [bz, by, bx] = self.block.map(|n| n as f64);
        let block = voxel.clamp(DVec3::ZERO, DVec3::new(nx, ny, nz)) / DVec3::new(bx, by, bz);
        let at = [block.z as u64, block.y as u64, block.x as u64];
        let start = DVec3::new(at[2] as f64 * bx, at[1] as f64 * by, at[0] as f64 * bz);
        (at, voxel - start)
    }

    /// Returns scale and shift `(x, y, z)` from volume positions to a block's voxels.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "voxel indices stay below 2^53")]
    pub(crate) fn local_map(&self, at: [u64; 3]) -> (DVec3, DVec3) {
        let start = [2, 1, 0].map(|a| (at[a] * self.block[a]) as f64);
        (self.scale, self.shift - DVec3::from_array(start))
    }

    /// Converts a volume position to a block's voxels.
    #[inline]
    pub(crate) fn local(&self, at: [u64; 3], volume: DVec3) -> DVec3 {
        let (scale, shift) = self.local_map(at);
        volume * scale + shift
    }

    /// Returns the box in volume space that a block is drawn in: from its first voxel to the next block's,
    /// and to infinity at the volume's ends.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "voxel indices stay below 2^53")]
    pub(crate) fn block_box(&self, at: [u64; 3]) -> (DVec3, DVec3) {
        let (mut low, mut high) = (DVec3::NEG_INFINITY, DVec3::INFINITY);
        for (axis, zyx) in [2, 1, 0].into_iter().enumerate() {
            let start = at[zyx] * self.block[zyx];
            if at[zyx] > 0 {
                low[axis] = (start as f64 - self.shift[axis]) * self.inverse_scale[axis];
            }
            if at[zyx] + 1 < self.grid[zyx] {
                high[axis] = ((start + self.block[zyx]) as f64 - self.shift[axis]) * self.inverse_scale[axis];
            }
        }
        (low, high)
    }

    /// One voxel in volume space.
    pub(crate) fn voxel_size(&self) -> DVec3 {
        self.inverse_scale.abs()
    }

    /// Returns the geometric mean of voxels spanned per axis, by which levels are ordered.
    fn coarseness(&self) -> f64 {
        self.factor.x * self.factor.y * self.factor.z
    }
}

/// Returns the position in a level of a position of level 0, on the non-spatial axes; 0 on spatial ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "indices below 2^53"
)]
fn place_in_level(level: &Level, axes: &[Option<usize>; 3], position: &[u64]) -> Vec<u64> {
    let place = |axis: usize| {
        let at = position[axis] as f64 / level.factor[axis].max(1.0);
        (at as u64).min(level.shape[axis].saturating_sub(1))
    };
    (0..position.len()).map(|axis| if axes.contains(&Some(axis)) { 0 } else { place(axis) }).collect()
}

/// Converts `[z, y, x]` to `(x, y, z)`.
#[expect(clippy::cast_precision_loss, reason = "voxel counts stay below 2^53")]
pub(crate) fn xyz(zyx: [u64; 3]) -> DVec3 {
    DVec3::new(zyx[2] as f64, zyx[1] as f64, zyx[0] as f64)
}

fn has_space(info: &ArrayInfo) -> bool {
    info.spatial_axes().iter().any(Option::is_some)
}

/// Returns whether rows run downward and slices away from the viewer. They do unless the file places them: by
/// coordinates of its axes, by an affine map that turns or mirrors, or by axes named as those of maps of the
/// Earth are. Coordinates of microscopy images (OME-Zarr) give the spacing of rows only, so rows still run
/// downward.
fn has_image_rows(dataset: &Dataset, info: &ArrayInfo) -> bool {
    const NORTHWARDS: [&str; 10] =
        ["lat", "latitude", "rlat", "nlat", "south_north", "north", "northing", "nj", "j", "yc"];
    let is_placed = |axis: &array::Axis| axis.kind.is_spatial() && axis.coordinates != Coordinates::Index;
    let is_northwards = |axis: &array::Axis| NORTHWARDS.contains(&axis.name.to_ascii_lowercase().as_str());
    let is_microscopy = dataset.format.starts_with("OME");
    if info.axes.iter().any(|axis| (is_placed(axis) && !is_microscopy) || is_northwards(axis))
        || info.attributes.contains_key("coordinates")
    {
        return false;
    }
    let map = info.levels[0].world_from_voxel.0;
    !has_space(info)
        || (0..3).all(|row| (0..3).all(|c| if row == c { map[row][c] >= 0.0 } else { map[row][c] == 0.0 }))
}

fn space_axes(info: &ArrayInfo) -> [Option<usize>; 3] {
    if has_space(info) {
        return info.spatial_axes();
    }
    let n = info.axes.len();
    [3, 2, 1].map(|back| n.checked_sub(back))
}

fn checked_position(info: &ArrayInfo, axes: &[Option<usize>; 3], position: &[u64]) -> Result<Vec<u64>> {
    let shape = info.shape();
    if !position.is_empty() && position.len() != shape.len() {
        return Err(Error::invalid(format!(
            "expected a position of {} entries in array `{}`, found {}",
            shape.len(),
            info.name,
            position.len()
        )));
    }
    let mut checked = vec![0; shape.len()];
    for (axis, &at) in position.iter().enumerate().filter(|(axis, _)| !axes.contains(&Some(*axis))) {
        if at >= shape[axis] {
            return Err(Error::invalid(format!(
                "expected an index below {} on axis `{}`, found {at}",
                shape[axis], info.axes[axis].name
            )));
        }
        checked[axis] = at;
    }
    Ok(checked)
}

pub(crate) fn to_glam(map: &Affine) -> DAffine3 {
    let m = map.0;
    let column = |c: usize| DVec3::new(m[0][c], m[1][c], m[2][c]);
    DAffine3 { matrix3: DMat3::from_cols(column(0), column(1), column(2)), translation: column(3) }
}

/// Returns the map from volume to world. An axis of one voxel gets the smallest spacing of the others as its
/// thickness, so that a plane stays thin in any units.
fn world_map(info: &ArrayInfo, axes: &[Option<usize>; 3]) -> Result<DAffine3> {
    let level = &info.levels[0];
    let mut map = if has_space(info) { to_glam(&level.world_from_voxel) } else { DAffine3::IDENTITY };
    thicken(&mut map, axes.map(|a| a.map_or(1, |a| level.shape[a])));
    let determinant = map.matrix3.determinant();
    let scale = map.matrix3.x_axis.length() * map.matrix3.y_axis.length() * map.matrix3.z_axis.length();
    let invertible = map.is_finite() && determinant.abs() > 1e-9 * scale;
    if !invertible {
        return Err(Error::corrupt(format!(
            "array `{}`: expected an invertible map to world space, found {:?}",
            info.name, level.world_from_voxel.0
        )));
    }
    Ok(map)
}

fn thicken(map: &mut DAffine3, shape: [u64; 3]) {
    let [z, y, x] = shape;
    let thin = [x == 1, y == 1, z == 1];
    let spacing =
        (0..3).filter(|&a| !thin[a]).map(|a| map.matrix3.col(a).length()).fold(f64::INFINITY, f64::min);
    if !spacing.is_finite() {
        return;
    }
    for axis in (0..3).filter(|&a| thin[a]) {
        let (b, c) = (map.matrix3.col((axis + 1) % 3), map.matrix3.col((axis + 2) % 3));
        let along = map.matrix3.col(axis).try_normalize().or_else(|| b.cross(c).try_normalize());
        if let Some(along) = along {
            *map.matrix3.col_mut(axis) = along * spacing;
        }
    }
}

/// Returns scale and shift per axis from volume to a level's voxels; `None` if the level's map is not a
/// scaled and shifted form of level 0's.
fn aligned_map(
    level: &Affine,
    axes: &[Option<usize>; 3],
    world_from_volume: DAffine3,
) -> Option<(DVec3, DVec3)> {
    let relative = world_from_volume.inverse() * to_glam(level);
    let (mut scale, mut shift) = (DVec3::ONE, DVec3::ZERO);
    for (axis, present) in [axes[2], axes[1], axes[0]].into_iter().enumerate() {
        let column = relative.matrix3.col(axis);
        if present.is_none() {
            continue;
        }
        let off_axis = (column - DVec3::AXES[axis] * column[axis]).abs().max_element();
        if !(column[axis] > 1e-6 && off_axis <= 1e-4 * column[axis]) {
            return None;
        }
        scale[axis] = column[axis].recip();
        shift[axis] = -relative.translation[axis] * scale[axis];
    }
    (scale.is_finite() && shift.is_finite()).then_some((scale, shift))
}

#[cfg(test)]
pub(crate) mod tests {
    use array::{Axis, AxisKind, Coordinates};

    use super::*;

    /// Returns a data set of one array with the given axes and levels.
    pub(crate) fn dataset(kinds: &[AxisKind], dtype: DType, levels: Vec<Level>) -> Dataset {
        let axes = kinds
            .iter()
            .map(|&kind| Axis {
                name: format!("{kind:?}"),
                kind,
                units: String::new(),
                coordinates: Coordinates::Index,
            })
            .collect();
        let info = ArrayInfo {
            name: "field".into(),
            dtype,
            axes,
            units: String::new(),
            attributes: std::collections::BTreeMap::new(),
            decoding: Decoding::identity(dtype),
            meaning: Meaning::Intensity,
            levels,
            world_units: String::new(),
            notes: Vec::new(),
            storage: array::Storage::default(),
        };
        Dataset {
            id: DatasetId(7),
            generation: Generation(0),
            name: "test".into(),
            format: "test".into(),
            arrays: vec![info],
            attributes: std::collections::BTreeMap::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        }
    }

    pub(crate) const ZYX: [AxisKind; 3] = [AxisKind::Z, AxisKind::Y, AxisKind::X];

    fn level(shape: &[u64], block: &[u64], factor: &[f64], map: Affine) -> Level {
        Level {
            shape: shape.to_vec(),
            block: block.to_vec(),
            chunk: None,
            origin: LevelOrigin::Stored,
            factor: factor.to_vec(),
            world_from_voxel: map,
        }
    }

    #[test]
    fn keys_and_places_correspond_on_every_block() {
        let kinds = [AxisKind::Time, AxisKind::Y, AxisKind::Channel, AxisKind::X];
        let map = Affine::from_spacing([2.0, 3.0, 0.0], [0.0; 3]);
        let data = dataset(
            &kinds,
            "|u1".parse().unwrap(),
            vec![level(&[6, 10, 5, 9], &[2, 4, 1, 3], &[1.0; 4], map)],
        );
        let view = VolumeView::new(&data, 0, &[3, 0, 4, 0]).unwrap();
        assert_eq!(view.levels[0].shape, [1, 10, 9]);
        let mut found = 0;
        for index in 0..data.arrays[0].levels[0].block_count() {
            let key = BlockKey { index, ..view.key(0, [0, 0, 0]) };
            if let Some((level_index, at)) = view.locate(&key) {
                assert_eq!(view.key(level_index, at), key);
                let place = data.arrays[0].levels[0].grid_position(index).unwrap();
                assert_eq!((place[0], place[2]), (1, 4));
                assert_eq!(at, [0, place[1], place[3]]);
                found += 1;
            }
        }
        assert_eq!(found, 9);
        assert!((view.spacing_world(0) - 2.0).abs() < 1e-12, "the missing axis does not count");
    }

    #[test]
    fn coarser_levels_lie_where_their_maps_say() {
        let map = Affine([[0.0, -2.0, 0.1, 5.0], [1.0, 0.0, 0.2, 6.0], [0.0, 0.0, 3.0, 7.0]]);
        let levels = vec![
            level(&[8, 9, 10], &[4, 4, 4], &[1.0; 3], map),
            level(&[4, 5, 5], &[4, 4, 4], &[2.0; 3], map.coarsened([2.0; 3], [0.5; 3])),
        ];
        let view = VolumeView::new(&dataset(&ZYX, "<f4".parse().unwrap(), levels), 0, &[]).unwrap();
        let p = view.levels[1].voxel_from_volume(DVec3::new(0.5, 2.5, 4.5));
        assert!(p.abs_diff_eq(DVec3::new(0.0, 1.0, 2.0), 1e-9), "{p}");
        assert!(view.level_index_of(1).unwrap() == 1 && view.level_index_of(2).is_err());
    }

    #[test]
    fn sampled_levels_stand_behind_means_of_the_same_resolution() {
        let mut levels = vec![
            level(&[8; 3], &[8; 3], &[1.0; 3], Affine::IDENTITY),
            level(&[4; 3], &[8; 3], &[2.0; 3], Affine::IDENTITY.coarsened([2.0; 3], [0.0; 3])),
            level(&[2; 3], &[8; 3], &[4.0; 3], Affine::IDENTITY.coarsened([4.0; 3], [1.5; 3])),
            level(&[4; 3], &[8; 3], &[2.0; 3], Affine::IDENTITY.coarsened([2.0; 3], [0.5; 3])),
        ];
        levels[1].origin = LevelOrigin::Sampled;
        let view = VolumeView::new(&dataset(&ZYX, "|u1".parse().unwrap(), levels), 0, &[]).unwrap();
        let numbers: Vec<u8> = view.levels.iter().map(|l| l.number).collect();
        assert_eq!(numbers, [0, 3, 1, 2]);
    }

    #[test]
    fn arrays_without_spatial_axes_take_their_last_three() {
        let levels =
            vec![level(&[2, 3, 4, 5], &[1, 3, 4, 5], &[1.0; 4], Affine::from_spacing([0.0; 3], [0.0; 3]))];
        let view = VolumeView::new(
            &dataset(&[AxisKind::Other; 4], "|u1".parse().unwrap(), levels),
            0,
            &[1, 0, 0, 0],
        );
        assert_eq!(view.unwrap().levels[0].shape, [3, 4, 5]);
    }

    #[test]
    fn steps_are_bounded_where_spacings_differ_wildly() {
        let view = |spacing| {
            let map = Affine::from_spacing(spacing, [0.0; 3]);
            let levels = vec![level(&[40, 100, 100], &[8; 3], &[1.0; 3], map)];
            VolumeView::new(&dataset(&ZYX, "|u1".parse().unwrap(), levels), 0, &[]).unwrap()
        };
        assert!((view([0.5, 1.0, 3.0]).step_world(0, 1.0) - 0.5).abs() < 1e-12);
        let degrees_and_meters = view([0.25, 0.25, 1000.0]).step_world(0, 1.0);
        assert!((40_000.0 / degrees_and_meters - 960.0).abs() < 1.0, "{degrees_and_meters}");
    }

    #[test]
    fn impossible_views_are_refused() {
        let singular = Affine([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);
        let data = |shape: [u64; 3], map| {
            dataset(&ZYX, "|u1".parse().unwrap(), vec![level(&shape, &[4; 3], &[1.0; 3], map)])
        };
        assert!(VolumeView::new(&data([8; 3], singular), 0, &[]).is_err());
        assert!(VolumeView::new(&data([0, 8, 8], Affine::IDENTITY), 0, &[]).is_err());
        assert!(VolumeView::new(&data([8; 3], Affine::IDENTITY), 1, &[]).is_err());
        assert!(VolumeView::new(&data([8; 3], Affine::IDENTITY), 0, &[0, 0]).is_err());
    }
}
