//! Descriptions, cameras and transfer functions from outside: an error or a picture, never a panic and never
//! more work than the shape of the array explains.

#![expect(clippy::cast_possible_truncation, reason = "tests")]

mod common;

use array::{Affine, DType, ElementType, ErrorKind, Level, LevelOrigin};
use common::{Synthetic, cubic};
use corridor_render::{
    BlockPool, Bounds, Camera, Cancel, ImageSize, Isosurface, LightShares, OpacityPoint, Quality, Scene,
    Slice, TransferFunction, VolumeView, WireBox, cast, demand,
};
use proptest::prelude::*;
use view::{Mode, Projection, SpaceAxis, ValueScale};

/// Ordinary numbers, and now and then one that is not.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        60 => -100.0..100.0f64,
        4 => (-12..12i32).prop_map(|e| 10f64.powi(e)),
        1 => odd(),
    ]
}

/// None, without end, huge and so small that nothing is left when they are divided.
fn odd() -> impl Strategy<Value = f64> {
    let largest = f64::from(f32::MAX);
    prop::sample::select(vec![
        0.0,
        -0.0,
        1e300,
        -1e-300,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        5e-324,
        1e-40,
        largest,
        -largest,
    ])
}

/// Strategy for stored values: often among few, so that isovalues are met exactly.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![8 => number(), 4 => (-3..3i8).prop_map(f64::from), 1 => odd()]
}

fn triple() -> impl Strategy<Value = [f64; 3]> {
    [number(), number(), number()]
}

fn axis() -> impl Strategy<Value = SpaceAxis> {
    prop_oneof![Just(SpaceAxis::X), Just(SpaceAxis::Y), Just(SpaceAxis::Z)]
}

fn map() -> impl Strategy<Value = Affine> {
    let row = || [number(), number(), number(), number()];
    prop_oneof![
        Just(Affine::IDENTITY),
        triple().prop_map(|s| Affine::from_spacing(s, [0.0; 3])),
        [row(), row(), row()].prop_map(Affine),
    ]
}

prop_compose! {
    fn level()(
        shape in [1..20u64, 1..20u64, 1..20u64],
        block in [1..9u64, 1..9u64, 1..9u64],
        factor in triple(),
        honest in any::<bool>(),
        sampled in any::<bool>(),
        world_from_voxel in map(),
    ) -> Level {
        Level {
            shape: shape.to_vec(),
            block: block.to_vec(),
            chunk: None,
            origin: if sampled { LevelOrigin::Sampled } else { LevelOrigin::Mean },
            factor: if honest { vec![2.0; 3] } else { factor.to_vec() },
            world_from_voxel,
        }
    }
}

prop_compose! {
    fn camera()(eye in triple(), target in triple(), up in triple(), span in number(), aside in prop_oneof![Just(0.0), number()], perspective in any::<bool>()) -> Camera {
        let projection = if perspective {
            Projection::Perspective { fov_y_rad: span.abs().min(3.0) }
        } else {
            Projection::Orthographic { height_world: span }
        };
        Camera { eye, target, up, projection, aside }
    }
}

prop_compose! {
    fn surface()(value in value(), color in [0.0..=1.0f32, 0.0..=1.0f32, 0.0..=1.0f32], opacity in 0.0..=1.0f32) -> Isosurface {
        Isosurface { value, color, opacity }
    }
}

prop_compose! {
    fn wire()(min in triple(), max in triple(), color in any::<[u8; 3]>()) -> WireBox {
        WireBox { bounds: Bounds { min, max }, color }
    }
}

