//! `web/src/transfer/presets.ts`: presets by kind of data.

use corridor_view::{PRESETS, PresetRange, SYMLOG_SHARE};
use serde_json::json;

const HEAD: &str = "\
//! Presets of transfer functions by kind of data. Made from crates/view/src/preset.rs by
//! `CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated`; change that file, not this one.

/** Ends of the color map: values, shares of the values, or a share of the magnitudes or of the values above the background. */
export type PresetRange =
  | { readonly kind: \"values\"; readonly ends: readonly [number, number] }
  | { readonly kind: \"shares\"; readonly ends: readonly [number, number] }
  | { readonly kind: \"symmetric\" | \"aboveBackground\"; readonly share: number };

export interface DataPreset {
  readonly name: string;
  readonly label: string;
  readonly help: string;
  /** Kinds of data that it is offered for first. */
  readonly kinds: readonly string[];
  readonly map: string;
  readonly range: PresetRange;
  /** Values, or shares of the range, with the thickness there. */
  readonly points: readonly (readonly [place: number, thickness: number])[];
}

";

pub(crate) fn text() -> String {
    let mut text = HEAD.to_owned();
    text.push_str(
        "/** Threshold of the symmetric logarithm, as a share of the largest magnitude of the range. */\n",
    );
    text.push_str(&format!("export const SYMLOG_SHARE = {};\n\n", json!(SYMLOG_SHARE)));
    text.push_str("export const DATA_PRESETS: readonly DataPreset[] = [\n");
    for preset in PRESETS {
        let kinds: Vec<&str> = preset.kinds.iter().map(|kind| kind.name()).collect();
        let range = match preset.range {
            PresetRange::Values(ends) => json!({"kind": "values", "ends": ends}),
            PresetRange::Shares(ends) => json!({"kind": "shares", "ends": ends}),
            PresetRange::Symmetric(share) => json!({"kind": "symmetric", "share": share}),
            PresetRange::AboveBackground(share) => json!({"kind": "aboveBackground", "share": share}),
        };
        text.push_str("  {\n");
        for (name, value) in [
            ("name", json!(preset.name)),
            ("label", json!(preset.label)),
            ("help", json!(preset.help)),
            ("kinds", json!(kinds)),
            ("map", json!(preset.map)),
            ("range", range),
            ("points", json!(preset.points)),
        ] {
            text.push_str(&format!("    {name}: {value},\n"));
        }
        text.push_str("  },\n");
    }
    text.push_str("];\n");
    text
}
