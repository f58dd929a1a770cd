//! Presets by kind of data, applied to the values shown: see crates/view/src/preset.rs, whose table is in `presets.ts`.

import type { OpacityPoint, Transfer } from "../view/schema.ts";
import { quantile, type Quantiles } from "./distribution.ts";
import { DATA_PRESETS, type DataPreset } from "./presets.ts";

export { DATA_PRESETS, type DataPreset };

/** Share of the volume's longest side through which the densest value lets `CLEAR_SHARE` of the light pass. */
const THICKNESS_SHARE = 0.1;
const CLEAR_SHARE = 0.05;
/** Share of the values above which outliers do not move the threshold of the background. */
const OTSU_TAIL = 0.998;
const OTSU_BINS = 256;

/** Opacity of the densest value of a default transfer function, as in crates/view/src/transfer.rs. */
export function densest(longestSideVoxels: number): number {
  const voxels = Math.max(Math.max(longestSideVoxels, 1) * THICKNESS_SHARE, 1);
  return 1 - CLEAR_SHARE ** (1 / voxels);
}

/** Presets for a kind of data first, then all others. */
export function presetsFor(kind: string): readonly DataPreset[] {
  const [own, others] = [true, false].map((is) => DATA_PRESETS.filter((p) => p.kinds.includes(kind) === is));
  return [...(own ?? []), ...(others ?? [])];
}

export function applyDataPreset(
  transfer: Transfer,
  preset: DataPreset,
  pairs: Quantiles,
  longestSideVoxels: number,
): Transfer {
  const range = rangeOf(preset, pairs) ?? transfer.range;
  const dense = densest(longestSideVoxels);
  const opacity = preset.points.map(([place, thickness]): OpacityPoint => {
    const value = preset.range.kind === "values" ? place : range[0] + place * (range[1] - range[0]);
    return [value, 1 - (1 - dense) ** thickness];
  });
  return { ...transfer, map: preset.map, reversed: false, scale: "linear", range, opacity };
}

function rangeOf({ range }: DataPreset, pairs: Quantiles): readonly [number, number] | null {
  const at = (share: number) => quantile(pairs, share);
  const ends = (): readonly [number | null, number | null] => {
    switch (range.kind) {
      case "values":
        return range.ends;
      case "shares":
        return [at(range.ends[0]), at(range.ends[1])];
      case "symmetric": {
        const largest = Math.max(...[1 - range.share, range.share].map((share) => Math.abs(at(share) ?? 0)));
        return [-largest, largest];
      }
      case "aboveBackground":
        return [backgroundBorder(pairs), at(range.share)];
    }
  };
  const [low, high] = ends();
  return low !== null && high !== null && low < high ? [low, high] : null;
}

/** Threshold between background and objects by Otsu's method; null if all usual values are equal. */
export function backgroundBorder(pairs: Quantiles): number | null {
  const [low, high] = [quantile(pairs, 0), quantile(pairs, OTSU_TAIL)];
  if (low === null || high === null || !(low < high)) return null;
  const samples = Array.from({ length: 4 * OTSU_BINS }, (_, i) =>
    quantile(pairs, (i + 0.5) / (4 * OTSU_BINS)),
  );
  const bins = new Array<number>(OTSU_BINS).fill(0);
  for (const value of samples) {
    const share = ((value ?? low) - low) / (high - low);
    const bin = Math.floor(Math.min(Math.max(share * OTSU_BINS, 0), OTSU_BINS - 1));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const total = samples.length;
  const moment = bins.reduce((sum, count, bin) => sum + bin * count, 0);
  let [below, momentBelow, best] = [0, 0, 0];
  let border: number | null = null;
  bins.forEach((count, bin) => {
    below += count;
    momentBelow += bin * count;
    if (below === 0 || below === total) return;
    const apart = momentBelow / below - (moment - momentBelow) / (total - below);
    const variance = below * (total - below) * apart * apart;
    if (variance > best) {
      best = variance;
      border = low + ((bin + 1) / OTSU_BINS) * (high - low);
    }
  });
  return border;
}
