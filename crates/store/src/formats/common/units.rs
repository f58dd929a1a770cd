//! Common scale of units: axes whose units have no common scale are not drawn to scale.

/// Lengths in meters.
const LENGTHS: &[(&[&str], f64)] = &[
    (&["pm", "picometer", "picometre"], 1e-12),
    (&["angstrom", "\u{c5}", "\u{212b}"], 1e-10),
    (&["nm", "nanometer", "nanometre", "nanometers", "nanometres"], 1e-9),
    (&["um", "\u{b5}m", "\u{3bc}m", "micron", "microns", "micrometer", "micrometre", "micrometers"], 1e-6),
    (&["mm", "millimeter", "millimetre", "millimeters", "millimetres"], 1e-3),
    (&["cm", "centimeter", "centimetre", "centimeters", "centimetres"], 1e-2),
    (&["inch", "inches"], 0.0254),
    (&["ft", "foot", "feet"], 0.3048),
    (&["m", "meter", "metre", "meters", "metres"], 1.0),
    (&["km", "kilometer", "kilometre", "kilometers", "kilometres"], 1e3),
];

/// One unit in the other: 1 where both are the same or one is unknown, their ratio where both are lengths. `None`: they lie
/// on no common scale (degrees beside meters, times beside lengths, units of which nothing is known).
pub(crate) fn factor(unit: &str, reference: &str) -> Option<f64> {
    let (unit, reference) = (plain(unit), plain(reference));
    if unit == reference || unit.is_empty() || reference.is_empty() {
        return Some(1.0);
    }
    Some(meters(&unit)? / meters(&reference)?)
}

fn meters(unit: &str) -> Option<f64> {
    LENGTHS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, meters)| *meters)
}

/// `degrees_east` and `degrees_north` are both degrees. Whether letters are large matters: `Mm` is not `mm`; only long words
/// are written either way.
fn plain(unit: &str) -> String {
    let unit = unit.trim();
    let lower = unit.to_lowercase();
    let degrees = lower.strip_prefix("degrees").or_else(|| lower.strip_prefix("degree"));
    match degrees.map(|rest| rest.trim_matches(['_', ' '])) {
        Some("" | "e" | "n" | "east" | "north" | "true") => "degrees".into(),
        _ if lower == "deg" => "degrees".into(),
        _ if unit.chars().count() > 3 => lower,
        _ => unit.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_ratio_and_other_units_only_themselves() {
        for (unit, reference, expected) in [
            ("mm", "mm", Some(1.0)),
            ("", "mm", Some(1.0)),
            ("s", "", Some(1.0)),
            ("um", "mm", Some(1e-3)),
            ("Micrometer", "\u{b5}m", Some(1.0)),
            ("degrees_north", "degrees_east", Some(1.0)),
            ("degrees_north", "m", None),
            ("m/s", "m", None),
            ("m s-1", "m/s", None),
            ("hours since 2001-01-01", "m", None),
            ("s", "s", Some(1.0)),
            ("Mm", "mm", None),
            ("hPa", "m", None),
        ] {
            let found = factor(unit, reference);
            let is_close = match (found, expected) {
                (Some(a), Some(b)) => f64::abs(a / b - 1.0) < 1e-12,
                (found, expected) => found == expected,
            };
            assert!(is_close, "{unit} in {reference}: {found:?}");
        }
    }
}
