//! Plan of regridding: the arrays that are drawn on even grids, and the maps to the source.

use std::collections::HashMap;
use std::sync::Arc;

use array::{
    Affine, ArrayInfo, AxisKind, Coordinates, DType, Dataset, DatasetId, Decoding, ElementType, Error,
    Meaning, Result, Scalar, Source, choose_blocks, kind_of_degrees,
};

use super::colors::PackedColors;
use super::coordinates::{ArrayNames, Curvilinear, values};
use super::even_axis::{Coarsening, EvenAxis, coarse_count};
use super::gather::{AxisIndices, GridPixels, MissingElement, WiderInteger};
use super::lat_lon_grid::{CellCenters, LatLonGrid, MAX_CELLS, NO_CELL};

/// Most cells of all curvilinear grids of a data set together: a map takes four bytes per cell.
const MAX_CELLS_TOGETHER: u64 = 4 * MAX_CELLS;
/// Part of the identity of a data set on even grids; changed whenever the same source gives other voxels.
const IDENTITY: &str = "on even grids 1";
/// Beginning of the note on a curvilinear array that is not drawn by its coordinates; the reason follows.
const BY_INDEX: &str = "curvilinear grid, drawn in index space";

/// Description with arrays on even grids, and the origin of each.
pub(super) struct RegridPlan {
    /// Description by the source.
    pub(super) source: Arc<Dataset>,
    /// Description on even grids, with notes on how arrays are drawn.
    pub(super) dataset: Arc<Dataset>,
    /// Even grid of each array of the source; `None` if it is unchanged.
    pub(super) grids: Vec<Option<EvenGrid>>,
    /// Color arrays, which follow the arrays of the source.
    pub(super) colors: Vec<PackedColors>,
}

/// Origin of the blocks of an array.
pub(super) enum RegridBlockOrigin<'a> {
    /// Unchanged blocks of the source.
    AsIs,
    /// Blocks of an even grid.
    Even(&'a EvenGrid),
    /// Blocks of packed colors.
    PackedColors(&'a PackedColors),
}

/// Map from an array's even grid to the source.
pub(super) struct EvenGrid {
    /// Maps by level.
    pub(super) levels: Vec<LevelGrid>,
    /// Element outside all cells; `None` if there is no outside.
    pub(super) missing: Option<MissingElement>,
}

/// Map of one level to the source.
pub(super) struct LevelGrid {
    /// Source indices per axis; `None` if they are those of the even level.
    axes: Vec<Option<Arc<[u32]>>>,
    /// Map of latitude and longitude.
    pixels: Option<LevelPixels>,
}

struct LevelPixels {
    axes: [usize; 2],
    columns: usize,
    source_columns: u32,
    cells: Arc<[u32]>,
}

impl LevelGrid {
    pub(super) fn indices(&self) -> Vec<AxisIndices<'_>> {
        self.axes.iter().map(Option::as_deref).collect()
    }

    /// Returns the middle of the voxels that take a source index along an axis, or of those beside it if none
    /// does; interpolates between whole indices. Returns `None` for unchanged axes and those of curvilinear
    /// grids.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^18 voxels")]
    pub(super) fn voxel_of(&self, axis: usize, index: f64) -> Option<f64> {
        let indices = self.axes.get(axis)?.as_deref()?;
        let middle = |index: f64| {
            let first = indices.partition_point(|&found| f64::from(found) < index);
            let end = indices.partition_point(|&found| f64::from(found) <= index);
            (0.5 * (first + end) as f64 - 0.5).clamp(0.0, (indices.len() - 1) as f64)
        };
        let (low, high) = (middle(index.floor()), middle(index.ceil()));
        Some(low + (high - low) * (index - index.floor()))
    }

    pub(super) fn pixels(&self) -> Option<GridPixels<'_>> {
        self.pixels.as_ref().map(|pixels| GridPixels {
            axes: pixels.axes,
            columns: pixels.columns,
            source_columns: pixels.source_columns,
            cells: &pixels.cells,
        })
    }
}

/// Results that are reused, so that nothing is read or computed twice.
#[derive(Default)]
struct RegridCache {
    bounds: HashMap<u32, Option<Arc<[[f64; 2]]>>>,
    lat_lon_grids: HashMap<[u32; 2], std::result::Result<Arc<LatLonGrid>, String>>,
    cells: u64,
    axes: Vec<Arc<EvenAxis>>,
    maps: Vec<(IndexMapKey, Arc<[u32]>)>,
}

