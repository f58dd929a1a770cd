//! Pictures of volumes, as the transfer function shows them.

use array::{Affine, DType, ElementType, ErrorKind, Meaning, Scalar};
use corridor_gpu::{Accept, GpuCaster, MissingBlocks, UPLOAD_BYTES_PER_PASS};
use corridor_render::{BlockPool, Camera, Cancel, ImageSize, LightShares, Quality, Scene, TransferFunction};
use glam::DVec3;

use crate::common::{self, Synthetic, points, pool_of, voxel_box};
use crate::{compare, draw_on, roomy, scene_of, waves, with_points};

/// Sparse, typical, dense, fog, saturating.
fn transfer_functions(scene: &Scene) -> [(&'static str, TransferFunction); 5] {
    [
        ("sparse", with_points(scene, &[(180.0, 0.0), (190.0, 0.4), (200.0, 0.9)])),
        ("typical", with_points(scene, &[(110.0, 0.0), (150.0, 0.02), (200.0, 0.3)])),
        ("dense", with_points(scene, &[(90.0, 0.0), (120.0, 0.5), (200.0, 0.9)])),
        ("fog", with_points(scene, &[(0.0, 0.004), (200.0, 0.02)])),
        ("saturating", with_points(scene, &[(99.0, 0.0), (101.0, 1.0), (200.0, 1.0)])),
    ]
}

#[test]
fn five_transfer_functions_of_five_types() {
    let Some((caster, _turn)) = roomy() else { return };
    for element in [ElementType::U8, ElementType::U16, ElementType::I16, ElementType::F32, ElementType::F64] {
        let synthetic = Synthetic::new([50, 61, 72], [16, 16, 16], waves).typed(DType::native(element));
        let pool = synthetic.full_pool();
        let scene = scene_of(&synthetic);
        let mut uploaded = 0;
        for (name, transfer) in transfer_functions(&scene) {
            let scene = Scene { transfer, ..scene.clone() };
            uploaded += compare(caster, &format!("{element:?}-{name}"), &scene, &pool).blocks;
        }
        assert!(uploaded <= pool.block_count() as u64, "a block is uploaded once for all transfer functions");
    }
}

#[test]
fn clipped_parallel_moving_and_far_away() {
    let Some((caster, _turn)) = roomy() else { return };
    let mut synthetic = Synthetic::new([40, 44, 48], [16, 24, 32], waves).typed("<u2".parse().unwrap());
    synthetic.map = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);
    let pool = synthetic.full_pool();
    let scene = scene_of(&synthetic);
    let clip = Some(voxel_box(&scene.view, [5.2, -3.0, 8.0], [30.1, 50.0, 33.3]));
    let clipped = Scene { clip, ..scene.clone() };
    compare(caster, "clipped", &clipped, &pool);
    let parallel = Scene { camera: scene.camera.orthographic(), ..clipped };
    compare(caster, "parallel", &parallel, &pool);
    let mut remote = parallel.clone();
    let away = (DVec3::from(remote.camera.eye) - DVec3::from(remote.camera.target)) * 1e5;
    remote.camera.eye = (DVec3::from(remote.camera.eye) + away).into();
    compare(caster, "parallel-from-afar", &remote, &pool);
    let along = Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]).orthographic();
    compare(caster, "along-an-axis", &Scene { camera: along, ..scene.clone() }, &pool);
    compare(caster, "moving", &Scene { quality: Quality::MOVING, ..scene.clone() }, &pool);
    for (name, aside) in [("left-eye", -5.3), ("right-eye", 5.9)] {
        compare(caster, name, &Scene { camera: Camera { aside, ..scene.camera }, ..scene.clone() }, &pool);
    }
    let inside = Camera { eye: scene.camera.target, target: [0.0; 3], ..scene.camera };
    compare(caster, "from-within", &Scene { camera: inside, ..scene }, &pool);
}

