//! Growth: tests whether a data set is an earlier one with elements appended along one axis.

use crate::{ArrayInfo, Dataset};

impl Dataset {
    /// Whether this is `before` with more at the end: the same arrays under the same numbers, with the same types, axes and
    /// decodings. No array is shorter; an array that is longer is so along one axis, which has the same name in all of them.
    /// Elements of `before` are then at the same places at full resolution; for coarser levels see
    /// [`ArrayInfo::levels_kept_from`].
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
    /// Counts the levels, from full resolution on, that are made as those of the same array `before` it grew: their elements are
    /// at the same places. How a level is made may depend on the length of its axes.
    #[must_use]
    pub fn levels_kept_from(&self, before: &Self) -> usize {
        let pairs = self.levels.iter().zip(&before.levels);
        pairs.take_while(|(now, then)| now.origin == then.origin && now.factor == then.factor).count()
    }

    /// Returns the axis along which this is longer than `before`, if any; `None` if it is another array or has other changes.
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
                .all(|(a, b)| a.name == b.name && a.kind == b.kind && a.units == b.units);
        if !is_same {
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
        // Coarser levels that are made otherwise do not matter at full resolution.
        let mut longer = of("<u2", &[6, 7]).as_ref().clone();
        let kept = longer.arrays[0].levels_kept_from(&before.arrays[0]);
        assert_eq!(kept, before.arrays[0].levels.len());
        let mut coarser = longer.arrays[0].levels[0].clone();
        coarser.factor = vec![1.0, 2.0];
        longer.arrays[0].levels.truncate(1);
        longer.arrays[0].levels.push(coarser.clone());
        let mut shorter = longer.clone();
        shorter.arrays[0].levels[0].shape[0] = 5;
        shorter.arrays[0].levels[1].factor = vec![2.0, 2.0];
        assert!(longer.has_grown_from(&shorter));
        assert_eq!(longer.arrays[0].levels_kept_from(&shorter.arrays[0]), 1);
    }
}