/// Key of a map: the axis or grid, by address, which is stable while it is cached, and its level.
#[derive(Clone, PartialEq)]
struct IndexMapKey {
    of: usize,
    factors: [f64; 2],
    coarsenings: [Coarsening; 2],
}

impl RegridPlan {
    /// Reads coordinates and makes the grids.
    pub(super) async fn of(source: &dyn Source, described: Arc<Dataset>) -> Self {
        let names = ArrayNames::of(&described);
        let mut cache = RegridCache::default();
        let (mut arrays, mut grids) = (Vec::with_capacity(described.arrays.len()), Vec::new());
        for array in &described.arrays {
            let mut info = array.clone();
            let shape = GridShape::of(source, &described, &names, array, &mut cache, &mut info.notes).await;
            let grid = shape.and_then(|shape| shape.applied(&mut info, &mut cache));
            arrays.push(info);
            grids.push(grid);
        }
        drop(names);
        let mut colors = Vec::new();
        for (number, _) in (0..).zip(&grids).filter(|(_, grid)| grid.is_none()) {
            match PackedColors::of(&described, number) {
                Ok(None) => {}
                Ok(Some((info, own))) => {
                    arrays.push(info);
                    colors.push(own);
                }
                Err(why) => {
                    arrays[number as usize].notes.push(format!("its colors are not drawn: {why}"));
                }
            }
        }
        let mut plan = Self { dataset: Arc::clone(&described), source: described, grids, colors };
        if arrays != plan.source.arrays {
            let own = || DatasetId::of([IDENTITY.as_bytes(), &plan.source.id.0.to_le_bytes()]);
            let id = if plan.is_plain() { plan.source.id } else { own() };
            plan.dataset = Arc::new(Dataset { id, arrays, ..Dataset::clone(&plan.source) });
        }
        plan
    }

    /// Returns true if all blocks are the source's.
    pub(super) fn is_plain(&self) -> bool {
        self.colors.is_empty() && self.grids.iter().all(Option::is_none)
    }

    /// Returns the origin of an array's blocks.
    pub(super) fn block_origin(&self, number: u32) -> RegridBlockOrigin<'_> {
        let number = number as usize;
        if let Some(colors) = number.checked_sub(self.grids.len()).and_then(|place| self.colors.get(place)) {
            return RegridBlockOrigin::PackedColors(colors);
        }
        self.grids
            .get(number)
            .and_then(Option::as_ref)
            .map_or(RegridBlockOrigin::AsIs, RegridBlockOrigin::Even)
    }
}

/// Even axes of an array.
struct GridShape {
    /// Even axis per axis of the array, and whether it is to scale with the world.
    axes: Vec<Option<(Arc<EvenAxis>, bool)>>,
    lat_lon_grid: Option<(Curvilinear, Arc<LatLonGrid>, [String; 2])>,
}

impl GridShape {
    /// Returns `None` if the array stays unchanged. Adds `notes` on how it is drawn.
    async fn of(
        source: &dyn Source,
        dataset: &Dataset,
        names: &ArrayNames<'_>,
        array: &ArrayInfo,
        cache: &mut RegridCache,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        if array.meaning == Meaning::Text || array.shape().contains(&0) || !is_aligned(array) {
            return None;
        }
        let lat_lon_grid = match names.curvilinear(array) {
            None => None,
            Some(places) => match cache.lat_lon_grid(source, dataset, places).await {
                Ok(lat_lon_grid) => {
                    let name = |number: u32| {
                        dataset.array(number).map_or_else(|_| String::new(), |a| last_part(&a.name))
                    };
                    let own = [name(places.latitude), name(places.longitude)];
                    notes.push(lat_lon_note(&lat_lon_grid));
                    Some((places, lat_lon_grid, own))
                }
                Err(reason) => {
                    notes.push(format!("{BY_INDEX}: {reason}"));
                    None
                }
            },
        };
        let mut axes = vec![None; array.axes.len()];
        for (number, axis) in array.axes.iter().enumerate() {
            let Coordinates::Explicit(samples) = &axis.coordinates else { continue };
            let is_in_lat_lon_grid =
                lat_lon_grid.as_ref().is_some_and(|(places, ..)| places.axes.contains(&number));
            if !axis.kind.is_spatial() || samples.len() < 2 || is_in_lat_lon_grid {
                continue;
            }
            let about = format!("axis `{}` is ", axis.name);
            notes.retain(|note| !note.starts_with(&about));
            let has_places = fits_the_world(array, number);
            let even = match has_places {
                Err(reason) => Err(reason),
                Ok(_) if samples.len() as u64 != array.shape()[number] => {
                    Err(format!("it has {} coordinates for {} samples", samples.len(), array.shape()[number]))
                }
                Ok(is_to_scale) => {
                    let bounds = match names.bounds(array, number) {
                        Some(bounds) => cache.bounds(source, dataset, bounds).await,
                        None => None,
                    };
                    let even = EvenAxis::new(samples, bounds.as_deref()).map_err(str::to_owned);
                    even.map(|even| (cache.axis(even), is_to_scale && lat_lon_grid.is_none()))
                }
            };
            match even {
                Ok((even, is_to_scale)) => {
                    notes.push(axis_note(&axis.name, samples.len(), &even, is_to_scale));
                    axes[number] = Some((even, is_to_scale));
                }
                Err(reason) => {
                    notes.push(format!("axis `{}` is uneven and drawn evenly: {reason}", axis.name))
                }
            }
        }
        let is_some = lat_lon_grid.is_some() || axes.iter().any(Option::is_some);
        is_some.then_some(Self { axes, lat_lon_grid })
    }

