//! Computed fields: the same values by block, by stride and as a whole; locations that are none.

use array::{ErrorKind, Scalar, Target};
use proptest::prelude::*;

use super::*;

fn read(field: &Synthetic, level: u8, text: &str) -> Vec<f64> {
    let info = field.dataset.array(0).unwrap();
    let selection = Selection::parse(text, &info.level(level).unwrap().shape).unwrap();
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes()).unwrap();
    field.read(0, level, &selection, region, &CancelFlag::default()).unwrap();
    let bytes = target.into_vec().unwrap();
    (0..bytes.len() / info.dtype.size_bytes())
        .map(|i| info.dtype.scalar_at(&bytes, i).unwrap().as_f64())
        .collect()
}

#[test]
fn describes_levels_down_to_64() {
    let field = Synthetic::open("synthetic:waves?shape=4096,4096,4096&dtype=u8&steps=100").unwrap();
    let info = field.dataset.array(0).unwrap();
    assert_eq!(info.size_bytes(), 100 << 36);
    assert_eq!(info.levels.len(), 7);
    let coarsest = info.levels.last().unwrap();
    assert_eq!(coarsest.shape, [100, 64, 64, 64]);
    assert_eq!(coarsest.factor, [1.0, 64.0, 64.0, 64.0]);
    assert_eq!(coarsest.world_from_voxel.apply([0.0; 3]), [31.5; 3]);
    assert_eq!(info.levels[0].origin, LevelOrigin::Stored);
    assert_eq!(info.dtype.to_string(), "|u1");
}

#[test]
fn linear_is_linear_on_every_level() {
    let field = Synthetic::open("synthetic:linear?shape=100,200,300&dtype=f64").unwrap();
    let fine = read(&field, 0, "");
    assert_eq!((fine[0], *fine.last().unwrap()), (0.0, 1.0));
    let at = |z: usize, y: usize, x: usize| fine[(z * 200 + y) * 300 + x];
    // A coarse voxel equals the mean of the eight it stands for.
    let coarse = read(&field, 1, "10, 20, 30")[0];
    let mean =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|c| at(20 + c / 4, 40 + c / 2 % 2, 60 + c % 2)).iter().sum::<f64>()
            / 8.0;
    assert!((coarse - mean).abs() < 1e-6, "{coarse} {mean}");
}

#[test]
fn waves_are_smooth_move_and_fill_their_range() {
    let field = Synthetic::open("synthetic:waves?shape=96,96,96&dtype=f32&steps=64").unwrap();
    let plane = read(&field, 0, "32, 48, :, :");
    let largest = plane.iter().copied().fold(0.0, f64::max);
    assert!(largest > 0.8 && largest <= 1.0, "{largest}");
    assert!(plane.iter().filter(|&&v| v < 0.05).count() > plane.len() / 4, "arms need gaps between them");
    let jump = plane.windows(2).map(|w| (w[1] - w[0]).abs()).fold(0.0, f64::max);
    assert!(jump < 0.5, "{jump}");
    let next = read(&field, 0, "33, 48, :, :");
    let change = plane.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum::<f64>() / plane.len() as f64;
    assert!(change > 0.001 && change < 0.2, "{change}");
}

#[test]
fn wrong_locations_say_what_is_expected() {
    for (location, expected) in [
        ("synthetic:wave?shape=1,1,1", "expected one of the fields"),
        ("synthetic:waves?shape=1,1", "expected three numbers"),
        ("synthetic:waves?shape=1,1,99999999999999", "expected three numbers"),
        ("synthetic:waves?dtype=f4", "expected bits"),
        ("synthetic:waves?dtype=complex", "expected an element type"),
        ("synthetic:waves?steps=0", "expected a number of time steps"),
        ("synthetic:waves?colour=red", "expected shape, dtype"),
        ("synthetic:waves?spacing=1,0,1", "expected three numbers"),
    ] {
        let Err(error) = Synthetic::open(location) else { panic!("{location} opened") };
        assert!(error.to_string().contains(expected), "{location}: {error}");
        assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Unsupported));
    }
}

proptest! {
    /// Any selection equals the same elements picked from the whole.
    #[test]
    fn selections_agree_with_the_whole(
        name in prop::sample::select(vec!["linear", "cubic", "waves", "noise"]),
        dtype in prop::sample::select(vec!["u8", ">i2", "f32", "<f8"]),
        start in prop::array::uniform4(0u64..5), step in prop::array::uniform4(1u64..4), level in 0u8..2,
    ) {
        let location = format!("synthetic:{name}?shape=9,66,70&dtype={dtype}&steps=5");
        let field = Synthetic::open(&location).unwrap();
        let shape = field.dataset.arrays[0].levels[usize::from(level)].shape.clone();
        let text: Vec<String> = (0..4).map(|a| format!("{}::{}", start[a], step[a])).collect();
        let part = read(&field, level, &text.join(","));
        let whole = read(&field, level, "");
        let indices = |a: usize| (start[a]..shape[a]).filter(move |i| (i - start[a]) % step[a] == 0);
        let mut expected = Vec::new();
        for t in indices(0) {
            for z in indices(1) {
                for y in indices(2) {
                    for x in indices(3) {
                        let place = ((t * shape[1] + z) * shape[2] + y) * shape[3] + x;
                        expected.push(whole[usize::try_from(place).unwrap()]);
                    }
                }
            }
        }
        prop_assert_eq!(part, expected);
    }
}

#[test]
fn one_value_is_known() {
    let field = Synthetic::open("synthetic:linear?shape=2,2,2&dtype=u8").unwrap();
    assert_eq!(read(&field, 0, ""), [0.0, 42.0, 85.0, 128.0, 128.0, 170.0, 212.0, 255.0]);
    assert_eq!(field.dataset.arrays[0].dtype.scalar_at(&[7], 0), Some(Scalar::Unsigned(7)));
}
