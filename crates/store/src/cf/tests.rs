//! What netCDF4-python and the CF conventions make of attributes, case by case.

use array::{Affine, AxisKind, Coordinates};

use super::*;
use crate::describe;

fn values(list: &[(&str, Value)]) -> Values {
    list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn text_value(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn float(element: ElementType, value: f64) -> Value {
    Value::Numbers(element, vec![Scalar::Float(value)])
}

fn signed(element: ElementType, value: i64) -> Value {
    Value::Numbers(element, vec![Scalar::Signed(value)])
}

fn decoding(dtype: &str, list: &[(&str, Value)]) -> array::Decoding {
    decoding::decoding(dtype.parse().unwrap(), &values(list), DefaultFill::Missing)
}

fn dimension(name: &str, list: &[(&str, Value)], samples: &[f64]) -> Dimension {
    Dimension {
        name: name.into(),
        coordinate: Some(Coordinate { values: values(list), samples: samples.to_vec() }),
    }
}

#[test]
fn packed_integers_unpack_as_numpy_promotes() {
    use ElementType::{F32, F64, I16, I32};
    let output = |dtype, scale, offset| {
        decoding(dtype, &[("scale_factor", float(scale, 0.5)), ("add_offset", float(offset, 3.0))])
            .output
            .element()
    };
    assert_eq!(output(">i2", F64, F64), F64);
    assert_eq!(output(">i2", F32, F32), F32);
    assert_eq!(output(">i4", F32, F32), F64);
    assert_eq!(output(">f4", F32, F64), F64);
    let plain = decoding("|i1", &[]);
    assert_eq!(plain.missing, [Scalar::Signed(-127)], "bytes have a fill value as other types have");
    let filled = decoding(">i2", &[]);
    assert_eq!((filled.missing.as_slice(), filled.output.element()), (&[Scalar::Signed(-32_767)][..], F64));
    let packed = decoding(
        ">i2",
        &[
            ("_FillValue", signed(I16, -5)),
            ("missing_value", signed(I32, -7)),
            ("scale_factor", float(F32, 2.0)),
        ],
    );
    assert!(packed.decode(Scalar::Signed(-5)).is_nan() && packed.decode(Scalar::Signed(-7)).is_nan());
    assert_eq!(packed.decode(Scalar::Signed(4)).to_bits(), 8f64.to_bits());
}

#[test]
fn attributes_that_the_type_cannot_hold_are_not_applied() {
    let wide = decoding(">f4", &[("missing_value", float(ElementType::F64, 1e20))]);
    assert_eq!(wide.missing, [Scalar::Float(9.969_209_968_386_869e36)], "1e20 is no single");
    let out_of_range = decoding("|i1", &[("_FillValue", signed(ElementType::I16, 300))]);
    assert!(out_of_range.missing.is_empty(), "neither 300 nor, since the file names one, the default");
    let exact = decoding(">f4", &[("missing_value", float(ElementType::F64, -999.0))]);
    assert!(exact.decode(Scalar::Float(-999.0)).is_nan());
}

#[test]
fn valid_ranges_may_be_one_sided() {
    let from = decoding(">i2", &[("valid_min", signed(ElementType::I16, 0))]);
    assert_eq!(from.valid, Some((Scalar::Signed(0), Scalar::Signed(32_767))));
    let both = Value::Numbers(ElementType::F32, vec![Scalar::Float(-1.0), Scalar::Float(1.0)]);
    let range = decoding(">f4", &[("valid_range", both)]);
    assert!(range.decode(Scalar::Float(1.5)).is_nan());
}

#[test]
fn unsigned_bytes_keep_their_fill_value() {
    let list = [("_Unsigned", text_value("true")), ("_FillValue", signed(ElementType::I8, -1))];
    let dtype = stored_dtype("|i1".parse().unwrap(), &values(&list));
    assert_eq!(dtype.to_string(), "|u1");
    assert_eq!(decoding("|u1", &list).missing, [Scalar::Unsigned(255)]);
}

#[test]
fn axes_are_recognised_by_attribute_units_or_name() {
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
    assert_eq!(info.notes.len(), 1);
}

#[test]
fn unknown_axes_become_what_is_left() {
    let bare = |name: &str| Dimension { name: name.into(), coordinate: None };
    let kinds = |names: &[&str]| {
        let dimensions: Vec<Dimension> = names.iter().map(|n| bare(n)).collect();
        axes::axes(&dimensions).iter().map(|a| a.kind).collect::<Vec<_>>()
    };
    use AxisKind::{Other, Time, X, Y, Z};
    assert_eq!(kinds(&["time", "a", "b"]), [Time, Y, X]);
    assert_eq!(kinds(&["a", "b", "c", "d"]), [Other, Z, Y, X]);
    assert_eq!(kinds(&["lat", "lon", "bnds"]), [Y, X, Other]);
}