#[test]
fn missing_values_labels_and_light() {
    fn holes(p: DVec3) -> f64 {
        if (p - 20.0).length() < 9.0 { -999.0 } else { waves(p) }
    }
    let Some((caster, _turn)) = roomy() else { return };
    let mut stored = Synthetic::new([40; 3], [16; 3], holes).typed("<i2".parse().unwrap());
    stored.decoding.missing = vec![Scalar::Signed(-999)];
    compare(caster, "missing-i16", &scene_of(&stored), &stored.full_pool());
    for element in [ElementType::F32, ElementType::F64] {
        let nan = |p: DVec3| if holes(p) < 0.0 { f64::NAN } else { waves(p) };
        let nan = Synthetic::new([40; 3], [16; 3], nan).typed(DType::native(element));
        compare(caster, &format!("missing-{element:?}"), &scene_of(&nan), &nan.full_pool());
    }
    let lit = Scene { is_lit: true, ..scene_of(&stored) };
    compare(caster, "lit", &lit, &stored.full_pool());
    let dimmed = Scene { light: LightShares::new(1.0, 0.9, 0.5), ..lit };
    compare(caster, "dimmed", &dimmed, &stored.full_pool());
    let dense = with_points(&dimmed, &[(100.0, 0.0), (120.0, 0.6), (200.0, 0.9)]);
    let dense = Scene { transfer: dense, ..dimmed };
    compare(caster, "dimmed-dense", &dense, &stored.full_pool());
    compare(
        caster,
        "dimmed-parallel",
        &Scene { camera: dense.camera.orthographic(), ..dense },
        &stored.full_pool(),
    );
    let blobs =
        |p: DVec3| ((p.x / 9.0).floor() + 3.0 * (p.y / 11.0).floor() + 7.0 * (p.z / 8.0).floor()).max(0.0);
    let mut labels = Synthetic::new([40; 3], [16; 3], blobs).typed("|u1".parse().unwrap());
    labels.meaning = Meaning::Labels;
    let scene = Scene { transfer: TransferFunction::labels(0.3), ..scene_of(&labels) };
    compare(caster, "labels", &scene, &labels.full_pool());
}

/// Level 0 has holes, level 1 too, and level 2 stands in.
pub(crate) fn with_stand_ins() -> (Synthetic, BlockPool) {
    let mut synthetic = Synthetic::new([64; 3], [16; 3], waves).typed("|u1".parse().unwrap());
    synthetic.levels = 3;
    let some = |level: u32, every: usize| {
        let blocks = synthetic.blocks(level).into_iter().enumerate();
        blocks.filter(move |(i, _)| i % 5 % every != 1).map(|(_, block)| block).collect::<Vec<_>>()
    };
    let blocks: Vec<_> = [some(0, 2), some(1, 3), synthetic.blocks(2)].concat();
    let pool = pool_of(&synthetic, blocks);
    (synthetic, pool)
}

#[test]
fn where_blocks_are_missing_their_ancestors_stand_in() {
    let Some((caster, _turn)) = roomy() else { return };
    let (synthetic, pool) = with_stand_ins();
    compare(caster, "stand-ins", &scene_of(&synthetic), &pool);
    let lit = Scene { is_lit: true, ..scene_of(&synthetic) };
    compare(caster, "stand-ins-lit", &lit, &pool);
    let dimmed = Scene { light: LightShares::new(1.0, 0.9, 0.5), ..lit };
    compare(caster, "stand-ins-dimmed", &dimmed, &pool);
}

