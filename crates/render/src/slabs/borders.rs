//! Borders of slabs: slabs are thin where much is visible, thick where little is.
//!
//! When the camera turns, a point off the plane of its slab is drawn beside its true position; this error
//! grows with the thickness of the slab. So a small picture of thin slabs is cast first, which measures the
//! visible amount in each of them; the borders are placed so that all slabs hold the same amount. A part of
//! the slabs is spread evenly, for points that become visible only when the camera turns.

use super::Slabs;

/// Pixels of the picture for each of the small one, along a side.
pub(super) const SMALLER: u32 = 16;
/// Thin slabs of the small picture.
pub(super) const THIN: u32 = 64;
/// Share of the slabs that is spread evenly, independent of what is visible.
const EVEN: f64 = 0.3;
/// Largest factor by which slabs may be thinner than even ones: samples lie a voxel apart.
const THINNEST: f64 = 4.0;
/// Rounds in which the excess of slabs at the smallest thickness is distributed among the others.
const ROUNDS: usize = 8;

/// Returns the visible amount in each slab, in any unit.
pub(super) fn seen_in(slabs: &Slabs) -> Vec<f64> {
    let mut through = vec![1.0; slabs.size.width as usize * slabs.size.height as usize];
    let of_slab = |slab: &super::Slab| {
        let mut seen = 0.0;
        for (row, texels) in slab.rgba.chunks_exact(slab.rect.width.max(1) as usize * 4).enumerate() {
            let first = (slab.rect.top as usize + row) * slabs.size.width as usize + slab.rect.left as usize;
            for (through, texel) in through[first..].iter_mut().zip(texels.chunks_exact(4)) {
                let own = *through * (f64::from(texel[3]) / 255.0).powi(2);
                (seen, *through) = (seen + own, *through - own);
            }
        }
        seen
    };
    slabs.slabs.iter().map(of_slab).collect()
}

/// Returns the borders of `count` slabs between the first and the last of `borders`, from the visible amount
/// between each two of them.
pub(super) fn spread(borders: &[f64], seen: &[f64], count: u32) -> Vec<f64> {
    let (Some(&first), Some(&last)) = (borders.first(), borders.last()) else { return Vec::new() };
    let widths: Vec<f64> = borders.windows(2).map(|pair| (pair[1] - pair[0]) / (last - first)).collect();
    let shares = shares(&widths, seen);
    let mut cuts = vec![first];
    let (mut before, mut thin) = (0.0, 0);
    for number in 1..count {
        let wanted = f64::from(number) / f64::from(count);
        while thin + 1 < seen.len() && before + shares[thin] < wanted {
            before += shares[thin];
            thin += 1;
        }
        let part = ((wanted - before) / shares[thin]).clamp(0.0, 1.0);
        cuts.push(borders[thin] + (borders[thin + 1] - borders[thin]) * part);
    }
    cuts.push(last);
    cuts
}

/// Returns the shares of the slabs, with the sum 1, for parts with these shares of the whole width.
fn shares(widths: &[f64], seen: &[f64]) -> Vec<f64> {
    let total: f64 = seen.iter().sum();
    if total <= 0.0 {
        return widths.to_vec();
    }
    let pairs = || widths.iter().zip(seen);
    let mut shares: Vec<f64> =
        pairs().map(|(width, seen)| EVEN * width + (1.0 - EVEN) * seen / total).collect();
    for _ in 0..ROUNDS {
        shares.iter_mut().zip(widths).for_each(|(share, width)| *share = share.min(width * THINNEST));
        let all: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= all);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::super::{Cutting, Slab};
    use super::*;
    use crate::{Bounds, Camera, ImageSize, Rect};

    #[test]
    fn what_is_hidden_does_not_count() {
        let rect = Rect { left: 1, top: 0, width: 1, height: 2 };
        let of = |alphas: [u8; 2]| Slab { rect, rgba: alphas.iter().flat_map(|&a| [0, 0, 0, a]).collect() };
        let bounds = Bounds { min: [0.0; 3], max: [1.0; 3] };
        let slabs = Slabs {
            cutting: Cutting::Planes,
            camera: Camera::framing(&bounds, [0.0, 1.0, 0.0]),
            size: ImageSize { width: 2, height: 2 },
            guard: 0.0,
            normal: [0.0, 1.0, 0.0],
            borders: vec![0.0, 1.0, 2.0, 3.0],
            slabs: vec![of([255, 0]), Slab::default(), of([255, 51])],
        };
        let seen = seen_in(&slabs);
        assert_eq!((seen[0], seen[1]), (1.0, 0.0));
        assert!((seen[2] - 0.04).abs() < 1e-12, "{seen:?}");
    }

    #[test]
    fn slabs_are_thin_where_much_is_seen_and_nowhere_very_thick() {
        let thin: Vec<f64> = (0..=64).map(f64::from).collect();
        let even = spread(&thin, &[0.0; 64], 4);
        assert_eq!(even, [0.0, 16.0, 32.0, 48.0, 64.0]);
        let mut seen = vec![0.0; 64];
        seen[20..24].fill(3.0);
        let cuts = spread(&thin, &seen, 32);
        assert_eq!((cuts.len(), cuts[0], cuts[32]), (33, 0.0, 64.0));
        let widths: Vec<f64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(widths.iter().all(|&width| width > 0.49 && width < 2.0 / EVEN), "{widths:?}");
        let within = cuts.iter().filter(|&&cut| (20.0..24.0).contains(&cut)).count();
        assert!(
            (7..=9).contains(&within),
            "{within} of 32 in the 4 that all is seen in: as thin as they may be"
        );
    }
}
