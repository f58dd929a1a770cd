//! Decoding and statistics against naive models, for every element type in both byte orders.

#![expect(clippy::unwrap_used, reason = "helpers of tests, small numbers")]

use corridor_array::values::stats::{Accumulator, MAX_BINS, MIN_BINS, value_range};
use corridor_array::{
    ByteOrder, DType, Decoding, Element, ElementType, ErrorKind, Scalar, decode, elements, with_element,
};
use proptest::prelude::*;

fn any_dtype() -> impl Strategy<Value = DType> {
    (0..ElementType::ALL.len(), any::<bool>()).prop_map(|(e, big)| {
        DType::new(ElementType::ALL[e], if big { ByteOrder::Big } else { ByteOrder::Little })
    })
}

fn scalars(bytes: &[u8], dtype: DType) -> Vec<Scalar> {
    (0..bytes.len() / dtype.size_bytes()).map(|i| dtype.scalar_at(bytes, i).unwrap()).collect()
}

/// Stored elements, some of them equal to the first, which serves as missing value.
fn stored() -> impl Strategy<Value = (DType, Vec<u8>)> {
    (any_dtype(), prop::collection::vec(any::<u64>(), 1..40), prop::collection::vec(any::<bool>(), 40))
        .prop_map(|(dtype, raw, repeat)| {
            let first = raw[0];
            let element = |(v, &r): (&u64, &bool)| {
                let v = if r { first } else { *v };
                let v = if dtype.element() == ElementType::Bool { v & 1 } else { v };
                let mut bytes = v.to_le_bytes()[..dtype.size_bytes()].to_vec();
                if dtype.order() == ByteOrder::Big {
                    bytes.reverse();
                }
                bytes
            };
            (dtype, raw.iter().zip(&repeat).flat_map(element).collect())
        })
}