    /// Puts the array on the even grid. If the result would be invalid, returns `None` and only adds a note.
    fn applied(self, info: &mut ArrayInfo, cache: &mut RegridCache) -> Option<EvenGrid> {
        let before = info.clone();
        match self.try_apply(info, cache) {
            Ok(grid) => Some(grid),
            Err(error) => {
                *info = before;
                info.notes.push(format!("drawn evenly: its even grid cannot be made: {error}"));
                None
            }
        }
    }

    fn try_apply(&self, info: &mut ArrayInfo, cache: &mut RegridCache) -> Result<EvenGrid> {
        let source = info.clone();
        let missing = self.lat_lon_grid.is_some().then(|| missing(info));
        let world = self.world(&source);
        let kinds: Vec<AxisKind> = info.axes.iter().map(|axis| axis.kind).collect();
        let mut grids = Vec::with_capacity(info.levels.len());
        for (level, from) in info.levels.iter_mut().zip(&source.levels) {
            if !from.factor.iter().all(|factor| factor.is_finite() && *factor >= 1.0) {
                return Err(Error::corrupt(format!(
                    "expected factors of at least 1, found {:?}",
                    from.factor
                )));
            }
            let coarsenings: Vec<Coarsening> =
                (0..kinds.len()).map(|axis| coarsening(&source, from, axis)).collect();
            let mut grid = LevelGrid { axes: vec![None; kinds.len()], pixels: None };
            for (axis, even) in self.axes.iter().enumerate() {
                let Some((even, _)) = even else { continue };
                let map = cache.axis_map(even, from.factor[axis], coarsenings[axis]);
                level.shape[axis] = map.len() as u64;
                grid.axes[axis] = Some(map);
            }
            if let Some((Curvilinear { axes, .. }, lat_lon_grid, _)) = &self.lat_lon_grid {
                let factors = axes.map(|axis| from.factor[axis]);
                let cells = cache.lat_lon_map(
                    lat_lon_grid,
                    source.shape()[axes[1]],
                    factors,
                    axes.map(|axis| coarsenings[axis]),
                );
                let counts = [
                    coarse_count(lat_lon_grid.rows as u64, factors[0]),
                    coarse_count(lat_lon_grid.columns as u64, factors[1]),
                ];
                axes.iter().zip(counts).for_each(|(&axis, count)| level.shape[axis] = count);
                let columns = usize::try_from(counts[1]).unwrap_or(usize::MAX);
                let source_columns = u32::try_from(from.shape[axes[1]]).unwrap_or(u32::MAX);
                grid.pixels = Some(LevelPixels { axes: *axes, columns, source_columns, cells });
            }
            level.block = choose_blocks(&level.shape, &kinds, info.dtype, None);
            level.chunk = None;
            let [scale, shift] = self.steps(&source, from, &coarsenings);
            level.world_from_voxel = world.coarsened(scale, shift);
            grids.push(grid);
        }
        for (axis, even) in info.axes.iter_mut().zip(&self.axes) {
            if let Some((even, _)) = even {
                axis.coordinates = Coordinates::Regular { origin: even.origin, step: even.step };
            }
        }
        if let Some((Curvilinear { axes, .. }, lat_lon_grid, names)) = &self.lat_lon_grid {
            for (place, units) in ["degrees_north", "degrees_east"].into_iter().enumerate() {
                let axis = &mut info.axes[axes[place]];
                axis.name.clone_from(&names[place]);
                axis.units = units.to_owned();
                axis.coordinates = Coordinates::Regular {
                    origin: lat_lon_grid.origin[place],
                    step: lat_lon_grid.step[place],
                };
            }
            info.world_units = "degrees".to_owned();
        }
        info.check()?;
        Ok(EvenGrid { levels: grids, missing })
    }

