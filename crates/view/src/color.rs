//! Colors as people write them, and the backgrounds with names.

/// Background of a view that names none: a dark neutral gray, sRGB.
pub(crate) const DEFAULT_BACKGROUND: [u8; 3] = [13, 14, 18];
/// Backgrounds with names; the first is the default. `web/src/app/theme.ts` has the same.
pub(crate) const BACKGROUNDS: [(&str, [u8; 3]); 5] = [
    ("dark", DEFAULT_BACKGROUND),
    ("black", [0, 0, 0]),
    ("gray", [128, 130, 134]),
    ("light", [236, 238, 241]),
    ("white", [255, 255, 255]),
];

/// Parses the name of a background, or a color.
pub(crate) fn color(text: &str) -> Option<[u8; 3]> {
    let named = BACKGROUNDS.iter().find(|(name, _)| *name == text).map(|&(_, color)| color);
    named.or_else(|| hex_color(text))
}

/// Parses a color such as `#c03020`.
pub(crate) fn hex_color(text: &str) -> Option<[u8; 3]> {
    let digits =
        text.strip_prefix('#').filter(|d| d.len() == 6 && d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let [_, r, g, b] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some([r, g, b])
}