fn same_bits(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

proptest! {
    #[test]
    fn elements_read_and_write_every_type((dtype, bytes) in stored()) {
        let mut back = Vec::new();
        with_element!(dtype.element(), T => for value in elements::<T>(&bytes, dtype.order()) {
            let mut raw = vec![0; T::SIZE_BYTES];
            value.write(&mut raw, dtype.order());
            back.extend(raw);
        });
        prop_assert_eq!(&back, &bytes);
        let read: Vec<f64> =
            with_element!(dtype.element(), T => elements::<T>(&bytes, dtype.order()).map(Element::to_f64).collect());
        let naive = scalars(&bytes, dtype);
        prop_assert!(read.iter().zip(naive).all(|(a, b)| same_bits(*a, b.as_f64())));
    }

    #[test]
    fn double_decoding_equals_the_definition(
        (dtype, bytes) in stored(), scale in prop_oneof![Just(1.0), -3.0f64..3.0],
        offset in prop_oneof![Just(0.0), -9.0f64..9.0], has_missing: bool, has_valid: bool,
    ) {
        let values = scalars(&bytes, dtype);
        let bounds = (Scalar::Signed(-1000), Scalar::Signed(1000));
        let decoding = Decoding {
            scale, offset,
            missing: if has_missing { vec![values[0]] } else { vec![] },
            output: DType::native(ElementType::F64),
            ..Decoding::identity(dtype)
        };
        // Has no place in pictures, and is a value.
        let ranged = Decoding { valid: has_valid.then_some(bounds), unset: vec![values[0]], ..decoding.clone() };
        let bounded = decode(&bytes, dtype, &ranged).unwrap();
        let out = decode(&bytes, dtype, &decoding).unwrap();
        prop_assert_eq!(&bounded, &out);
        let out: Vec<f64> = elements::<f64>(&out, ByteOrder::NATIVE).collect();
        prop_assert_eq!(out.len(), values.len());
        for (got, stored) in out.iter().zip(values) {
            let expected = decoding.decode(stored);
            // Equal but for the sign of zero, which `x + 0` would lose.
            prop_assert!(same_bits(*got, expected) || (*got == 0.0 && expected == 0.0), "{got} {expected}");
        }
    }

    #[test]
    fn single_decoding_computes_in_single_precision(values in prop::collection::vec(any::<i16>(), 1..40), scale in 0.001f32..2.0, offset in -9f32..9.0) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
        let decoding = Decoding {
            scale: f64::from(scale), offset: f64::from(offset),
            missing: vec![Scalar::Signed(i64::from(values[0]))],
            output: DType::native(ElementType::F32),
            ..Decoding::identity(">i2".parse().unwrap())
        };
        let out = decode(&bytes, ">i2".parse().unwrap(), &decoding).unwrap();
        for (got, v) in elements::<f32>(&out, ByteOrder::NATIVE).zip(&values) {
            let expected = if *v == values[0] { f32::NAN } else { f32::from(*v) * scale + offset };
            prop_assert!(got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()));
        }
    }

    #[test]
    fn identity_decoding_only_swaps((dtype, bytes) in stored()) {
        let out = decode(&bytes, dtype, &Decoding::identity(dtype)).unwrap();
        let mut expected = bytes;
        dtype.to_native(&mut expected);
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn value_ranges_are_true((dtype, bytes) in stored(), has_missing: bool) {
        let values = scalars(&bytes, dtype);
        let mut decoding = Decoding::identity(dtype);
        if has_missing {
            decoding.missing = vec![values[0]];
        }
        let present: Vec<Scalar> =
            values.into_iter().filter(|v| !v.as_f64().is_nan() && !decoding.is_missing(*v)).collect();
        match value_range(&bytes, dtype, &decoding) {
            None => prop_assert!(present.is_empty()),
            Some(range) => {
                prop_assert!(present.contains(&range.min) && present.contains(&range.max));
                prop_assert!(present.iter().all(|v| v.as_f64() >= range.min.as_f64() && v.as_f64() <= range.max.as_f64()));
            }
        }
    }

    #[test]
    fn statistics_equal_the_definition_in_any_order(
        values in prop::collection::vec(prop_oneof![8 => -1e3f64..1e3, 1 => any::<f64>(), 1 => Just(0.0), 2 => (-40i32..40).prop_map(f64::from)], 0..200),
        bins in MIN_BINS..300, cut in 0usize..200,
    ) {
        let gather = |values: &[f64]| {
            let mut all = Accumulator::new(bins).unwrap();
            values.iter().for_each(|v| all.add_value(*v));
            all
        };
        let stats = gather(&values).stats();
        let present: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        prop_assert_eq!(stats.count, present.len() as u64);
        prop_assert_eq!(stats.missing, (values.len() - present.len()) as u64);
        prop_assert_eq!(stats.min, present.iter().copied().reduce(f64::min));
        prop_assert_eq!(stats.max, present.iter().copied().reduce(f64::max));
        if let Some(histogram) = &stats.histogram {
            prop_assert!(histogram.counts.len() <= bins);
            prop_assert_eq!(histogram.counts.iter().sum::<u64>(), stats.count);
            let (min, max) = (stats.min.unwrap(), stats.max.unwrap());
            prop_assert!(histogram.low <= min && (max < histogram.high || histogram.high == f64::MAX));
            let width = histogram.high / histogram.counts.len() as f64 - histogram.low / histogram.counts.len() as f64;
            let spread = max / 2.0 - min / 2.0;
            prop_assert!(width <= 8.0 * spread / bins as f64 || spread == 0.0 || width <= 1e-9 * min.abs().max(max.abs()), "too coarse: {width} for {spread}");
        }
        let mut reversed = values.clone();
        reversed.reverse();
        let backwards = gather(&reversed).stats();
        prop_assert_eq!(&backwards.histogram, &stats.histogram);
        let (left, right) = values.split_at(cut.min(values.len()));
        let mut merged = gather(left);
        merged.merge(&gather(right));
        prop_assert_eq!(&merged.stats().histogram, &stats.histogram);
        prop_assert_eq!(merged.stats().count, stats.count);
        prop_assert_eq!(merged.stats().max, stats.max);
    }
}

#[test]
fn small_integers_get_a_bin_each() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut all = Accumulator::new(256).unwrap();
    let dtype = "u1".parse().unwrap();
    for _ in 0..3 {
        all.add(&bytes, dtype, &Decoding::identity(dtype)).unwrap();
    }
    let stats = all.stats();
    let histogram = stats.histogram.unwrap();
    assert_eq!((histogram.low, histogram.high), (0.0, 256.0));
    assert_eq!(histogram.counts, vec![3; 256]);
    assert_eq!((stats.min, stats.max, stats.mean), (Some(0.0), Some(255.0), Some(127.5)));
}

