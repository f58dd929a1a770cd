//! Halving of a dense box of voxels: the mean or the most frequent value of each group of up to 2 x 2 x 2.
//!
//! Only present voxels count: neither missing nor NaN. A group without any keeps its first voxel, which is missing or NaN too. Means
//! of integers are exact and rounded half up (toward positive infinity); means of floats are summed in double precision. If a mean
//! equals a missing value, the first present voxel is used instead. Of equally frequent labels the smallest is used.

use array::{DType, Decoding, Element, Meaning, elements, with_element};

/// Halves `finer`, C order of `shape`, along the axes in `halved`, rounding up.
pub(super) fn halve(
    finer: &[u8],
    shape: &[usize],
    halved: &[bool],
    dtype: DType,
    decoding: &Decoding,
    meaning: Meaning,
) -> Vec<u8> {
    let dtype = decoding.meant(dtype);
    with_element!(dtype.element(), T => {
        let values: Vec<T> = elements::<T>(finer, dtype.order()).collect();
        let every_integer_exists = !dtype.element().is_float() && !decoding.hides_some();
        let exists = |v: T| every_integer_exists || !(v.is_nan() || decoding.is_missing(v.to_scalar()));
        let mut out = Vec::with_capacity(finer.len() / 2);
        let mut raw = vec![0; dtype.size_bytes()];
        groups(&values, shape, halved, |group: &[T]| {
            let value = match meaning {
                Meaning::Intensity => mean_of_group(group, exists, |v| decoding.is_missing(v.to_scalar())),
                // Neither texts nor packed colors have levels of their own.
                Meaning::Labels | Meaning::Text | Meaning::Colors => mode_of_group(group, exists),
            };
            value.write(&mut raw, dtype.order());
            out.extend_from_slice(&raw);
        });
        out
    })
}

/// Calls `each` with the voxels of every group, in C order of the groups.
fn groups<T: Element>(values: &[T], shape: &[usize], halved: &[bool], mut each: impl FnMut(&[T])) {
    let (Some((&columns, outer)), Some((&is_row_halved, outer_halved))) =
        (shape.split_last(), halved.split_last())
    else {
        return values.first().into_iter().for_each(|v| each(&[*v]));
    };
    if shape.contains(&0) {
        return;
    }
    let width = if is_row_halved { 2 } else { 1 };
    let places: Vec<Vec<Vec<usize>>> = outer.iter().zip(outer_halved).map(|(&n, &h)| members(n, h)).collect();
    let mut group = Vec::with_capacity(8);
    let mut at = vec![0; outer.len()];
    loop {
        let rows = rows(&places, &at, outer);
        for first in (0..columns).step_by(width) {
            group.clear();
            let end = (first + width).min(columns);
            for row in &rows {
                group.extend_from_slice(&values[row * columns + first..row * columns + end]);
            }
            each(&group);
        }
        if !advance(&mut at, &places) {
            return;
        }
    }
}

/// Finer positions of each coarser one, along one axis.
fn members(n: usize, is_halved: bool) -> Vec<Vec<usize>> {
    let width = if is_halved { 2 } else { 1 };
    (0..n).step_by(width).map(|first| (first..(first + width).min(n)).collect()).collect()
}

/// The finer rows, as numbers in C order of the outer axes, that a coarser row at `at` is made of.
fn rows(places: &[Vec<Vec<usize>>], at: &[usize], outer: &[usize]) -> Vec<usize> {
    places.iter().zip(at).zip(outer).fold(vec![0], |found, ((places, &at), &n)| {
        found.iter().flat_map(|row| places[at].iter().map(move |place| row * n + place)).collect()
    })
}

/// Advances to the next position in C order; `false` after the last.
fn advance(at: &mut [usize], places: &[Vec<Vec<usize>>]) -> bool {
    for axis in (0..at.len()).rev() {
        at[axis] += 1;
        if at[axis] < places[axis].len() {
            return true;
        }
        at[axis] = 0;
    }
    false
}

fn mean_of_group<T: Mean>(group: &[T], exists: impl Fn(T) -> bool, is_missing: impl Fn(T) -> bool) -> T {
    let existing = || group.iter().copied().filter(|v| exists(*v));
    let Some(first) = existing().next() else { return group[0] };
    let mean = T::mean(existing());
    if is_missing(mean) { first } else { mean }
}

fn mode_of_group<T: Element>(group: &[T], exists: impl Fn(T) -> bool) -> T {
    let existing = || group.iter().copied().filter(|v| exists(*v));
    let count = |value: T| existing().filter(|v| *v == value).count();
    let best = existing().map(|value| (count(value), value)).reduce(|best, next| {
        let wins = next.0 > best.0 || (next.0 == best.0 && next.1 < best.1);
        if wins { next } else { best }
    });
    best.map_or(group[0], |(_, value)| value)
}

/// Types with a mean; of at least one value.
trait Mean: Element {
    fn mean(values: impl Iterator<Item = Self>) -> Self;
}

macro_rules! mean {
    (integers $($type:ty => $sum:ty;)*) => {$(
        impl Mean for $type {
            #[inline]
            #[expect(clippy::cast_possible_truncation, clippy::allow_attributes, reason = "a mean lies among its values")]
            #[allow(clippy::cast_sign_loss, reason = "a mean lies among its values")]
            fn mean(values: impl Iterator<Item = Self>) -> Self {
                let (sum, count) = values.fold((0, 0), |(sum, n): ($sum, $sum), v| (sum + <$sum>::from(v), n + 1));
                (2 * sum + count).div_euclid(2 * count) as Self
            }
        }
    )*};
    (floats $($type:ty, $round:expr;)*) => {$(
        impl Mean for $type {
            #[inline]
            fn mean(values: impl Iterator<Item = Self>) -> Self {
                let (sum, count) = values.fold((0.0, 0.0), |(sum, n), v| (sum + v.to_f64(), n + 1.0));
                let round: fn(f64) -> Self = $round;
                round(sum / count)
            }
        }
    )*};
}

mean! { integers
    u8 => i64; u16 => i64; u32 => i64; u64 => i128; i8 => i64; i16 => i64; i32 => i64; i64 => i128;
}
mean! { floats
    array::F16, Self::from_f64;
    f32, single;
    f64, |mean| mean;
}

#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn single(mean: f64) -> f32 {
    mean as f32
}
