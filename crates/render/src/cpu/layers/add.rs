//! Compositing of layers along sixteen rays.

use std::cell::Cell;

use glam::DVec3;

use super::{LayerBlock, LayerLookup, NearBlocks, StepLayers};
use crate::cpu::color_by::LocalMap;
use crate::cpu::samples::accumulated::Accumulated;
use crate::simd::{LANES, Simd, SimdStep};

/// Composites the layers behind accumulated colors, at positions in a block of the scene's array.
pub(crate) struct AddLayers<'a, S: Simd> {
    pub(crate) layers: StepLayers<'a>,
    pub(crate) near: &'a NearBlocks,
    /// Local positions, and the map to them from volume space.
    pub(crate) at: [S::F; 3],
    pub(crate) map: LocalMap,
    pub(crate) seen: S::M,
    pub(crate) accumulated: Accumulated<S>,
}

impl<S: Simd> SimdStep<S> for AddLayers<'_, S> {
    type Output = Accumulated<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Accumulated<S> {
        let Self { layers, near, at, map, seen, mut accumulated } = self;
        let wanted = simd.bits(seen);
        if wanted == 0 {
            return accumulated;
        }
        let stored = [simd.store(at[0]), simd.store(at[1]), simd.store(at[2])];
        for (layer, near) in layers.list.iter().zip(&near.0).rev() {
            let [r, g, b, a] = match near.get() {
                Some(block) if wanted & !block.inside(simd, &at) == 0 => {
                    layer.step_colors_in_block(&block, &stored, layers.log2)
                }
                _ => look(&**layer, near, map, &stored, wanted, layers.log2),
            };
            let colors = [simd.load(&r), simd.load(&g), simd.load(&b), simd.load(&a)];
            let through = simd.sub(simd.splat(1.0), accumulated.rgba[3]);
            accumulated.blend(simd, &colors, simd.select(seen, through, simd.splat(0.0)));
        }
        accumulated
    }
}

/// Looks up positions in any block, and remembers that of the first.
#[inline(never)]
fn look(
    layer: &dyn LayerLookup,
    near: &Cell<Option<LayerBlock>>,
    (scale, origin): LocalMap,
    at: &[[f32; LANES]; 3],
    wanted: u32,
    log2: usize,
) -> [[f32; LANES]; 4] {
    let mut places = [DVec3::ZERO; LANES];
    for (lane, place) in places.iter_mut().enumerate() {
        *place = (DVec3::new(at[0][lane].into(), at[1][lane].into(), at[2][lane].into()) - origin) / scale;
    }
    near.set(layer.block_around(places[wanted.trailing_zeros() as usize], (scale, origin)));
    layer.step_colors(&places, wanted, log2)
}