#[test]
fn statistics_travel_as_json() {
    let mut all = Accumulator::new(8).unwrap();
    for value in [1.0, 2.0, f64::NAN, f64::INFINITY] {
        all.add_value(value);
    }
    let text = serde_json::to_string(&all.stats()).unwrap();
    assert_eq!(
        text,
        r#"{"count":2,"missing":2,"min":1.0,"max":2.0,"mean":1.5,"histogram":{"low":1.0,"high":2.25,"counts":[1,0,0,0,1]}}"#
    );
    assert_eq!(
        serde_json::from_str::<corridor_array::values::stats::ValueStats>(&text).unwrap(),
        all.stats()
    );
    assert!(Accumulator::new(0).unwrap().stats().histogram.is_none());
}

#[test]
fn integers_times_an_integer_wrap_as_in_numpy() {
    let decoding =
        Decoding { scale: 3.0, output: "<i2".parse().unwrap(), ..Decoding::identity("|u1".parse().unwrap()) };
    let out = decode(&[0, 1, 255], "|u1".parse().unwrap(), &decoding).unwrap();
    assert_eq!(elements::<i16>(&out, ByteOrder::NATIVE).collect::<Vec<_>>(), [0, 3, 765]);
    let narrow = Decoding { output: "|i1".parse().unwrap(), ..decoding };
    let out = decode(&[0, 1, 255], "|u1".parse().unwrap(), &narrow).unwrap();
    assert_eq!(elements::<i8>(&out, ByteOrder::NATIVE).collect::<Vec<_>>(), [0, 3, -3]);
}

#[test]
fn bits_are_read_as_they_are_meant() {
    let dtype: DType = ">i2".parse().unwrap();
    let decoding = Decoding {
        unsigned: Some(true),
        missing: vec![Scalar::Unsigned(65535)],
        output: "<f4".parse().unwrap(),
        ..Decoding::identity(dtype)
    };
    let bytes = [0xff, 0xff, 0xff, 0xfe, 0, 7];
    let out: Vec<f32> = elements(&decode(&bytes, dtype, &decoding).unwrap(), ByteOrder::NATIVE).collect();
    assert!(out[0].is_nan());
    assert_eq!(out[1..], [65534.0, 7.0]);
    let range = value_range(&bytes, dtype, &decoding).unwrap();
    assert_eq!((range.min, range.max), (Scalar::Unsigned(7), Scalar::Unsigned(65534)));
    assert_eq!(decoding.fill_value(dtype), Some(Scalar::Signed(-1)));
    let mut all = Accumulator::new(0).unwrap();
    all.add(&bytes, dtype, &decoding).unwrap();
    assert_eq!((all.stats().missing, all.stats().max), (1, Some(65534.0)));
}

#[test]
fn what_says_no_number_is_not_decoded() {
    let dtype: DType = "<i2".parse().unwrap();
    let decoding =
        Decoding { obstacle: Some("its `scale_factor` is text".into()), ..Decoding::identity(dtype) };
    let error = decode(&[0, 0], dtype, &decoding).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.message().contains("scale_factor"), "{error}");
}

#[test]
fn bad_input_is_refused() {
    let dtype: DType = "<f4".parse().unwrap();
    let kind = |r: corridor_array::Result<Vec<u8>>| r.err().map(|e| e.kind());
    assert_eq!(kind(decode(&[0; 7], dtype, &Decoding::identity(dtype))), Some(ErrorKind::Corrupt));
    let integer = Decoding { scale: 0.5, ..Decoding::identity("u1".parse().unwrap()) };
    assert_eq!(kind(decode(&[0; 7], "u1".parse().unwrap(), &integer)), Some(ErrorKind::Invalid));
    assert!(Accumulator::new(MAX_BINS + 1).is_err());
    assert!(Accumulator::new(8).unwrap().add(&[0; 7], dtype, &Decoding::identity(dtype)).is_err());
}
