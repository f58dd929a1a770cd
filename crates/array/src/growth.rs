//! Growth: whether a data set is an earlier one with elements appended along one axis.

use crate::{ArrayInfo, Dataset};

impl Dataset {
    /// Whether this is `before` with more at the end: the same arrays under the same numbers, with the same types, axes and
    /// decodings. No array is shorter; an array that is longer is so along one axis, which has the same name in all of them.
    /// Elements of `before` are then at the same places.
    ///
    /// Descriptions do not show whether values have changed; data that are appended to keep theirs.
    #[must_use]
    pub fn has_grown_from(&self, before: &Self) -> bool {
        if self.arrays.len() < before.arrays.len() {
            return false;
        }
        let mut along: Option<&str> = None;
        for (now, then) in self.arrays.iter().zip(&before.arrays) {
            let Some(longer) = now.longer_than(then) else { return false };
            let Some(name) = longer.and_then(|axis| then.axes.get(axis)).map(|axis| axis.name.as_str())
            else {
                continue;
            };
            if along.is_some_and(|other| other != name) {
                return false;
            }
            along = Some(name);
        }
        along.is_some() || self.arrays.len() > before.arrays.len()
    }
}

impl ArrayInfo {
    /// Returns the axis along which this is longer than `before`, if any; `None` where it is another array or has changed
    /// otherwise.
    fn longer_than(&self, before: &Self) -> Option<Option<usize>> {
        let is_same = self.name == before.name
            && self.dtype == before.dtype
            && self.meaning == before.meaning
            && self.decoding == before.decoding
            && self.axes.len() == before.axes.len()
            && self
                .axes
                .iter()
                .zip(&before.axes)
                .all(|(a, b)| a.name == b.name && a.kind == b.kind && a.units == b.units)
            && self.levels.len() >= before.levels.len();
        let is_level = |(now, then): (&crate::Level, &crate::Level)| {
            now.origin == then.origin && now.factor == then.factor
        };
        if !is_same || !self.levels.iter().zip(&before.levels).all(is_level) {
            return None;
        }
        let sizes = || self.shape().iter().zip(before.shape());
        let longer: Vec<usize> =
            sizes().enumerate().filter(|(_, (now, then))| now > then).map(|(axis, _)| axis).collect();
        (sizes().all(|(now, then)| now >= then) && longer.len() <= 1).then(|| longer.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use crate::conformance::MemorySource;

    #[test]
    fn growing_is_getting_longer_along_one_axis() {
        let of = |dtype: &str, shape: &[u64]| {
            MemorySource::counting(dtype, shape, &vec![2; shape.len()]).dataset()
        };
        let before = of("<u2", &[5, 7]);
        assert!(of("<u2", &[6, 7]).has_grown_from(&before));
        assert!(of("<u2", &[5, 9]).has_grown_from(&before));
        for other in [
            of("<u2", &[6, 8]),
            of("<u2", &[4, 7]),
            of("<u2", &[5, 7]),
            of("<i2", &[6, 7]),
            of("<u2", &[6, 7, 1]),
        ] {
            assert!(!other.has_grown_from(&before), "{:?}", other.arrays[0].shape());
        }
    }
}
