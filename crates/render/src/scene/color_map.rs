//! Color maps: tables of 256 sRGB colors by name, the same in the caster and in the browser.
//!
//! Sources: `viridis`, `magma`, `plasma`, `inferno` after S. van der Walt and N. Smith (released as CC0),
//! `cividis` after Nuñez, Anderton and Renslow (2018), `coolwarm` after K. Moreland (2009): every fifth color
//! of the published tables, interpolated linearly. `turbo` after A. Mikhailov (Google, Apache-2.0) and `twilight`,
//! which is cyclic, after B. Bechtold (released as CC0) have 52 colors of the published tables. `bone` and `terrain`
//! are piecewise linear, with the control points of Matplotlib (its license is of the BSD kind); the `ct` maps are
//! made for Corridor. A name with `_r` at its end is that map reversed, as in Matplotlib. `gray` and the categorical
//! `labels` are computed: the
//! first 256 labels have the colors of a table, in which neighbors are far apart; the color of any other
//! label is computed from all bits of its number. `rgb` is for packed colors ([`array::Meaning::Colors`]):
//! each value has the color in its own lower 24 bits. Its table is that of `gray`.

use std::sync::LazyLock;

use array::mix64;

/// Entries of a color map.
pub const COLORS: usize = 256;

const NAMES: [&str; 16] = [
    "viridis", "plasma", "inferno", "magma", "cividis", "turbo", "coolwarm", "twilight", "gray", "bone",
    "terrain", "ct-bone", "ct-soft", "ct-lung", "labels", "rgb",
];
/// End of the name of a reversed map.
const REVERSED: &str = "_r";

/// Names of all color maps, in the order a menu shows them; those with `_r` at the end, which are reversed, are not
/// listed.
#[must_use]
pub fn color_map_names() -> &'static [&'static str] {
    &NAMES
}

/// The 256 sRGB colors of a map, low values first; `None` for an unknown name.
#[must_use]
pub fn color_map_table(name: &str) -> Option<[[u8; 3]; COLORS]> {
    // Colors that depend on the value itself have no order to reverse.
    if let Some(forward) = name.strip_suffix(REVERSED).filter(|forward| !is_categorical(forward)) {
        let mut table = own_table(forward)?;
        table.reverse();
        return Some(table);
    }
    own_table(name)
}

/// Tables of all maps, in the order of their names.
static TABLES: LazyLock<[[[u8; 3]; COLORS]; NAMES.len()]> = LazyLock::new(|| NAMES.map(computed_table));

fn own_table(name: &str) -> Option<[[u8; 3]; COLORS]> {
    let number = NAMES.iter().position(|own| *own == name)?;
    TABLES.get(number).copied()
}

fn computed_table(name: &str) -> [[u8; 3]; COLORS] {
    interpolated(match name {
        "viridis" => VIRIDIS,
        "magma" => MAGMA,
        "plasma" => PLASMA,
        "inferno" => INFERNO,
        "cividis" => CIVIDIS,
        "coolwarm" => COOLWARM,
        "turbo" => TURBO,
        "twilight" => TWILIGHT,
        "bone" => return piecewise(&BONE),
        "terrain" => return piecewise(&TERRAIN),
        "ct-bone" => return piecewise(&CT_BONE),
        "ct-soft" => return piecewise(&CT_SOFT),
        "ct-lung" => return piecewise(&CT_LUNG),
        "labels" => return *LABEL_COLORS,
        // `gray`, and `rgb`, whose table it is too.
        _ => "000000ffffff",
    })
}

/// True for maps whose color depends on the value itself instead of its place in the range.
#[must_use]
pub fn is_categorical(name: &str) -> bool {
    matches!(name, "labels" | "rgb")
}

/// Colors of a categorical map: see [`is_categorical`].
#[derive(Clone, Debug)]
pub(crate) enum OwnColors {
    /// Colors of labels, with the table of the first 256.
    OfLabels(Vec<[f32; 3]>),
    /// Packed in the value.
    Packed,
}

impl OwnColors {
    /// Returns the colors of a categorical color map with its table; `None` for other maps.
    pub(crate) fn new(name: &str, table: &[[f32; 3]]) -> Option<Self> {
        match name {
            "labels" => Some(Self::OfLabels(table.to_vec())),
            "rgb" => Some(Self::Packed),
            _ => None,
        }
    }