    /// Returns the map of level 0: true coordinates for axes that share their units, else the extent of the
    /// source's map.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn world(&self, source: &ArrayInfo) -> Affine {
        let mut world = source.levels[0].world_from_voxel;
        // Without units the source's world consists of horizontal cells; they become those of the new grid.
        let cell = (world.0[0][0] * world.0[1][1]).abs().sqrt();
        let enlarged =
            self.lat_lon_grid.as_ref().map_or(1.0, |(_, lat_lon_grid, _)| lat_lon_grid.cell_side / cell);
        for (place, kind) in [AxisKind::X, AxisKind::Y, AxisKind::Z].into_iter().enumerate() {
            let Some(axis) = source.axes.iter().position(|axis| axis.kind == kind) else { continue };
            let (spacing, origin) = (world.0[place][place] * enlarged, world.0[place][3] * enlarged);
            let (spacing, origin) = match &self.axes[axis] {
                // Depths that grow downward are drawn downward: the height in the picture is minus the depth.
                Some((even, true)) if spacing * even.step < 0.0 => (-even.step, -even.origin),
                Some((even, true)) => (even.step, even.origin),
                Some((even, false)) => {
                    let shorter = spacing * source.shape()[axis] as f64 / even.count as f64;
                    (shorter, origin - 0.5 * spacing + 0.5 * shorter)
                }
                None => (spacing, origin),
            };
            (world.0[place][place], world.0[place][3]) = (spacing, origin);
        }
        if let Some((_, lat_lon_grid, _)) = &self.lat_lon_grid {
            for (place, axis) in [(0, 1), (1, 0)] {
                (world.0[place][place], world.0[place][3]) =
                    (lat_lon_grid.step[axis], lat_lon_grid.origin[axis]);
            }
        }
        world
    }

    /// Returns scale and shift of a level to level 0, in the order x, y, z.
    fn steps(&self, source: &ArrayInfo, level: &array::Level, coarsenings: &[Coarsening]) -> [[f64; 3]; 2] {
        let (mut scale, mut shift) = ([1.0; 3], [0.0; 3]);
        for (place, kind) in [AxisKind::X, AxisKind::Y, AxisKind::Z].into_iter().enumerate() {
            let Some(axis) = source.axes.iter().position(|axis| axis.kind == kind) else { continue };
            let is_in_lat_lon_grid =
                self.lat_lon_grid.as_ref().is_some_and(|(places, ..)| places.axes.contains(&axis));
            (scale[place], shift[place]) = if is_in_lat_lon_grid || self.axes[axis].is_some() {
                (level.factor[axis], 0.5 * (level.factor[axis] - 1.0))
            } else {
                (coarsenings[axis].scale, coarsenings[axis].shift)
            };
        }
        [scale, shift]
    }
}

impl RegridCache {
    async fn bounds(
        &mut self,
        source: &dyn Source,
        dataset: &Dataset,
        number: u32,
    ) -> Option<Arc<[[f64; 2]]>> {
        if let Some(known) = self.bounds.get(&number) {
            return known.clone();
        }
        // Unreadable bounds are treated as absent.
        let read = values(source, dataset, number).await.ok();
        let bounds = read.map(|values| values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect());
        self.bounds.insert(number, bounds.clone());
        bounds
    }

    /// # Errors
    /// Reason why there is none, as the end of a sentence.
    async fn lat_lon_grid(
        &mut self,
        source: &dyn Source,
        dataset: &Dataset,
        places: Curvilinear,
    ) -> std::result::Result<Arc<LatLonGrid>, String> {
        let key = [places.latitude, places.longitude];
        if let Some(known) = self.lat_lon_grids.get(&key) {
            return known.clone();
        }
        let made = self.make_lat_lon_grid(source, dataset, places).await;
        self.lat_lon_grids.insert(key, made.clone());
        made
    }

