//! Statistics of values (the answer of `stats`), and the level and ranges for which they are requested.

import { isArray, isCount, isFinite, isObject, scalarOr, type Json } from "../json.ts";
import type { Range } from "../wire/operations.ts";
import type { View } from "../view/schema.ts";
import { canClipRanges } from "./clip-ranges.ts";
import { isDrawn, type ArrayInfo } from "./dataset.ts";

export interface Histogram {
  readonly low: number;
  readonly high: number;
  readonly counts: readonly number[];
}

export interface Stats {
  readonly count: number;
  readonly missing: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly histogram: Histogram;
}

/** Number of bins requested: about one per two pixels of the editor. */
export const HISTOGRAM_BINS = 128;
const MAX_BINS = 65_535;
/** Maximum number of elements that a histogram reads; for more, a coarser level is used. */
const MAX_ELEMENTS = 1 << 22;

/** Throws an `Error` that names what is wrong. */
export function parseStats(value: Json): Stats {
  const histogram = isObject(value) ? value.histogram : undefined;
  if (!isObject(value) || !isObject(histogram) || !isArray(histogram.counts)) {
    throw new Error("expected statistics with a histogram");
  }
  const counts = histogram.counts.filter(isCount);
  const { low, high } = histogram;
  if (
    counts.length !== histogram.counts.length ||
    counts.length > MAX_BINS ||
    !isFinite(low) ||
    !isFinite(high)
  ) {
    throw new Error("expected a histogram of finite bounds and whole counts");
  }
  return {
    count: isCount(value.count) ? value.count : 0,
    missing: isCount(value.missing) ? value.missing : 0,
    min: scalarOr(value.min, low),
    max: scalarOr(value.max, high),
    mean: scalarOr(value.mean, Number.NaN),
    histogram: { low, high, counts },
  };
}

/** Returns the finest level from `shown` on that is cheap to read; it exists, so none is computed for a histogram. */
export function statsLevel(array: ArrayInfo, shown: number): number {
  const elements = (level: number) =>
    (array.fileLevels[level]?.shape ?? []).reduce((n, size, at) => (isDrawn(array, at) ? n * size : n), 1);
  const shownOrigin = array.fileLevels[shown]?.origin;
  for (let level = shown; level < array.fileLevels.length; level++) {
    const origin = array.fileLevels[level]?.origin;
    const isAlike = origin === shownOrigin || origin === "stored" || shownOrigin === "stored";
    if (isAlike && elements(level) <= MAX_ELEMENTS) return level;
  }
  return shown;
}

/** Returns the ranges of all of space at one time and one position on the other axes. */
export function statsRanges(
  array: ArrayInfo,
  level: number,
  time: number,
  at: Readonly<Record<string, number>>,
): Range[] {
  const shape = array.fileLevels[level]?.shape ?? [];
  return array.axes.map((axis, i) => {
    const size = shape[i] ?? 1;
    if (isDrawn(array, i)) return { start: 0, count: size, step: 1 };
    const index = axis.kind === "time" ? time : (at[axis.name] ?? 0);
    return { start: Math.max(0, Math.min(index, size - 1)), count: Math.min(1, size), step: 1 };
  });
}

/** Steps of the clip box's ends, as shares, by which statistics tell boxes apart. */
const CLIP_STEPS = 100;

/** Returns a key of the data that statistics describe: the position, and the clip box if statistics are of a box. */
export function statsKey(array: ArrayInfo, view: Pick<View, "time" | "at" | "clip">): string {
  const place = positionKey(array, view);
  if (!view.clip || !canClipRanges(array)) return place;
  return `${place}; ${view.clip
    .flat()
    .map((share) => Math.round(share * CLIP_STEPS))
    .join(" ")}`;
}

/** Returns the time step and the indices on further axes of a view as one string, for comparison. */
export function positionKey(
  array: ArrayInfo,
  view: { readonly time: number; readonly at: Readonly<Record<string, number>> },
): string {
  const indices = array.axes.flatMap((axis, i) => {
    if (isDrawn(array, i)) return [];
    return [axis.kind === "time" ? view.time : (view.at[axis.name] ?? 0)];
  });
  return indices.join(" ");
}
