//! Opacity correction: the opacity of intervals of any length, from that of a whole sample, sixteen at once.

use crate::simd::LANES;

/// Returns the opacities of intervals of this length in samples, as multiples of `opacities`, those of whole
/// samples: `(1 - (1 - a)^length) / a`. Lengths from 0 to 1; exact to a hundred millionth.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "opacities are f32")]
pub(crate) fn corrected_ratios(opacities: &[f32; LANES], lengths: &[f32; LANES]) -> [f32; LANES] {
    // Less transparency than this is opaque, and very low opacity is proportional to the length.
    const OPAQUE: f64 = 1e-30;
    const FAINT: f64 = 1e-12;
    let mut corrected_ratios = [0.0; LANES];
    for lane in 0..LANES {
        let (opacity, length) = (f64::from(opacities[lane]), f64::from(lengths[lane]));
        let through = 1.0 - opacity;
        let logarithm = ln(if through > OPAQUE { through } else { OPAQUE });
        let own = 1.0 - exp(logarithm * length);
        let own = if through > OPAQUE { own } else { 1.0 };
        let ratio = own / (if opacity > FAINT { opacity } else { 1.0 });
        corrected_ratios[lane] = (if opacity > FAINT { ratio } else { length }) as f32;
    }
    corrected_ratios
}

/// Natural logarithm of numbers from [`f64::MIN_POSITIVE`] on.
#[inline(always)]
fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    /// 2^52 with the same low bits as a whole number added to it.
    const WHOLE: u64 = 0x433 << 52;
    let exponent = f64::from_bits(x.to_bits() >> 52 | WHOLE) - f64::from_bits(WHOLE) - 1023.0;
    let mantissa = f64::from_bits(x.to_bits() & MANTISSA | ONE);
    let is_upper = mantissa > std::f64::consts::SQRT_2;
    let mantissa = if is_upper { mantissa * 0.5 } else { mantissa };
    let exponent = if is_upper { exponent + 1.0 } else { exponent };
    // The series of the area hyperbolic tangent; |z| < 0.172.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let s = z * z;
    let series = 1.0 + s * (1.0 / 3.0 + s * (0.2 + s * (1.0 / 7.0 + s * (1.0 / 9.0 + s / 11.0))));
    exponent * std::f64::consts::LN_2 + 2.0 * z * series
}

/// Exponential of numbers from -700 to 0.
#[inline(always)]
fn exp(x: f64) -> f64 {
    // Adding it leaves an integer in the lowest bits.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    let shifted = x * std::f64::consts::LOG2_E + WHOLE;
    let rest = x - (shifted - WHOLE) * std::f64::consts::LN_2;
    // |rest| < 0.347.
    let series =
        1.0 / 24.0 + rest * (1.0 / 120.0 + rest * (1.0 / 720.0 + rest * (1.0 / 5040.0 + rest / 40320.0)));
    let series = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1.0 / 6.0 + rest * series)));
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    series * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opacities_are_those_of_powers() {
        for opacity in [0.0, 1e-13, 1e-6, 0.001, 0.1, 0.3, 0.5, 0.75, 0.999, 1.0 - f32::EPSILON / 2.0, 1.0] {
            let lengths: [f32; LANES] = std::array::from_fn(|lane| lane as f32 / 15.0);
            for (found, length) in corrected_ratios(&[opacity; LANES], &lengths).into_iter().zip(lengths) {
                let own = f64::from(opacity);
                let expected = -(f64::from(length) * (-own).ln_1p()).exp_m1() / own;
                let expected = match opacity {
                    0.0 => f64::from(length),
                    1.0 => 1.0,
                    _ => expected,
                };
                if opacity == 1.0 && length == 0.0 {
                    continue;
                }
                assert!(
                    (f64::from(found) - expected).abs() < 1e-5,
                    "{found}, not {expected} of {opacity} in {length}"
                );
            }
        }
    }
}