prop_compose! {
    fn transfer()(range in [number(), number()], points in prop::collection::vec((number(), 0.0..1.1f64), 0..5), scale in prop::sample::select(vec![ValueScale::Linear, ValueScale::Log, ValueScale::Symlog])) -> TransferFunction {
        let mut opacity: Vec<_> = points.into_iter().map(|(value, opacity)| OpacityPoint { value, opacity }).collect();
        opacity.sort_by(|a, b| a.value.total_cmp(&b.value));
        TransferFunction { range, scale, opacity, ..TransferFunction::ramp(0.0, 1.0, 1.0) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_an_error_or_a_picture(
        levels in prop::collection::vec(level(), 1..4),
        first_map in map(),
        framed in any::<bool>(),
        wild in camera(),
        transfer in transfer(),
        clip in prop::option::of((triple(), triple())),
        values in prop::collection::vec(value(), 1..20),
        keep in any::<u32>(),
        is_wide in any::<bool>(),
        coding in prop_oneof![8 => Just((1.0, 0.0)), 1 => (number(), number())],
        mode in prop_oneof![Just(Mode::Composite), Just(Mode::Surfaces), Just(Mode::Maximum), Just(Mode::Minimum)],
        slices in prop::collection::vec((axis(), prop_oneof![-0.5..8.0f64, number()]), 0..3),
        surfaces in prop::collection::vec(surface(), 0..4),
        wires in prop::collection::vec(wire(), 0..4),
    ) {
        let slices = slices.into_iter().map(|(axis, at)| Slice::across(axis, at)).collect();
        let element = if is_wide { ElementType::F64 } else { ElementType::F32 };
        let mut dataset = Synthetic::new([8; 3], [4; 3], cubic).typed(DType::native(element)).dataset();
        (dataset.arrays[0].decoding.scale, dataset.arrays[0].decoding.offset) = coding;
        dataset.arrays[0].levels = levels;
        dataset.arrays[0].levels[0].world_from_voxel = first_map;
        dataset.arrays[0].levels[0].factor = vec![1.0; 3];
        let Ok(view) = VolumeView::new(&dataset, 0, &[]).map(std::sync::Arc::new) else { return Ok(()) };
        let camera = if framed { Camera::framing(&view.bounds(), Camera::DEFAULT_DIRECTION) } else { wild };
        let size = ImageSize { width: 9, height: 7 };
        let clip = clip.map(|(min, max)| Bounds { min, max });

        let pool = BlockPool::new(view.clone(), 1 << 20);
        for (number, level) in dataset.arrays[0].levels.iter().enumerate() {
            for index in (0..level.block_count()).filter(|i| keep >> (i % 32) & 1 == 1) {
                let count: u64 = level.block_selection(index).unwrap().ranges().iter().map(|r| r.count).product();
                let stored = |i: u64| values[i as usize % values.len()];
                let bytes: Vec<u8> = match element {
                    ElementType::F64 => (0..count).flat_map(|i| stored(i).to_ne_bytes()).collect(),
                    _ => (0..count).flat_map(|i| (stored(i) as f32).to_ne_bytes()).collect(),
                };
                let key = array::BlockKey { level: number as u8, index, ..view.key(0, [0; 3]) };
                let content = array::Content::Data { bytes: bytes.into(), range: None };
                pool.insert(&array::Block { key, content }).unwrap();
                prop_assert!(pool.used_bytes() <= pool.limit_bytes());
            }
        }
        let scene = Scene { view: view.clone(), camera, transfer, color_by: None, layers: Vec::new(), surfaces, slices, wires: wires.into(), geometry: Default::default(), mode, is_lit: keep & 1 == 1, light: LightShares::default(), size, clip, quality: Quality::STILL, finest_level: 0 };
        match demand(&view, &camera, size, &scene.portion(), None, 1 << 16) {
            Ok(demand) => prop_assert!(demand.blocks.iter().all(|b| view.locate(&b.key).is_some())),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Invalid),
        }
        match cast(&scene, &pool.snapshot(), &Cancel::new()) {
            Ok(frame) => for pixel in frame.image.rgba {
                prop_assert!(pixel.iter().all(|v| (0.0..=1.001).contains(v)), "{pixel:?}");
            },
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Invalid),
        }
    }
}

#[test]
fn a_coarsest_level_of_a_trillion_blocks_is_refused() {
    // All of it would be wanted: one that is there whatever it costs.
    let flat = Synthetic::new([1 << 20; 3], [64; 3], cubic);
    let error = VolumeView::new(&flat.dataset(), 0, &[]).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("coarsest level of at most 262144 blocks"), "{error}");
}
