//! Numbers as texts, and round numbers.

/// Returns the largest of 1, 2 and 5 times a power of ten that is no more than this.
pub(super) fn round_below(length: f64) -> f64 {
    let power = 10f64.powf(length.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|&round| round <= length).unwrap_or(power)
}

/// Formats with four significant digits, without trailing zeros.
pub(super) fn number_text(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let power = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&power) {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", without_zeros(digits));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
    let decimals = (3.0 - power).max(0.0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_lengths_round() {
        let texts = [0.0, 1.0, -2.5, 0.1, 1234.5678, 123_456.0, 1e-7, 6.022e23].map(number_text);
        assert_eq!(texts, ["0", "1", "-2.5", "0.1", "1235", "123456", "1e-7", "6.022e23"]);
        let rounds = [1.0, 1.9, 2.0, 4.99, 73.0, 0.03].map(round_below);
        for (found, expected) in rounds.into_iter().zip([1.0, 1.0, 2.0, 2.0, 50.0, 0.02]) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }
}