    /// Returns the color of a value, given as [`crate::blocks::voxel::Voxel::label`] returns it.
    pub(crate) fn of(&self, value: u32) -> [f32; 3] {
        match self {
            Self::OfLabels(table) => table.get(value as usize).copied().unwrap_or_else(|| mixed_color(value)),
            Self::Packed => {
                let [_, r, g, b] = value.to_be_bytes();
                [r, g, b].map(|part| f32::from(part) / 255.0)
            }
        }
    }
}

/// Returns the color of a label in the map `labels`, sRGB.
#[must_use]
pub fn label_color(label: u64) -> [u8; 3] {
    let known = usize::try_from(label).ok().and_then(|label| LABEL_COLORS.get(label).copied());
    known.unwrap_or_else(|| to_bytes(mixed_color(label_number(label))))
}

/// Returns the color of a label that may be negative in the map `labels`, sRGB.
#[must_use]
pub fn signed_label_color(label: i64) -> [u8; 3] {
    let mixed = || to_bytes(mixed_color(label_of(signed_label(label))));
    u64::try_from(label).map_or_else(|_| mixed(), label_color)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
fn to_bytes(color: [f32; 3]) -> [u8; 3] {
    color.map(|part| (part * 255.0).round() as u8)
}

/// Interpolates colors between knots of six hexadecimal digits each.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
fn interpolated(knots: &str) -> [[u8; 3]; COLORS] {
    let digit = |i: usize| f64::from(u8::from_str_radix(&knots[2 * i..2 * i + 2], 16).unwrap_or(0));
    let last = knots.len() / 6 - 1;
    std::array::from_fn(|i| {
        let steps = i * last;
        let knot = (steps / (COLORS - 1)).min(last - 1);
        let share = (steps - knot * (COLORS - 1)) as f64 / (COLORS - 1) as f64;
        [0, 1, 2].map(|c| {
            let (a, b) = (digit(3 * knot + c), digit(3 * knot + 3 + c));
            (a + (b - a) * share).round() as u8
        })
    })
}

/// Control point of a color map: a share of the range, and red, green and blue from 0 to 1.
type ControlPoint = (f64, [f64; 3]);

/// Interpolates colors between control points, of which the first lies at 0 and the last at 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
fn piecewise(points: &[ControlPoint]) -> [[u8; 3]; COLORS] {
    std::array::from_fn(|i| {
        let at = i as f64 / (COLORS - 1) as f64;
        let next = points.partition_point(|point| point.0 < at).clamp(1, points.len() - 1);
        let ((from, low), (to, high)) = (points[next - 1], points[next]);
        let share = (at - from) / (to - from);
        [0, 1, 2].map(|c| (255.0 * (low[c] + (high[c] - low[c]) * share)).round() as u8)
    })
}

/// Distinct neighbors: hues a golden angle apart, in three lightnesses; label 0 is black.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
static LABEL_COLORS: LazyLock<[[u8; 3]; COLORS]> = LazyLock::new(|| {
    const GOLDEN_TURN: f64 = 0.381_966_011_250_105;
    std::array::from_fn(|label| {
        if label == 0 {
            return [0; 3];
        }
        let hue = (label as f64 * GOLDEN_TURN).fract() * 6.0;
        let (value, saturation) = [(1.0, 0.65), (0.8, 0.8), (0.95, 0.4)][label % 3];
        [5.0, 3.0, 1.0].map(|offset| {
            let k = (offset + hue) % 6.0;
            let dip = k.min(4.0 - k).clamp(0.0, 1.0);
            (255.0 * value * (1.0 - saturation * dip)).round() as u8
        })
    })
});

/// Returns the color of a label beyond the table, computed from the bits of its number.
#[expect(clippy::cast_precision_loss, reason = "parts of 16 bits and fewer")]
fn mixed_color(label: u32) -> [f32; 3] {
    let bits = mix32(label);
    // Bright and saturated, so that no label has the color of a background; all bits count, so that few
    // labels look alike.
    let value = 0.75 + (bits >> 16 & 0xFF) as f32 * (0.25 / 255.0);
    let saturation = 0.4 + (bits >> 24) as f32 * (0.5 / 255.0);
    let hue = (bits & 0xFFFF) as f32 * (6.0 / 65536.0);
    [5.0, 3.0, 1.0].map(|offset: f32| {
        let k = (offset + hue) % 6.0;
        value * (1.0 - saturation * k.min(4.0 - k).clamp(0.0, 1.0))
    })
}

/// Largest integer up to which `f64` represents all integers.
const EXACT: u64 = 1 << 53;

/// Returns the number in the pool for a label: the label itself if `f64` can represent it, else see
/// [`large_label`].
pub(crate) fn unsigned_label(label: u64) -> f64 {
    if label <= EXACT { label as f64 } else { large_label(label) }
}

/// Returns the number in the pool for a label: the label itself if `f64` can represent it, else see
/// [`large_label`].
pub(crate) fn signed_label(label: i64) -> f64 {
    if label.unsigned_abs() <= EXACT { label as f64 } else { large_label(label.cast_unsigned()) }
}

/// Returns a number from 2^53 to 2^54 computed from all bits of a label, so that neighbors that `f64` would
/// round to one number stay apart.
fn large_label(bits: u64) -> f64 {
    (EXACT + 2 * (mix64(bits) >> 12)) as f64
}

/// Returns the number by which the color of a stored label is found.
fn label_number(label: u64) -> u32 {
    label_of(unsigned_label(label))
}

/// Returns the number by which the color of a label is found: the label itself below 2^32, else a hash of all
/// its bits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, or folded")]
pub(crate) fn label_of(value: f64) -> u32 {
    if (f64::from(i32::MIN)..4_294_967_296.0).contains(&value) {
        return value as i64 as u32;
    }
    // The lowest 256 numbers have the colors of the table.
    mix64(value.to_bits()) as u32 | 1 << 31
}

/// Hashes the bits of a number (`lowbias32`).
fn mix32(number: u32) -> u32 {
    let mut bits = number;
    bits = (bits ^ bits >> 16).wrapping_mul(0x7FEB_352D);
    bits = (bits ^ bits >> 15).wrapping_mul(0x846C_A68B);
    bits ^ bits >> 16
}

const BONE: [ControlPoint; 4] = [
    (0.0, [0.0, 0.0, 0.0]),
    (0.365_079, [0.319_444, 0.319_444, 0.444_444]),
    (0.746_032, [0.652_778, 0.777_778, 0.777_778]),
    (1.0, [1.0, 1.0, 1.0]),
];
const TERRAIN: [ControlPoint; 6] = [
    (0.0, [0.2, 0.2, 0.6]),
    (0.15, [0.0, 0.6, 1.0]),
    (0.25, [0.0, 0.8, 0.4]),
    (0.5, [1.0, 1.0, 0.6]),
    (0.75, [0.5, 0.36, 0.33]),
    (1.0, [1.0, 1.0, 1.0]),
];
/// Skin, flesh and bone over -500 to 1000 Hounsfield units.
const CT_BONE: [ControlPoint; 6] = [
    (0.0, [0.85, 0.62, 0.48]),
    (0.25, [0.8, 0.45, 0.35]),
    (0.4, [0.65, 0.25, 0.2]),
    (0.5, [0.9, 0.78, 0.62]),
    (0.7, [0.97, 0.93, 0.84]),
    (1.0, [1.0, 1.0, 1.0]),
];
/// Fat, muscle, organs and vessels over -160 to 240 Hounsfield units.
const CT_SOFT: [ControlPoint; 6] = [
    (0.0, [0.55, 0.36, 0.12]),
    (0.2, [0.93, 0.8, 0.52]),
    (0.42, [0.62, 0.22, 0.18]),
    (0.55, [0.8, 0.36, 0.3]),
    (0.75, [0.95, 0.62, 0.52]),
    (1.0, [1.0, 0.97, 0.93]),
];
/// Air, lung and walls over -1000 to -300 Hounsfield units.
const CT_LUNG: [ControlPoint; 5] = [
    (0.0, [0.02, 0.03, 0.1]),
    (0.2, [0.1, 0.24, 0.42]),
    (0.5, [0.33, 0.55, 0.68]),
    (0.8, [0.78, 0.85, 0.86]),
    (1.0, [1.0, 0.94, 0.88]),
];

const VIRIDIS: &str = "\
    44015446085c471063481769481d6f482475472a7a46307e453781433d844142873f48893d4e8a3a538b38598c355e8d\
    33638d31688e2e6d8e2c718e2a768e297b8e27808e25848e23898e218e8d20928c1f978b1e9c891fa18821a58524aa83\
    28ae802eb37c35b7793dbc7446c06f50c46a5ac86465cb5e70cf577cd25089d54895d840a2da37b0dd2fbddf26cae11f\
    d8e219e5e419f1e51dfde725";
const MAGMA: &str = "\
    00000402020b0504160907200e0b2b140e361a104221114e29115a311165390f6e420f754a107952137c5a167e621980\
    6a1c81721f81792282812581892881912b81992d80a1307eaa337db2357bba3878c23b75ca3e72d2426fd9466be04c67\
    e75263ec5860f1605df4695cf7725cf97b5dfb8560fc8e64fd9869fea16efeaa74feb47bfebd82fec68afecf92fed89a\
    fde2a3fdebacfcf4b6fcfdbf";
const PLASMA: &str = "\
    0d08871b068d2605912f059638049a41049d4903a05102a35901a56100a76900a87100a87801a88004a88707a68e0ca4\
    9511a19c179ea21d9aa82296ae2892b42e8dba3388bf3984c43e7fc9447acd4a76d24f71d6556dda5b69de6164e26660\
    e66c5ce97257ed7953f07f4ff3854bf58c46f79342f99a3efba139fca835fdaf31feb72dfebe2afdc627fcce25fbd724\
    f8df25f6e826f3f027f0f921";
const INFERNO: &str = "\
    00000402020c0504170a072210092d160b391e0c45260c512f0a5b380962400a67490b6a510e6c59106e61136e69166e\
    71196e781c6d801f6c88226a902568982766a02a63a82e5fb0315bb73557bf3952c63d4dcc4248d34743d94d3ddf5337\
    e45a31e9612bed6925f1711ff47918f78212f98b0bfa9407fb9d07fca60cfcb014fbba1ffac42af8cd37f6d746f4e156\
    f2ea69f2f27df5f992fcffa4";
const CIVIDIS: &str = "\
    00224e002656002a5f002d68003070083370163770203a6f273e6e2e416d34456c3a486c3f4c6c444f6c49536c4e566c\
    535a6d575d6d5c616e60646f656870696b716d6f727272747676767a7a787e7d788381798885788d8878928c78969077\
    9b9476a09875a59c74aaa073afa471b5a86fbaac6dbfb06bc4b468c9b965cfbd62d4c15fdac65bdfca57e5cf52ead34c\
    f0d846f6dd3ffce236fee838";
const COOLWARM: &str = "\
    3b4cc04055c8465ecf4c66d6536edd5977e35f7fe86687ed6c8ff17396f57a9df881a4fb88abfd8fb1fe96b7ff9dbdff\
    a3c2feaac7fdb1cbfcb7cff9bed2f6c4d5f3cad8efcfdaead5dbe5dadce0dfdbd9e4d9d2e9d5cbedd2c3f0cdbbf2c9b4\
    f5c4acf6bea4f7b89cf7b194f7aa8cf6a385f59c7df39475f08b6eed8366e97a5fe57058e16751dc5d4ad65244d0473d\
    ca3b37c32e31bb1b2cb40426";

const TURBO: &str = "\
    30123b36215f3b2f803f3e9c424bb54559cb4666dd4773eb4680f6458cfd4099ff38a5fb2fb2f427bee91fc9dd1ad4d0\
    18ddc21ae4b622ebaa2ff19b3ff68a52fa7a65fd6979fe598bff4b9cfe40a9fb39b7f735c3f134d0ea34dbe236e5d938\
    eecf3af5c53afaba39fdae35fea130fe932afc8423f9751df46617ef5811e84b0ce14109d83706ce2d04c32503b71d02\
    a916019b0f018b09027a0403";
const TWILIGHT: &str = "\
    e2d9e2dcd9dfd2d5dbc5cfd5b6c8cfa7c0cb99b8c88cafc580a6c3779cc26f92c06888be647ebc6173ba6067b65f5cb2\
    5e50ac5e44a55c389c5a2c915621835019734814623f125238114432123b32123739113a43123e4e14445b1749681a4d\
    751e4f8224508d2b50973450a13e50a94850b05352b75f54bc6a59c1765fc48367c78f72ca9b7fcda78ed0b39ed4beaf\
    d9c8c0ddd0cfe0d7dbe2d9e2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_table_and_nothing_else_has() {
        for name in color_map_names() {
            assert!(color_map_table(name).is_some(), "{name}");
        }
        assert!(color_map_table("jet").is_none());
    }

    #[test]
    fn tables_hit_published_colors() {
        let viridis = color_map_table("viridis").unwrap();
        assert_eq!((viridis[0], viridis[255]), ([68, 1, 84], [253, 231, 37]));
        assert_eq!(viridis[130], [32, 146, 140]);
        assert_eq!(color_map_table("gray").unwrap()[128], [128; 3]);
        assert_eq!(color_map_table("coolwarm").unwrap()[0], [59, 76, 192]);
        // Matplotlib's, rounded.
        let near = |name: &str, at: usize, expected: [u8; 3]| {
            let found = color_map_table(name).unwrap()[at];
            let is_near = found.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 3);
            assert!(is_near, "{name} {at}: {found:?} instead of {expected:?}");
        };
        near("turbo", 0, [48, 18, 59]);
        near("turbo", 255, [122, 4, 3]);
        near("twilight", 0, [226, 217, 226]);
        near("twilight", 255, [226, 217, 226]);
        near("bone", 64, [56, 56, 78]);
        near("bone", 192, [169, 200, 200]);
        near("terrain", 64, [1, 204, 102]);
        near("terrain", 192, [129, 94, 86]);
    }

    #[test]
    fn a_map_is_reversed_by_the_end_of_its_name() {
        for name in color_map_names().iter().filter(|name| !is_categorical(name)) {
            let mut reversed = color_map_table(&format!("{name}_r")).unwrap();
            reversed.reverse();
            assert_eq!(reversed, color_map_table(name).unwrap());
        }
        for name in ["labels_r", "rgb_r", "jet_r", "viridis_r_r", "_r"] {
            assert!(color_map_table(name).is_none(), "{name}");
        }
    }

    #[test]
    fn labels_beyond_the_table_have_the_colors_of_the_page() {
        // As in web/src/ui/marks/color-bar.test.ts.
        let colors = [label_color(300), label_color(65_536), signed_label_color(-1)];
        assert_eq!(colors, [[98, 145, 204], [55, 40, 235], [86, 210, 217]]);
    }

    #[test]
    fn perceptual_maps_grow_lighter() {
        for name in ["viridis", "magma", "plasma", "inferno", "cividis", "gray"] {
            let table = color_map_table(name).unwrap();
            let luma =
                |c: [u8; 3]| 0.2126 * f64::from(c[0]) + 0.7152 * f64::from(c[1]) + 0.0722 * f64::from(c[2]);
            assert!(table.windows(8).all(|w| luma(w[7]) > luma(w[0])), "{name}");
        }
    }

    #[test]
    fn every_label_has_a_color_of_its_own_and_never_that_of_nothing() {
        let table = color_map_table("labels").unwrap().map(|c| c.map(|v| f32::from(v) / 255.0));
        let colors = OwnColors::new("labels", &table).unwrap();
        let color = |label: u32| colors.of(label).map(|v| (v * 255.0).round());
        let labels = (1..20_000).chain((1..200).map(|i| i * 256)).chain((0..500).map(|i| u32::MAX - i));
        let labels: std::collections::BTreeSet<u32> = labels.collect();
        let mut seen = std::collections::BTreeMap::new();
        let mut alike = 0;
        for &label in &labels {
            let [r, g, b] = color(label);
            assert!(
                r.max(g).max(b) > 120.0 && r.max(g).max(b) - r.min(g).min(b) > 40.0,
                "{label}: {r} {g} {b}"
            );
            alike += usize::from(seen.insert([r, g, b].map(|v| v.to_bits()), label).is_some());
        }
        assert!(alike * 100 < labels.len(), "{alike} of {}", labels.len());
    }

    #[test]
    fn packed_colors_are_their_own() {
        let colors = OwnColors::new("rgb", &[]).unwrap();
        assert_eq!(colors.of(0xFF80_2040).map(|v| (v * 255.0).round()), [128.0, 32.0, 64.0]);
        assert_eq!(colors.of(0x0100_0000), [0.0; 3]);
        assert!(OwnColors::new("gray", &[]).is_none());
    }

    #[test]
    fn a_label_has_the_same_color_alone_as_in_a_picture() {
        let table = color_map_table("labels").unwrap().map(|c| c.map(|v| f32::from(v) / 255.0));
        let colors = OwnColors::new("labels", &table).unwrap();
        for label in [1, 255, 256, 70_000, u64::from(u32::MAX), 1 << 40, u64::MAX] {
            let in_picture = colors.of(label_number(label)).map(|v| (v * 255.0).round());
            assert_eq!(label_color(label).map(f32::from), in_picture, "{label}");
        }
        for label in [1, 256, 1 << 40, -1, -300, i64::from(i32::MIN), -(1 << 40), i64::MIN] {
            let in_picture = colors.of(label_of(signed_label(label))).map(|v| (v * 255.0).round());
            assert_eq!(signed_label_color(label).map(f32::from), in_picture, "{label}");
        }
    }

    #[test]
    fn labels_differ() {
        let table = color_map_table("labels").unwrap();
        let distinct: std::collections::BTreeSet<_> = table.iter().collect();
        assert!(distinct.len() > 250, "{}", distinct.len());
    }
}
