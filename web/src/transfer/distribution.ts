//! Distribution of the values shown: percentiles, and counts by position on any scale. From quantiles, which hold for all
//! magnitudes, or from a histogram of equal bins. Pure.

import { texts } from "../texts/texts.ts";
import type { Histogram } from "../dataset/stats.ts";
import { position, type RangeScale } from "./value-scale.ts";

/** Pairs of a share and the value below which that share of the values lie, ascending. */
export type Quantiles = readonly (readonly [share: number, value: number])[];

/** Ranges that the editor offers: shares of the values below them at both ends. */
export const PERCENTILE_RANGES: readonly {
  readonly name: string;
  readonly shares: readonly [number, number];
}[] = [
  { name: texts.transferPanel.minToMax, shares: [0, 1] },
  { name: "0.1–99.9 %", shares: [0.001, 0.999] },
  { name: "1–99 %", shares: [0.01, 0.99] },
  { name: "2–98 %", shares: [0.02, 0.98] },
];

/** Pairs of a cumulative share and a value, from a histogram: values are spread evenly within a bin. */
export function quantilesOf({ low, high, counts }: Histogram): Quantiles {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return [];
  const width = (high - low) / counts.length;
  let below = 0;
  const pairs: [number, number][] = [];
  counts.forEach((count, i) => {
    if (count === 0) return;
    pairs.push([below / total, low + i * width]);
    below += count;
    pairs.push([below / total, low + (i + 1) * width]);
  });
  return pairs;
}

/** The value below which a share of the values lie; null without quantiles. */
export function quantile(pairs: Quantiles, share: number): number | null {
  const after = pairs.findIndex((pair) => pair[0] >= share);
  const next = after < 0 ? pairs.at(-1) : pairs[after];
  const before = pairs[after - 1] ?? next;
  if (!next || !before) return null;
  const width = next[0] - before[0];
  return width > 0 ? before[1] + ((share - before[0]) / width) * (next[1] - before[1]) : next[1];
}

/** The share of the values below a value. */
export function shareBelow(pairs: Quantiles, value: number): number {
  const after = pairs.findIndex((pair) => pair[1] >= value);
  if (after < 0) return pairs.length > 0 ? 1 : 0;
  const [next, before] = [pairs[after], pairs[after - 1]];
  if (!next || !before) return 0;
  const width = next[1] - before[1];
  return width > 0 ? before[0] + ((value - before[1]) / width) * (next[0] - before[0]) : before[0];
}

/** The range between two shares, or null if it is empty. */
export function rangeBetween(
  pairs: Quantiles,
  [from, to]: readonly [number, number],
): readonly [number, number] | null {
  const [low, high] = [quantile(pairs, from), quantile(pairs, to)];
  return low !== null && high !== null && low < high ? [low, high] : null;
}

/** The range that is symmetric about zero and has the larger magnitude of both ends; null if all values are 0. */
export function symmetricRange(pairs: Quantiles, tail = 0.005): readonly [number, number] | null {
  const ends = [quantile(pairs, tail), quantile(pairs, 1 - tail)];
  const largest = Math.max(...ends.map((end) => Math.abs(end ?? 0)));
  return largest > 0 ? [-largest, largest] : null;
}

/** Shares of the values below and above a range. */
export function outside(pairs: Quantiles, [low, high]: readonly [number, number]): readonly [number, number] {
  if (pairs.length === 0) return [0, 0];
  const reflected = pairs.map(([share, value]): [number, number] => [1 - share, -value]).reverse();
  return [shareBelow(pairs, low), shareBelow(reflected, -high)];
}

/** States the shares of the values outside of a range; empty if there are none. */
export function outsideText([below, above]: readonly [number, number]): string {
  if (below <= 0 && above <= 0) return "";
  return texts.transferPanel.outside(percent(below), percent(above));
}

export function percent(share: number): string {
  if (share <= 0) return "0 %";
  if (share < 0.0005) return texts.transferPanel.lessThan("0.1 %");
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** Number of bins of a histogram that is made of quantiles. */
const BINS = 96;

/** Counts in bins of equal width on a scale, from quantiles: `low` and `high` are values at its ends. */
export function binned(pairs: Quantiles, own: RangeScale, low: number, high: number): number[] {
  const [from, to] = [position(own, low), position(own, high)];
  if (!Number.isFinite(from) || !(from < to)) return [];
  const counts = new Array<number>(BINS).fill(0);
  for (let i = 1; i < pairs.length; i++) {
    const [before, next] = [pairs[i - 1], pairs[i]];
    if (!before || !next) continue;
    const ends = [position(own, before[1]), position(own, next[1])].map(
      (at) => ((at - from) / (to - from)) * BINS,
    );
    spread(counts, ends[0] ?? 0, ends[1] ?? 0, next[0] - before[0]);
  }
  return counts;
}

/** Spreads a share evenly over the bins from `start` to `end`; parts outside of the bins are lost. */
function spread(counts: number[], start: number, end: number, share: number): void {
  const width = end - start;
  if (!(width > 1e-9)) {
    const bin = Math.min(Math.floor(start), counts.length - 1);
    if (bin >= 0 && start <= counts.length) counts[bin] = (counts[bin] ?? 0) + share;
    return;
  }
  // Values without a position lie infinitely far below.
  const first = Math.max(0, Math.floor(start));
  for (let bin = first; bin < Math.min(end, counts.length); bin++) {
    const part = Math.min(end, bin + 1) - Math.max(start, bin);
    if (Number.isFinite(width)) counts[bin] = (counts[bin] ?? 0) + (share * part) / width;
  }
}
