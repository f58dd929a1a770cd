//! Colours by another array: what is seen is one array's, in which colours another one's values say.
//!
//! The other array has blocks, levels and transitions between levels of its own. Its values are looked up by a second caster, which
//! draws nothing: sixteen places at once, wherever they lie. Voxels of both lie at the same places, so positions in volume space
//! are the same. Between two samples a part of the way takes the colour in its middle.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{Error, Meaning, Result};
use glam::{DVec3, Vec4};

use crate::blocks::Blocks;
use crate::cast::Caster;
use crate::colour::is_categorical;
use crate::cut::Finds;
use crate::kernel::Shading;
use crate::palette::Palette;
use crate::rays::Region;
use crate::simd::{Instructions, Job, LANES, Simd};
use crate::table::ENTRIES;
use crate::voxel::Voxel;
use crate::{Mode, OpacityPoint, Part, Scene, TransferFunction, VolumeView, WireBoxes};

/// Which array gives the colours of a picture, and which colours. Where it has no value nothing is seen.
#[derive(Clone, Debug)]
pub struct Tint {
    /// The array, seen as a volume whose voxels lie where those of the scene's view do.
    pub view: Arc<VolumeView>,
    /// Name of the colour map; see [`colour_map_names`](crate::colour_map_names).
    pub colour_map: String,
    /// Decoded values at the ends of the colour map, the low one first.
    pub range: [f64; 2],
    /// Number of the finest level to take, as [`Demand::wanted`](crate::Demand::wanted) says.
    pub finest_level: u8,
}

impl Tint {
    /// The colours as a transfer function, of which opacity plays no part.
    pub(crate) fn transfer(&self) -> TransferFunction {
        TransferFunction {
            colour_map: self.colour_map.clone(),
            reversed: false,
            range: self.range,
            opacity: vec![OpacityPoint { value: self.range[0], opacity: 1.0 }],
        }
    }

    /// Checks that it can colour a scene of a view.
    ///
    /// # Errors
    /// `Invalid`, naming what is wrong.
    pub fn check_of(&self, view: &VolumeView, mode: Mode) -> Result<()> {
        self.transfer().check()?;
        self.view.rank_of(self.finest_level)?;
        if matches!(mode, Mode::Maximum | Mode::Minimum) {
            return Err(Error::invalid(
                "expected no other array's colours for extreme values, which show their own",
            ));
        }
        let place = |view: &VolumeView| (view.levels[0].shape, view.world_from_volume);
        if place(view) != place(&self.view) {
            return Err(Error::invalid(format!(
                "expected colours by an array whose voxels lie where the scene's do, found {:?} and {:?} voxels, or other places",
                self.view.levels[0].shape, view.levels[0].shape
            )));
        }
        Ok(())
    }

    /// What the caster that looks its values up is made for.
    pub(crate) fn scene(&self, of: &Scene) -> Scene {
        Scene {
            view: Arc::clone(&self.view),
            transfer: self.transfer(),
            tint: None,
            surfaces: Vec::new(),
            slices: Vec::new(),
            wires: WireBoxes::default(),
            mode: Mode::Surfaces,
            is_lit: false,
            finest_level: self.finest_level,
            camera: of.camera,
            size: of.size,
            clip: of.clip,
            quality: of.quality,
        }
    }
}

/// What gives colours to places in volume space.
pub(crate) trait Dye: fmt::Debug + Send + Sync {
    /// Red, green, blue of the `wanted` places, and 1 where there is a value, else 0; 0 of the others.
    fn colours(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4];

    /// The same of one place; transparent where there is no value.
    fn colour(&self, at: DVec3) -> Vec4 {
        let [r, g, b, is_there] = self.colours(&[at; LANES], 1);
        Vec4::new(r[0], g[0], b[0], 1.0) * is_there[0]
    }

    /// Some value that was asked for is still to come from the level that is wanted.
    fn is_lacking(&self) -> bool;
}

/// A premultiplied colour of one array as another one dyes it at a place.
pub(crate) fn dyed(dye: Option<&dyn Dye>, colour: Vec4, at: DVec3) -> Vec4 {
    match dye {
        Some(dye) if colour.w > 0.0 => dye.colour(at) * colour.w,
        _ => colour,
    }
}

/// Where the steps of sixteen rays lie, in volume space, and what dyes them.
#[derive(Clone, Copy)]
pub(crate) struct Dyed<'a> {
    pub(crate) dye: &'a dyn Dye,
    pub(crate) from: [DVec3; LANES],
    pub(crate) way: [DVec3; LANES],
}

