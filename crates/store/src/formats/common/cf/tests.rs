//! Attributes as netCDF4-python and the CF conventions interpret them, case by case.

use array::{Affine, AxisKind, Coordinates};

use super::*;
use crate::formats::common::describe;

fn values(list: &[(&str, CfValue)]) -> CfAttributes {
    list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn text_value(text: &str) -> CfValue {
    CfValue::Text(text.to_owned())
}

fn float(element: ElementType, value: f64) -> CfValue {
    CfValue::Numbers(element, vec![Scalar::Float(value)])
}

fn signed(element: ElementType, value: i64) -> CfValue {
    CfValue::Numbers(element, vec![Scalar::Signed(value)])
}

fn decoding(dtype: &str, list: &[(&str, CfValue)]) -> array::Decoding {
    decoding::decoding(dtype.parse().unwrap(), &values(list), DefaultFill::Missing)
}

fn dimension(name: &str, list: &[(&str, CfValue)], samples: &[f64]) -> Dimension {
    Dimension {
        name: name.into(),
        coordinate: Some(Coordinate { values: values(list), samples: samples.to_vec() }),
    }
}

/// Stored elements of a type, decoded.
fn meant(dtype: &str, list: &[(&str, CfValue)], stored: &[u8]) -> (ElementType, Vec<f64>) {
    let decoding = decoding(dtype, list);
    let out = array::decode(stored, dtype.parse().unwrap(), &decoding).unwrap();
    let count = out.len() / decoding.output.size_bytes();
    let values = (0..count).map(|i| decoding.output.scalar_at(&out, i).unwrap().as_f64()).collect();
    (decoding.output.element(), values)
}

#[test]
fn types_are_those_that_xarray_chooses() {
    use ElementType::{F32, F64, I8, I16, I32, I64, U8};
    let fill = ("_FillValue", signed(I16, -5));
    let factor = |name, element| match element {
        F32 | F64 => (name, float(element, 0.5)),
        _ => (name, signed(element, 2)),
    };
    let output = |dtype, list: &[(&str, CfValue)]| decoding(dtype, list).output.element();
    for (dtype, scale, offset, expected) in [
        (">i2", Some(F64), Some(F64), F64),
        (">i2", Some(F32), Some(F32), F32),
        (">i4", Some(F32), Some(F32), F64),
        (">i4", Some(F32), None, F32),
        ("<i8", Some(F32), Some(F32), F32),
        ("<f8", Some(F32), None, F32),
        (">f4", Some(F32), Some(F64), F64),
        (">i2", None, Some(F32), F64),
        (">i2", Some(I32), None, I32),
        (">i2", Some(I32), Some(I32), F64),
        (">f4", Some(I32), None, F64),
    ] {
        let factors = [scale.map(|e| factor("scale_factor", e)), offset.map(|e| factor("add_offset", e))];
        let list: Vec<_> = factors.into_iter().flatten().collect();
        assert_eq!(output(dtype, &list), expected, "{dtype} {scale:?} {offset:?}");
        let with_fill = output(dtype, &[list, vec![fill.clone()]].concat());
        assert_eq!(
            with_fill,
            if expected == I32 { F64 } else { expected },
            "{dtype} {scale:?} {offset:?}, filled"
        );
    }
    for (dtype, expected) in
        [("|i1", F32), ("<u2", F32), ("<i4", F64), ("<u8", F64), ("<f4", F32), ("<f8", F64), ("<i8", F64)]
    {
        assert_eq!(output(dtype, std::slice::from_ref(&fill)), expected, "{dtype}");
        let plain: DType = dtype.parse().unwrap();
        assert_eq!(output(dtype, &[]), plain.element(), "{dtype}: nothing is named missing");
    }
    // NaN is no integer, and masks nothing of floats.
    let nan = ("_FillValue", float(F32, f64::NAN));
    assert_eq!(output("<i2", std::slice::from_ref(&nan)), I16);
    assert_eq!(output("<f4", &[nan, factor("scale_factor", F64)]), F32);
    let turned = ("_Unsigned", text_value("true"));
    assert_eq!(output("|i1", &[turned]), U8);
    assert_eq!(output("|u1", &[("_Unsigned", text_value("false"))]), I8);
    assert_eq!(output("<u8", &[("_Unsigned", text_value("false"))]), I64);
}

#[test]
fn every_value_that_is_named_is_missing_by_its_own_value() {
    use ElementType::{F32, F64, I16};
    let singles = |values: &[f32]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
    let stored = singles(&[1e20, -999.99, -999.0, 3.0]);
    let is_nan = |list: &[(&str, CfValue)]| {
        meant(">f4", list, &stored).1.iter().map(|v| v.is_nan()).collect::<Vec<_>>()
    };
    // 1e20 and -999.99 in double precision are no singles.
    assert_eq!(is_nan(&[("missing_value", float(F64, 1e20))]), [false; 4]);
    let single = f64::from(-999.99f32);
    let both = [("_FillValue", float(F32, single)), ("missing_value", float(F64, -999.99))];
    assert_eq!(is_nan(&both), [false, true, false, false]);
    let list = CfValue::Numbers(F64, vec![Scalar::Float(-999.0), Scalar::Float(3.0)]);
    assert_eq!(
        is_nan(&[("_FillValue", float(F32, single)), ("missing_value", list)]),
        [false, true, true, true]
    );
    assert_eq!(is_nan(&[("missing_value", text_value("-999."))]), [false; 4], "text is no number");
    assert_eq!(is_nan(&[]), [false; 4]);
    // A float names what is packed.
    let packed = [("missing_value", float(F32, -32768.0)), ("scale_factor", float(F32, 0.5))];
    let (element, values) = meant(">i2", &packed, &[0x80, 0, 0, 3]);
    assert!(element == F32 && values[0].is_nan() && values[1].to_bits() == 1.5f64.to_bits(), "{values:?}");
    assert_eq!(meant(">i2", &[("missing_value", text_value("x"))], &[0, 3]), (F32, vec![3.0]));
    assert_eq!(decoding(">f4", &both).fill_value(">f4".parse().unwrap()), Some(Scalar::Float(single)));
    let wide = [("_FillValue", signed(I16, 300))];
    assert_eq!(decoding("|i1", &wide).fill_value("|i1".parse().unwrap()), None);
}

#[test]
fn whole_numbers_beyond_doubles_stay_exact_where_nothing_is_named() {
    let big = (1i64 << 60) + 1;
    let decoding = decoding("<i8", &[]);
    let out = array::decode(&big.to_le_bytes(), "<i8".parse().unwrap(), &decoding).unwrap();
    assert_eq!(out, big.to_ne_bytes());
}

#[test]
fn text_is_no_factor() {
    for (name, value) in [
        ("scale_factor", text_value("0.1")),
        ("add_offset", text_value("2")),
        ("scale_factor", CfValue::Numbers(ElementType::F32, vec![Scalar::Float(1.0), Scalar::Float(2.0)])),
        ("scale_factor", float(ElementType::F64, f64::NAN)),
    ] {
        let decoding = decoding("<i2", &[(name, value)]);
        assert!(decoding.obstacle.as_ref().is_some_and(|why| why.contains(name)), "{decoding:?}");
        let error = array::decode(&[0, 0], "<i2".parse().unwrap(), &decoding).unwrap_err();
        assert_eq!(error.kind(), array::ErrorKind::Unsupported);
    }
}

#[test]
fn what_lies_outside_the_valid_range_is_a_value_without_a_place_in_pictures() {
    use ElementType::{F32, I16};
    let from = decoding(">i2", &[("valid_min", signed(I16, 0))]);
    assert_eq!(from.valid, Some((Scalar::Signed(0), Scalar::Signed(32_767))));
    assert!(from.is_missing(Scalar::Signed(-1)));
    assert_eq!(meant(">i2", &[("valid_min", signed(I16, 0))], &[0xff, 0xff]), (I16, vec![-1.0]));
    let both = CfValue::Numbers(F32, vec![Scalar::Float(-1.0), Scalar::Float(1.0)]);
    assert!(decoding(">f4", &[("valid_range", both)]).is_missing(Scalar::Float(1.5)));
    // The library's own fill value, too, where none is named.
    let bytes = decoding("|i1", &[]);
    assert_eq!((bytes.unset.as_slice(), bytes.missing.len()), (&[Scalar::Signed(-127)][..], 0));
    assert!(bytes.is_missing(Scalar::Signed(-127)));
    assert!(decoding("|i1", &[("_FillValue", signed(I16, 300))]).unset.is_empty());
    // In either signedness.
    for range in [[0, -2], [0, 254]] {
        let range = CfValue::Numbers(I16, range.map(Scalar::Signed).to_vec());
        let turned = decoding("|i1", &[("_Unsigned", text_value("true")), ("valid_range", range)]);
        assert_eq!(turned.valid, Some((Scalar::Unsigned(0), Scalar::Unsigned(254))));
    }
}

#[test]
fn turned_bytes_keep_their_fill_value() {
    use ElementType::{F32, I8, U8};
    let stored = [0xffu8, 0xfe, 0x80, 0, 1, 127];
    let text = |value: &str| ("_Unsigned", text_value(value));
    for fill in [signed(I8, -1), CfValue::Numbers(U8, vec![Scalar::Unsigned(255)])] {
        let (element, values) = meant("|i1", &[text("true"), ("_FillValue", fill)], &stored);
        assert_eq!((element, &values[1..]), (F32, &[254.0, 128.0, 0.0, 1.0, 127.0][..]));
        assert!(values[0].is_nan());
    }
    for fill in [signed(I8, -128), CfValue::Numbers(U8, vec![Scalar::Unsigned(128)])] {
        let list = [text("false"), ("_FillValue", fill), ("scale_factor", float(F32, 0.5))];
        let (element, values) = meant("|u1", &list, &stored);
        assert_eq!((element, values[0], values[1]), (F32, -0.5, -1.0));
        assert!(values[2].is_nan());
    }
    // As xarray: only the fill value is turned, only by these words, and only integers.
    let list = [text("true"), ("missing_value", signed(I8, -1))];
    assert_eq!(meant("|i1", &list, &[0xff]), (F32, vec![255.0]));
    assert_eq!(meant("|i1", &[text("True")], &[0xff]), (I8, vec![-1.0]));
    assert_eq!(meant("|u1", &[text("true")], &[0xff]), (U8, vec![255.0]));
    assert_eq!(meant(">f4", &[text("true")], &1f32.to_be_bytes()), (F32, vec![1.0]));
}

#[test]
fn axes_are_recognized_by_attribute_units_or_name() {
    let dimensions = [
        dimension("month", &[], &[1.0, 7.0]),
        dimension("level", &[("units", text_value("millibars"))], &[200.0, 500.0, 850.0]),
        dimension("a", &[("units", text_value("degrees_north"))], &[90.0, 89.25, 88.5]),
        dimension(
            "b",
            &[("axis", text_value("X")), ("units", text_value("degrees_east"))],
            &[0.0, 0.75, 1.5],
        ),
    ];
    let mut info =
        describe::array("u", ">i2".parse().unwrap(), describe::guessed_axes(4), &[2, 3, 3, 3], None);
    complete(&mut info, &values(&[("units", text_value("m s**-1"))]), &dimensions, DefaultFill::Missing);
    let kinds: Vec<AxisKind> = info.axes.iter().map(|a| a.kind).collect();
    assert_eq!(kinds, [AxisKind::Time, AxisKind::Z, AxisKind::Y, AxisKind::X]);
    assert_eq!(info.axes[1].coordinates, Coordinates::Explicit(vec![200.0, 500.0, 850.0]));
    assert_eq!(info.units, "m s**-1");
    assert_eq!(info.world_units, "degrees");
    // Pressure grows downwards: level 0 is at the top.
    let expected = Affine::from_spacing([0.75, -0.75, -0.75], [0.0, 90.0, 0.0]);
    assert_eq!(info.levels[0].world_from_voxel, expected);
    assert_eq!(info.notes, ["axis `level` is uneven: pictures show it on an even grid"]);
}

#[test]
fn notes_say_why_an_axis_is_drawn_by_index() {
    let notes = |units: [Option<&str>; 2], lon: &[f64]| {
        let attributes = |units: Option<&str>| units.map(|units| ("units", text_value(units)));
        let of = |name: &str, units: Option<&str>, samples: &[f64]| {
            dimension(name, &attributes(units).into_iter().collect::<Vec<_>>(), samples)
        };
        let dimensions = [of("lat", units[0], &[0.0, 1.0, 2.0]), of("lon", units[1], lon)];
        let mut info = describe::array("u", "<f4".parse().unwrap(), describe::guessed_axes(2), &[3, 3], None);
        complete(&mut info, &values(&[]), &dimensions, DefaultFill::Missing);
        info.notes
    };
    let (even, turned) = ([0.0, 2.0, 4.0], [0.0, 4.0, 2.0]);
    let why = |axis: &str, why: &str| vec![format!("axis `{axis}` is drawn by index: {why}")];
    assert_eq!(notes([Some("m"), Some("m")], &even), Vec::<String>::new());
    assert_eq!(notes([Some("m"), Some("km")], &even), why("lat", "it is in `m`, another axis in `km`"));
    assert_eq!(notes([None, Some("km")], &even), why("lat", "it has no units"));
    assert_eq!(
        notes([Some("m"), Some("m")], &turned),
        why("lon", "its coordinates do not all rise or all fall")
    );
    assert_eq!(notes([None, None], &even).len(), 2);
}

/// The map to the world of an array with these axes and as many samples as they have coordinates.
fn world_of(dimensions: &[Dimension]) -> Affine {
    let count = |d: &Dimension| d.coordinate.as_ref().map_or(0, |c| c.samples.len() as u64);
    let shape: Vec<u64> = dimensions.iter().map(count).collect();
    let axes = describe::guessed_axes(shape.len());
    let mut info = describe::array("u", "<f4".parse().unwrap(), axes, &shape, None);
    complete(&mut info, &values(&[]), dimensions, DefaultFill::Missing);
    info.levels[0].world_from_voxel
}

#[test]
fn north_is_up_and_east_is_right_whatever_the_units() {
    let (rising, falling, uneven) = ([-60.0, 0.0, 60.0], [60.0, 0.0, -60.0], [60.0, 10.0, -60.0]);
    let turned = [0.0, 90.0, -90.0];
    let are_turned = |lat: (&str, &str, &[f64]), lon: (&str, &str, &[f64])| {
        let of = |(name, units, samples): (&str, &str, &[f64])| {
            let list = if units.is_empty() { Vec::new() } else { vec![("units", text_value(units))] };
            dimension(name, &list, samples)
        };
        let map = world_of(&[of(lat), of(lon)]).0;
        [map[1][1] < 0.0, map[0][0] < 0.0]
    };
    for (lat, lon) in [("", ""), ("degrees_north", ""), ("", "degrees_east"), ("m", "km")] {
        for [y, x] in [["lat", "lon"], ["latitude", "longitude"], ["y", "x"], ["a", "b"]] {
            let about = format!("{y} [{lat}], {x} [{lon}]");
            assert_eq!(are_turned((y, lat, &falling), (x, lon, &rising)), [true, false], "{about}");
            assert_eq!(are_turned((y, lat, &rising), (x, lon, &falling)), [false, true], "{about}");
            assert_eq!(are_turned((y, lat, &uneven), (x, lon, &turned)), [true, false], "{about}");
        }
    }
    let by_index = world_of(&[dimension("lat", &[], &falling), dimension("lon", &[], &rising)]);
    assert_eq!(by_index, Affine::from_spacing([1.0, -1.0, 1.0], [0.0; 3]));
}

#[test]
fn depths_and_pressures_point_down_unless_the_file_says_otherwise() {
    let rising = [5.0, 100.0, 900.0];
    // Whether the first sample is on top.
    let is_first_on_top = |name: &str, list: &[(&str, &str)], samples: &[f64]| {
        let list: Vec<_> = list.iter().map(|&(name, value)| (name, text_value(value))).collect();
        let degrees = |name, units| dimension(name, &[("units", text_value(units))], &[0.0, 1.0, 2.0]);
        let (lat, lon) = (degrees("lat", "degrees_north"), degrees("lon", "degrees_east"));
        world_of(&[dimension(name, &list, samples), lat, lon]).0[2][2] < 0.0
    };
    let meters = [("units", "m")];
    for name in ["depth", "Depth", "deptht", "depthu", "depthv", "depthw", "plev", "pressure"] {
        assert!(is_first_on_top(name, &meters, &rising), "{name}");
        assert!(is_first_on_top(name, &[], &rising), "{name} without units");
        assert!(!is_first_on_top(name, &meters, &[900.0, 100.0, 5.0]), "{name} from below");
    }
    for name in ["z", "lev", "level", "height", "altitude", "k"] {
        assert!(!is_first_on_top(name, &meters, &rising), "{name}");
        assert!(is_first_on_top(name, &[("units", "hPa")], &rising), "{name} in hPa");
        assert!(is_first_on_top(name, &[("positive", "down")], &rising), "{name}, positive down");
        assert!(is_first_on_top(name, &[("standard_name", "depth")], &rising), "{name}, standard depth");
        let sigma = [("standard_name", "atmosphere_sigma_coordinate")];
        assert!(is_first_on_top(name, &sigma, &[0.1, 0.5, 1.0]), "{name}, sigma");
    }
    assert!(!is_first_on_top("depth", &[("units", "m"), ("positive", "up")], &rising));
    assert!(!is_first_on_top("depth", &[("standard_name", "altitude")], &rising));
    assert!(is_first_on_top("depth", &meters, &[0.0, -100.0, -900.0]), "heights");
    assert!(!is_first_on_top("depth", &meters, &[-900.0, -100.0, 0.0]), "heights");
}

#[test]
fn depths_in_the_units_of_the_other_axes_are_heights_below_zero() {
    let meters = [("units", text_value("m"))];
    let of = |name: &str, samples: &[f64]| dimension(name, &meters, samples);
    let lying = |depth: &[f64]| world_of(&[of("depth", depth), of("y", &[0.0, 2.0]), of("x", &[0.0, 3.0])]);
    assert_eq!(lying(&[0.0, 5.0, 10.0]), Affine::from_spacing([3.0, 2.0, -5.0], [0.0; 3]));
    assert_eq!(lying(&[10.0, 5.0, 0.0]), Affine::from_spacing([3.0, 2.0, 5.0], [0.0, 0.0, -10.0]));
    assert_eq!(lying(&[-10.0, -5.0]), Affine::from_spacing([3.0, 2.0, 5.0], [0.0, 0.0, -10.0]));
}

#[test]
fn unknown_axes_become_what_is_left() {
    let bare = |name: &str| Dimension { name: name.into(), coordinate: None };
    let of_type = |dtype: &str, names: &[&str]| {
        let dimensions: Vec<Dimension> = names.iter().map(|n| bare(n)).collect();
        let shape = vec![4; dimensions.len()];
        axes::axes(&dimensions, dtype.parse().unwrap(), &shape).iter().map(|a| a.kind).collect::<Vec<_>>()
    };
    use AxisKind::{Channel, Other, Time, X, Y, Z};
    for name in ["c", "s", "RGB", "rgba", "samples", "color", "colour", "channel", "band"] {
        assert_eq!(of_type("|u1", &["y", "x", name]), [Y, X, Channel], "{name}");
    }
    assert_eq!(of_type("<f4", &["y", "x", "c"]), [Y, X, Z]);
    assert_eq!(of_type("|u1", &["x", "c"]), [X, Y]);
    let kinds = |names: &[&str]| of_type("<f4", names);
    assert_eq!(kinds(&["time", "a", "b"]), [Time, Y, X]);
    assert_eq!(kinds(&["a", "b", "c", "d"]), [Other, Z, Y, X]);
    assert_eq!(kinds(&["lat", "lon", "bnds"]), [Y, X, Other]);
}