    async fn make_lat_lon_grid(
        &mut self,
        source: &dyn Source,
        dataset: &Dataset,
        places: Curvilinear,
    ) -> std::result::Result<Arc<LatLonGrid>, String> {
        let shape = dataset.array(places.latitude).map_err(|e| e.to_string())?.shape().to_vec();
        let cells = shape.iter().fold(1u64, |n, &count| n.saturating_mul(count));
        if cells > MAX_CELLS || cells > MAX_CELLS_TOGETHER - self.cells {
            return Err(format!("it has too many cells: {cells}"));
        }
        self.cells += cells;
        let read = |number| async move { values(source, dataset, number).await.map_err(|e| e.to_string()) };
        let (latitudes, longitudes) = futures::try_join!(read(places.latitude), read(places.longitude))?;
        let side = |axis: usize| usize::try_from(shape[axis]).unwrap_or(usize::MAX);
        let centers = CellCenters { rows: side(0), columns: side(1), longitudes, latitudes };
        let made =
            crate::tasks::blocking(move || LatLonGrid::of(&centers)).await.map_err(|e| e.to_string())?;
        made.map(Arc::new).map_err(str::to_owned)
    }

    /// Returns the cached axis that equals this one, or caches this one.
    fn axis(&mut self, even: EvenAxis) -> Arc<EvenAxis> {
        if let Some(known) = self.axes.iter().find(|known| ***known == even) {
            return Arc::clone(known);
        }
        let even = Arc::new(even);
        self.axes.push(Arc::clone(&even));
        even
    }

    fn axis_map(&mut self, even: &Arc<EvenAxis>, factor: f64, coarsening: Coarsening) -> Arc<[u32]> {
        let of = Arc::as_ptr(even).addr();
        let key = IndexMapKey { of, factors: [factor; 2], coarsenings: [coarsening; 2] };
        self.map(key, || even.indices(factor, coarsening))
    }

    /// Returns the source cells of a level for the pixels of a level, by the source cell at the pixel's
    /// center.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "within the grid"
    )]
    fn lat_lon_map(
        &mut self,
        lat_lon_grid: &Arc<LatLonGrid>,
        source_columns: u64,
        factors: [f64; 2],
        coarsenings: [Coarsening; 2],
    ) -> Arc<[u32]> {
        let key = IndexMapKey { of: Arc::as_ptr(lat_lon_grid).addr(), factors, coarsenings };
        self.map(key, || {
            let centers = |count: usize, factor: f64| {
                let center = move |at: u64| (at as f64 * factor + 0.5 * (factor - 1.0)).round() as usize;
                (0..coarse_count(count as u64, factor)).map(move |at| center(at).min(count - 1))
            };
            let source_columns = source_columns as u32;
            let columns = coarsenings[1].count as u32;
            let mut cells = Vec::new();
            for row in centers(lat_lon_grid.rows, factors[0]) {
                for column in centers(lat_lon_grid.columns, factors[1]) {
                    let cell = lat_lon_grid.cells[row * lat_lon_grid.columns + column];
                    let [y, x] = [cell / source_columns, cell % source_columns].map(f64::from);
                    let there = coarsenings[0].voxel(y) * columns + coarsenings[1].voxel(x);
                    cells.push(if cell == NO_CELL { NO_CELL } else { there });
                }
            }
            cells
        })
    }

    fn map(&mut self, key: IndexMapKey, make: impl FnOnce() -> Vec<u32>) -> Arc<[u32]> {
        if let Some((_, known)) = self.maps.iter().find(|(known, _)| *known == key) {
            return Arc::clone(known);
        }
        let map: Arc<[u32]> = make().into();
        self.maps.push((key, Arc::clone(&map)));
        map
    }
}

/// Returns the note for users about a curvilinear grid.
fn lat_lon_note(lat_lon_grid: &LatLonGrid) -> String {
    let percent = 100.0 * lat_lon_grid.hidden;
    let hidden = if percent < 1.0 {
        String::new()
    } else {
        format!("; {percent:.0} % of its cells are narrower than that and not drawn")
    };
    let LatLonGrid { rows, columns, .. } = lat_lon_grid;
    format!(
        "curvilinear grid: drawn at its true latitudes and longitudes on an even grid of {rows} x {columns}{hidden}"
    )
}