impl Dyed<'_> {
    /// Premultiplied colours of `seen` rays in the colours of the places that lie such a share of the way behind its beginning.
    #[inline(always)]
    pub(crate) fn colours<S: Simd>(&self, simd: S, entry: &[S::F; 4], seen: S::M, share: f64) -> [S::F; 4] {
        let zero = simd.splat(0.0);
        let wanted = simd.bits(simd.and(seen, simd.lt(zero, entry[3])));
        if wanted == 0 {
            return [zero; 4];
        }
        let mut at = self.from;
        for (at, way) in at.iter_mut().zip(&self.way) {
            *at += *way * share;
        }
        let [r, g, b, is_there] = self.dye.colours(&at, wanted);
        let opacity = simd.mul(entry[3], simd.load(&is_there));
        [
            simd.mul(simd.load(&r), opacity),
            simd.mul(simd.load(&g), opacity),
            simd.mul(simd.load(&b), opacity),
            opacity,
        ]
    }
}

/// A caster that looks values up; see the module.
pub(crate) struct Dyer<'a, T> {
    caster: Caster<'a, T>,
    colours: Colours,
    is_lacking: AtomicBool,
}

/// Of what is still to come.
const UNKNOWN: [f32; 3] = [0.5; 3];

impl<'a, T: Voxel> Dyer<'a, T> {
    /// `scene` is [`Tint::scene`].
    pub(crate) fn new(
        scene: &'a Scene,
        part: &Part,
        blocks: &'a Blocks<T>,
        instructions: Instructions,
    ) -> Result<Self> {
        // How fine the drawn array is says nothing of this one.
        let part = Part { finest: None, ..*part };
        let caster = Caster::new(scene, &part, blocks, None, instructions)?;
        Ok(Self {
            caster,
            colours: Colours::new(&Palette::new(&scene.transfer), scene),
            is_lacking: AtomicBool::new(false),
        })
    }
}

/// The colours of values, by place in the table or by label.
struct Colours {
    all: Vec<[f32; 3]>,
    by_label: bool,
}

impl Colours {
    fn new(palette: &Palette, scene: &Scene) -> Self {
        let by_label = scene.view.meaning == Meaning::Labels && is_categorical(&scene.transfer.colour_map);
        let colour = |entry: usize| match u8::try_from(entry) {
            Ok(label) if by_label => palette.of_label(label, 0.0),
            _ => palette.of_place(entry as f32),
        };
        Self { all: (0..ENTRIES).map(|entry| colour(entry).truncate().to_array()).collect(), by_label }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped; NaN becomes 0")]
    fn of(&self, place: f32, label: u8) -> [f32; 3] {
        let nearest = (place.clamp(0.0, (ENTRIES - 1) as f32) + 0.5) as usize;
        self.all[if self.by_label { usize::from(label) } else { nearest }]
    }
}

impl<T: Voxel> Dye for Dyer<'_, T> {
    fn colours(&self, at: &[DVec3; LANES], wanted: u32) -> [[f32; LANES]; 4] {
        self.caster.instructions.run(Look { dyer: self, at, wanted })
    }

    fn is_lacking(&self) -> bool {
        self.is_lacking.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for Dyer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dyer")
    }
}

/// One look at sixteen places.
struct Look<'a, 'b, T> {
    dyer: &'a Dyer<'b, T>,
    at: &'a [DVec3; LANES],
    wanted: u32,
}

impl<T: Voxel> Job for Look<'_, '_, T> {
    type Output = [[f32; LANES]; 4];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { dyer: Dyer { caster, colours, is_lacking }, at, wanted } = self;
        let view = &caster.scene.view;
        let shading = Shading {
            table: &caster.tables.by_stride[0],
            missing: &caster.blocks.missing,
            opaque: 1.0,
            nearest: view.meaning == Meaning::Labels,
            metric: None,
            dye: None,
        };
        // Outside the volume its outermost voxels go on.
        let (low, high) = view.volume_box();
        let mut inside = *at;
        inside.iter_mut().for_each(|at| *at = at.max(low).min(high));
        let (mut finds, mut unknown) = (Finds::NONE, 0);
        let heard = |region: &Region, rays: u32| {
            if region.is_lacking {
                is_lacking.store(true, Ordering::Relaxed);
                unknown |= if region.slot.is_none() { rays } else { 0 };
            }
        };
        if shading.nearest {
            caster.find_labels(&inside, wanted, &shading, &mut finds, heard);
        } else {
            caster.find_at(simd, &inside, wanted, &shading, &mut finds, heard);
        }
        let mut found = [[0.0; LANES]; 4];
        for lane in 0..LANES {
            let place = finds.places[lane];
            let colour = if unknown >> lane & 1 != 0 {
                Some(UNKNOWN)
            } else if place.is_nan() {
                None
            } else {
                Some(colours.of(place, finds.labels[lane]))
            };
            if let Some([r, g, b]) = colour {
                (found[0][lane], found[1][lane], found[2][lane], found[3][lane]) = (r, g, b, 1.0);
            }
        }
        found
    }
}
