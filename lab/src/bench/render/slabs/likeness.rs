//! Similarity of two pictures, over black and where they are not transparent.

use render::Image;

/// Opacity below which, in both pictures, a pixel does not count.
const SEEN: f32 = 1.0 / 255.0;
/// Side and distance of the windows of SSIM, pixels.
const WINDOW: usize = 8;
const STRIDE: usize = 4;

/// Peak signal-to-noise ratio of 8-bit colors, dB; 99 without any difference.
pub(super) fn psnr_db(drawn: &Image, exact: &Image) -> f64 {
    let (mut squares, mut count) = (0.0, 0u64);
    for (a, b) in drawn.rgba.iter().zip(&exact.rgba).filter(|(a, b)| a[3].max(b[3]) > SEEN) {
        for part in 0..3 {
            squares += f64::from(byte(a[part]) - byte(b[part])).powi(2);
            count += 1;
        }
    }
    if squares == 0.0 {
        MOST_DB
    } else {
        (10.0 * (255.0 * 255.0 * count as f64 / squares).log10()).min(MOST_DB)
    }
}

const MOST_DB: f64 = 99.0;

/// Structural similarity of brightness (Wang, Bovik, Sheikh, Simoncelli 2004, over square windows), the mean of the windows in
/// which something is seen; 1 without any difference.
pub(super) fn ssim(drawn: &Image, exact: &Image) -> f64 {
    let (width, height) = (exact.size.width as usize, exact.size.height as usize);
    let (mut sum, mut count) = (0.0, 0u64);
    for top in (0..height.saturating_sub(WINDOW - 1)).step_by(STRIDE) {
        for left in (0..width.saturating_sub(WINDOW - 1)).step_by(STRIDE) {
            let places = || (0..WINDOW * WINDOW).map(|i| (top + i / WINDOW) * width + left + i % WINDOW);
            if places().any(|at| drawn.rgba[at][3].max(exact.rgba[at][3]) > SEEN) {
                sum += of_window(places().map(|at| (brightness(drawn.rgba[at]), brightness(exact.rgba[at]))));
                count += 1;
            }
        }
    }
    if count == 0 { 1.0 } else { sum / count as f64 }
}

fn of_window(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    const STEADY: [f64; 2] = [(0.01 * 255.0) * (0.01 * 255.0), (0.03 * 255.0) * (0.03 * 255.0)];
    let mut sums = [0.0; 6];
    for (a, b) in pairs {
        for (sum, value) in sums.iter_mut().zip([1.0, a, b, a * a, b * b, a * b]) {
            *sum += value;
        }
    }
    let [n, a, b, aa, bb, ab] = sums;
    let (mean_a, mean_b) = (a / n, b / n);
    let (var_a, var_b) = (aa / n - mean_a * mean_a, bb / n - mean_b * mean_b);
    let covariance = ab / n - mean_a * mean_b;
    (2.0 * mean_a * mean_b + STEADY[0]) * (2.0 * covariance + STEADY[1])
        / ((mean_a * mean_a + mean_b * mean_b + STEADY[0]) * (var_a + var_b + STEADY[1]))
}

/// Value as 8 bits represent it.
fn byte(component: f32) -> f32 {
    (component.clamp(0.0, 1.0) * 255.0).round()
}

fn brightness([r, g, b, _]: [f32; 4]) -> f64 {
    f64::from(0.299 * byte(r) + 0.587 * byte(g) + 0.114 * byte(b))
}

#[cfg(test)]
mod tests {
    use render::ImageSize;

    use super::*;

    fn image(pixel: impl Fn(u32, u32) -> f32) -> Image {
        let size = ImageSize { width: 32, height: 24 };
        let pixels = (0..size.height).flat_map(|y| (0..size.width).map(move |x| (x, y)));
        let rgba =
            pixels.map(|(x, y)| [pixel(x, y), pixel(x, y), pixel(x, y), if y < 12 { 1.0 } else { 0.0 }]);
        Image { size, rgba: rgba.collect() }
    }

    #[test]
    fn what_is_off_by_one_has_48_decibels_and_what_is_the_same_is_alike() {
        let steps = |x: u32, _: u32| (x % 7) as f32 / 8.0;
        let one_more = |x: u32, y: u32| steps(x, y) + 1.0 / 255.0;
        assert!((psnr_db(&image(one_more), &image(steps)) - 48.13).abs() < 0.01);
        assert_eq!(
            (psnr_db(&image(steps), &image(steps)), ssim(&image(steps), &image(steps))),
            (MOST_DB, 1.0)
        );
        let other = image(|x, y| if y < 12 { steps(x, y) } else { 0.9 });
        assert_eq!(psnr_db(&other, &image(steps)), MOST_DB, "what nobody sees does not count");
    }

    #[test]
    fn what_is_blurred_or_shifted_is_less_alike_than_what_is_brighter() {
        let checks = |x: u32, y: u32| if (x / 2 + y / 2).is_multiple_of(2) { 0.2 } else { 0.6 };
        let brighter = ssim(&image(|x, y| checks(x, y) + 0.05), &image(checks));
        let shifted = ssim(&image(|x, y| checks(x + 2, y)), &image(checks));
        let even = ssim(&image(|_, _| 0.4), &image(checks));
        assert!(brighter > 0.9 && even < 0.3 && shifted < 0.1, "{brighter} {even} {shifted}");
    }
}
