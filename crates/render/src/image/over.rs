//! The operator `over` on rows of pixels: front pixels are kept, and pixels behind them are attenuated by the
//! opacity of the front.

use crate::simd::{Instructions, Simd, SimdJob};

/// Composites pixels over others: `front + behind * (1 - opacity of front)` replaces `front`. The pixels are
/// premultiplied RGBA, so the operator is associative, and images may be joined in any grouping that keeps
/// their order. Pixels without a counterpart stay unchanged. (Porter and Duff, "Compositing digital images",
/// 1984.)
pub fn over(front: &mut [[f32; 4]], behind: &[[f32; 4]]) {
    // The compiler vectorizes the loop below for AVX2 and for the baseline; for AVX-512 it generates gathers,
    // which take ten times as long, and wider vectors would be limited by memory bandwidth all the same.
    Instructions::Avx2.run(Over { front, behind });
}

/// Numbers that are vectorized together: four pixels.
const TOGETHER: usize = 16;

struct Over<'a> {
    front: &'a mut [[f32; 4]],
    behind: &'a [[f32; 4]],
}

impl SimdJob for Over<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let count = self.front.len().min(self.behind.len());
        let (front, front_rest) = self.front[..count].as_flattened_mut().as_chunks_mut::<TOGETHER>();
        let (behind, behind_rest) = self.behind[..count].as_flattened().as_chunks::<TOGETHER>();
        for (front, behind) in front.iter_mut().zip(behind) {
            blend(front, behind);
        }
        let front_rest = front_rest.as_chunks_mut::<4>().0;
        for (front, behind) in front_rest.iter_mut().zip(behind_rest.as_chunks::<4>().0) {
            blend(front, behind);
        }
    }
}

/// Composites whole pixels; the opacity of each is the last of its four numbers.
#[inline(always)]
fn blend<const N: usize>(front: &mut [f32; N], behind: &[f32; N]) {
    let near = *front;
    for i in 0..N {
        front[i] = near[i] + behind[i] * (1.0 - near[i | 3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pixels that differ from one another, premultiplied.
    fn pixels(count: u16, seed: u16) -> Vec<[f32; 4]> {
        let part = |i: u16| f32::from((i.wrapping_mul(37).wrapping_add(seed)) % 101) / 100.0;
        (0..count).map(|i| [part(i), part(i + 1), part(i + 2), 1.0].map(|v| v * part(i + 3))).collect()
    }

    #[test]
    fn each_pixel_is_put_behind_its_own() {
        for count in [0, 1, 3, 4, 5, 8, 63, 1000] {
            let (front, behind) = (pixels(count, 5), pixels(count, 60));
            let mut found = front.clone();
            over(&mut found, &behind);
            for ((near, far), found) in front.iter().zip(&behind).zip(&found) {
                for channel in 0..4 {
                    let expected = near[channel] + far[channel] * (1.0 - near[3]);
                    assert!((found[channel] - expected).abs() < 1e-6, "{near:?} over {far:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn pixels_without_a_partner_stay() {
        let mut found = pixels(7, 5);
        over(&mut found, &pixels(5, 60));
        assert_eq!(found[5..], pixels(7, 5)[5..]);
        over(&mut found[..2], &pixels(9, 60));
        assert_eq!(found[5..], pixels(7, 5)[5..]);
    }
}