/// Returns the note for users about an axis.
fn axis_note(name: &str, samples: usize, even: &EvenAxis, is_to_scale: bool) -> String {
    let scale = if is_to_scale { "" } else { ", not to scale with the others" };
    let hidden = match even.hidden() {
        0 => String::new(),
        hidden => format!("; {hidden} of its {samples} cells are thinner than that and not drawn"),
    };
    format!(
        "axis `{name}` is uneven: drawn at its true places on an even grid of {} layers{scale}{hidden}",
        even.count
    )
}

/// Returns true if an axis is to scale with the world.
///
/// # Errors
/// Reason why its coordinates are meaningless in the picture, as the end of a sentence: a horizontal axis has
/// other units than the world.
fn fits_the_world(array: &ArrayInfo, axis: usize) -> std::result::Result<bool, String> {
    let axis = &array.axes[axis];
    let units = if kind_of_degrees(&axis.units).is_some() { "degrees" } else { axis.units.as_str() };
    let is_to_scale = !units.is_empty() && units == array.world_units;
    match (is_to_scale, axis.kind) {
        (true, _) | (_, AxisKind::Z) => Ok(is_to_scale),
        _ if units.is_empty() => Err("its units are not known".to_owned()),
        _ if array.world_units.is_empty() => Err("the units of the other axes are not known".to_owned()),
        _ => Err(format!("its units are `{units}`, those of the picture `{}`", array.world_units)),
    }
}

/// Returns true if all levels lie along the axes of the world, with nonzero voxel sizes.
fn is_aligned(array: &ArrayInfo) -> bool {
    array.levels.iter().all(|level| {
        let map = level.world_from_voxel.0;
        let fits = |row: usize, column: usize| {
            let value = map[row][column];
            if row == column {
                value.is_finite() && value != 0.0
            } else {
                value == 0.0 || (column == 3 && value.is_finite())
            }
        };
        (0..3).all(|row| (0..4).all(|column| fits(row, column)))
    })
}

/// Returns the position of a level of the source on its level 0 along an axis.
fn coarsening(source: &ArrayInfo, level: &array::Level, axis: usize) -> Coarsening {
    let (count, factor) = (level.shape[axis], level.factor[axis]);
    let place =
        [AxisKind::X, AxisKind::Y, AxisKind::Z].iter().position(|&kind| kind == source.axes[axis].kind);
    let by_map = place.map(|place| {
        let (of, own) = (source.levels[0].world_from_voxel.0[place], level.world_from_voxel.0[place]);
        (own[place] / of[place], (own[3] - of[3]) / of[place])
    });
    let (scale, shift) = by_map
        .filter(|(scale, shift)| scale.is_finite() && *scale > 0.0 && shift.is_finite())
        .unwrap_or((factor, 0.5 * (factor - 1.0)));
    Coarsening { count, scale, shift }
}

/// Chooses the element outside all cells, and adds it to the decoding: an existing missing value, NaN, or a
/// new value, which needs a type twice as wide if every value of the type may be valid.
fn missing(info: &mut ArrayInfo) -> MissingElement {
    let meant = info.decoding.meant(info.dtype);
    let element = meant.element();
    let has_one =
        info.decoding.missing.iter().chain(&info.decoding.unset).find_map(|value| value.exactly(element));
    let of_float = element.is_float().then_some(Scalar::Float(f64::NAN));
    let stored = |value: Scalar, dtype: DType| {
        let mut raw = value.to_little_endian(dtype.element());
        if dtype.order() == array::ByteOrder::Big {
            raw.reverse();
        }
        raw
    };
    if let Some(value) = has_one.or(of_float) {
        return MissingElement { element: stored(value, meant), wider: None };
    }
    let lowest = |element: ElementType| {
        let (low, high) = element.limits();
        // The highest of unsigned integers: 0 is a common value.
        if element.is_signed() {
            Scalar::Signed(i64::try_from(low).unwrap_or(i64::MIN))
        } else {
            Scalar::Unsigned(u64::try_from(high).unwrap_or(u64::MAX))
        }
    };
    let wider = WiderInteger::of(meant);
    let dtype = wider.map_or(meant, |wider| wider.to);
    let value = lowest(dtype.element());
    if let Some(WiderInteger { to, .. }) = wider {
        info.dtype = to;
        info.decoding.unsigned = None;
    }
    info.decoding = Decoding { unset: vec![value], ..info.decoding.clone() };
    MissingElement { element: stored(value, dtype), wider }
}

/// Returns the name of an array without its group.
fn last_part(name: &str) -> String {
    let trimmed = name.trim_matches('/');
    trimmed.rsplit('/').next().unwrap_or(trimmed).to_owned()
}
