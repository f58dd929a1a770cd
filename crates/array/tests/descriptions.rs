//! Descriptions that say NaN, infinity and -0: compared, and sent as JSON and read again.

#![expect(clippy::unwrap_used, reason = "tests")]

use corridor_array::conformance::one_array;
use corridor_array::{Affine, Attribute, Coordinates, Dataset, Decoding, Scalar};

/// A description that has such numbers wherever one can be.
fn odd(value: f64) -> Dataset {
    let mut dataset = one_array("<f4".parse().unwrap(), &[2, 3, 4, 5], &[1, 3, 4, 5]);
    let array = &mut dataset.arrays[0];
    array
        .attributes
        .insert("range".into(), Attribute::Numbers(vec![Scalar::Float(value), Scalar::Signed(-1)], None));
    array.decoding.missing = vec![Scalar::Float(value)];
    array.decoding.valid = Some((Scalar::Float(-1.0), Scalar::Float(value)));
    (array.decoding.scale, array.decoding.offset) = (2.0, value);
    array.axes[0].coordinates = Coordinates::Explicit(vec![value, 1.0]);
    array.axes[1].coordinates = Coordinates::Regular { origin: value, step: 1.0 };
    array.levels[0].world_from_voxel = Affine::from_spacing([1.0, value, 2.0], [value, 0.0, 0.0]);
    array.levels[0].factor[0] = value;
    dataset
}

const ODD: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0];

#[test]
fn a_description_with_nan_is_itself() {
    for (i, a) in ODD.into_iter().enumerate() {
        for (j, b) in ODD.into_iter().enumerate() {
            assert_eq!(odd(a) == odd(b), i == j, "{a} {b}");
        }
    }
    let (quiet, other) = (f64::from_bits(0x7ff8_0000_0000_0000), f64::from_bits(0xfff8_0000_0000_0001));
    assert_eq!(odd(quiet), odd(other), "JSON has one NaN, so there is one");
}

#[test]
fn a_description_with_nan_survives_being_sent() {
    for value in ODD {
        let sent = serde_json::to_string(&odd(value)).unwrap();
        let read: Dataset = serde_json::from_str(&sent).unwrap();
        assert_eq!(read, odd(value), "{sent}");
        // Word for word, so that signs and infinities are told from one another by whoever reads them elsewhere.
        assert_eq!(serde_json::to_string(&read).unwrap(), sent);
    }
    let regular = r#"{"regular":{"origin":null,"step":1}}"#;
    let known: Coordinates = serde_json::from_str(regular).unwrap();
    assert_eq!(known, Coordinates::Regular { origin: f64::NAN, step: 1.0 }, "what older servers wrote");
    let texts = r#"{"explicit":["1.5"]}"#;
    assert!(serde_json::from_str::<Coordinates>(texts).is_err(), "other texts are no numbers");
}

#[test]
fn integers_are_equal_by_value_and_never_to_floats() {
    assert_eq!(Scalar::Signed(5), Scalar::Unsigned(5), "JSON does not tell them apart");
    assert_ne!(Scalar::Signed(-1), Scalar::Unsigned(u64::MAX));
    assert_ne!(Scalar::Float(5.0), Scalar::Unsigned(5));
}

#[test]
fn a_large_integer_is_missing_only_where_it_is_the_fill_value() {
    let decoding =
        |missing| Decoding { missing: vec![missing], ..Decoding::identity("<i8".parse().unwrap()) };
    let big = 1i64 << 60;
    // Read from JSON, where 2^60 has no sign, and doubles hold no neighbors.
    let fill: Scalar = serde_json::from_str(&serde_json::to_string(&Scalar::Signed(big)).unwrap()).unwrap();
    assert!(decoding(fill).is_missing(Scalar::Signed(big)));
    assert!(!decoding(fill).is_missing(Scalar::Signed(big + 1)));
    let ranged = Decoding {
        valid: Some((Scalar::Signed(-big), Scalar::Unsigned(big.unsigned_abs()))),
        ..Decoding::identity("<i8".parse().unwrap())
    };
    assert!(ranged.is_missing(Scalar::Signed(big + 1)) && !ranged.is_missing(Scalar::Signed(big)));
    assert!(ranged.is_missing(Scalar::Signed(-big - 1)) && !ranged.is_missing(Scalar::Signed(-big)));
}

#[test]
fn zero_is_a_fill_value_of_either_sign() {
    let decoding =
        Decoding { missing: vec![Scalar::Float(0.0)], ..Decoding::identity("<f4".parse().unwrap()) };
    assert!(decoding.is_missing(Scalar::Float(-0.0)));
}