#[test]
fn a_small_atlas_gives_the_same_picture() {
    let Some((roomy, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([64; 3], [16; 3], waves).typed("|u1".parse().unwrap());
    let pool = synthetic.full_pool();
    let scene = scene_of(&synthetic);
    let (expected, with_room) = draw_on(roomy, &scene, &pool);
    assert!(with_room.blocks > 12, "{with_room:?}");
    // Twelve blocks of 17^3.
    let small = GpuCaster::open(Accept::Any, 12 * 4913).unwrap();
    let (found, stats) = draw_on(&small, &scene, &pool);
    eprintln!("{with_room:?} {stats:?}");
    assert_eq!(expected.image, found.image);
    assert!(stats.atlas_bytes <= 12 * 4913 && stats.blocks > with_room.blocks, "{stats:?}");
    assert!(stats.most_bytes_per_pass <= UPLOAD_BYTES_PER_PASS);
    let (again, stats) = draw_on(roomy, &scene, &pool);
    assert_eq!((again.image == expected.image, stats.blocks, stats.passes), (true, 0, 1), "{stats:?}");
    let tiny = GpuCaster::open(Accept::Any, 4000).unwrap();
    let error = tiny.cast(&scene, &pool.snapshot(), MissingBlocks::Complete, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("4913 bytes"), "{error}");
}

#[test]
fn a_picture_that_does_not_wait_says_what_it_lacks_and_the_next_has_it() {
    let Some((caster, _turn)) = roomy() else { return };
    let mut synthetic = Synthetic::new([64; 3], [16; 3], waves).typed("|u1".parse().unwrap());
    synthetic.levels = 3;
    let scene = scene_of(&synthetic);
    let pool = pool_of(&synthetic, synthetic.blocks(2));
    let cast = |pool: &BlockPool| {
        caster.cast(&scene, &pool.snapshot(), MissingBlocks::StandIns, &Cancel::new()).unwrap()
    };
    // Nothing is there that could stand in, so it waits.
    let (coarse, stats) = cast(&pool);
    assert!(stats.passes > 1 && common::covered(&coarse.image) > 0.02, "{stats:?}");
    assert!(coarse.fidelity.share_uncovered <= 0.0, "never a hole: {:?}", coarse.fidelity);
    for block in synthetic.blocks(0) {
        pool.insert(&block).unwrap();
    }
    let (first, stats) = cast(&pool);
    assert!(stats.passes == 1 && stats.lacking_blocks > 0 && stats.blocks > 0, "{stats:?}");
    assert!(
        first.fidelity.share_lacking > 0.2 && first.fidelity.share_uncovered <= 0.0,
        "{:?}",
        first.fidelity
    );
    assert!(first.fidelity.coarsest_shown == Some(2), "{:?}", first.fidelity);
    let (last, stats) = cast(&pool);
    assert_eq!((stats.passes, stats.lacking_blocks, stats.blocks), (1, 0, 0));
    assert_eq!(last.image, draw_on(caster, &scene, &pool).0.image);
    assert!(last.fidelity.is_complete(), "{:?}", last.fidelity);
}

#[test]
fn what_is_left_to_the_other_caster_is_said() {
    let Some((caster, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([24; 3], [16; 3], waves);
    let cast = |synthetic: &Synthetic, cancel: &Cancel| {
        let blocks = synthetic.full_pool().snapshot();
        caster.cast(&scene_of(synthetic), &blocks, MissingBlocks::Complete, cancel).unwrap_err()
    };
    let mut labels = synthetic.clone().typed("<i4".parse().unwrap());
    labels.meaning = Meaning::Labels;
    let error = cast(&labels, &Cancel::new());
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("labels of at most 16 bits"), "{error}");
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(cast(&synthetic, &cancel).kind(), ErrorKind::Cancelled);
}

/// The bundled sample, a scan of a tooth.
fn tooth(p: DVec3) -> f64 {
    static BYTES: &[u8] = include_bytes!("../../../../data/sample/tooth.raw");
    let [x, y, z] = p.to_array().map(|at| at as usize);
    let at = 2 * ((z * 94 + y) * 103 + x);
    f64::from(u16::from_be_bytes([BYTES[at], BYTES[at + 1]]))
}

#[test]
fn a_real_volume_whole_and_in_an_atlas_for_a_small_part_of_it() {
    let Some((caster, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([161, 94, 103], [32; 3], tooth).typed(">u2".parse().unwrap());
    let pool = synthetic.full_pool();
    let mut scene = synthetic.scene();
    scene.size = ImageSize { width: 240, height: 200 };
    let opacity = points(&[(500.0, 0.0), (700.0, 0.03), (900.0, 0.1), (1200.0, 0.8)]);
    scene.transfer = TransferFunction { opacity, ..TransferFunction::ramp(400.0, 1300.0, 1.0) };
    compare(caster, "tooth", &scene, &pool);
    let lit = Scene { is_lit: true, ..scene };
    compare(caster, "tooth-lit", &lit, &pool);
    let (whole, with_room) = draw_on(caster, &lit, &pool);
    let small = GpuCaster::open(Accept::Any, 10 * 2 * 33 * 33 * 33).unwrap();
    let (paged, stats) = draw_on(&small, &lit, &pool);
    eprintln!("{with_room:?} {stats:?}");
    assert_eq!(whole.image, paged.image);
    assert!(stats.passes > with_room.passes && stats.atlas_bytes <= 10 * 2 * 33 * 33 * 33, "{stats:?}");
}

#[test]
fn thin_volumes_and_labels_of_any_number() {
    let Some((caster, _turn)) = roomy() else { return };
    for (count, levels) in [(1, 3), (3, 3)] {
        let mut synthetic = Synthetic::new([count, 60, 80], [1, 32, 32], waves).typed("|u1".parse().unwrap());
        synthetic.levels = levels;
        for level in [0, levels - 1] {
            let pool = pool_of(&synthetic, synthetic.blocks(level));
            let mut scene = scene_of(&synthetic);
            scene.finest_level = u8::try_from(level).unwrap();
            let straight = Camera::framing(&scene.view.bounds(), [0.1, 0.2, -1.0]);
            for camera in [straight, straight.orthographic(), scene.camera] {
                for opacity in [0.3, 1.0] {
                    let transfer = with_points(&scene, &[(0.0, opacity), (200.0, opacity)]);
                    let name = format!("thin-{count}-{level}-{opacity}");
                    compare(caster, &name, &Scene { camera, transfer, ..scene.clone() }, &pool);
                }
            }
        }
    }
    fn ids(p: DVec3) -> f64 {
        250.0 * ((p.x / 10.0).floor() + 7.0 * (p.y / 10.0).floor())
    }
    let mut synthetic = Synthetic::new([20, 40, 60], [16, 16, 16], ids).typed("<u2".parse().unwrap());
    synthetic.meaning = Meaning::Labels;
    let transfer = TransferFunction::labels(0.4);
    compare(caster, "many-labels", &Scene { transfer, ..scene_of(&synthetic) }, &synthetic.full_pool());
}
