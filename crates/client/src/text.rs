//! Text for display: safe for a terminal, and sizes with units.

/// Returns text without control characters: it cannot move the cursor, add lines or change the direction of writing.
#[must_use]
pub fn plain(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// Formats a size with a binary unit.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} EiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(plain("a\u{1b}[31mb\nc\u{9b}d\u{202e}e"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d\u{fffd}e");
        assert_eq!(plain("Temperatur in °C, 温度"), "Temperatur in °C, 温度");
    }
}
