//! Scales of the editor. Values have the scale of the transfer function. Opacity has a square-root scale: useful opacities per voxel are small and would not be
//! distinguishable on a linear one.

import { between, shareBetween, type RangeScale } from "./value-scale.ts";

export interface Domain {
  readonly low: number;
  readonly high: number;
  /** Scale of the values; linear where it is left out. */
  readonly own?: RangeScale;
}

const LINEAR: RangeScale = { scale: "linear", threshold: 1 };

/** Domain of the editor: all values that occur and all of the color range. */
export function domainOf(
  range: readonly [number, number],
  occurring: Domain | null,
  own: RangeScale = LINEAR,
): Domain {
  // Values of 0 and less have no place on a logarithmic scale.
  const isPlaced = (value: number) => own.scale !== "log" || value > 0;
  const ends = [occurring?.low, occurring?.high].filter((end) => end !== undefined && isPlaced(end));
  const low = Math.min(range[0], ...(ends as number[]));
  const high = Math.max(range[1], ...(ends as number[]));
  return low < high ? { low, high, own } : { low: low - 0.5, high: low + 0.5, own: LINEAR };
}

/** Horizontal position of a value: 0 at the left edge, 1 at the right one. */
export function fractionOf(domain: Domain, value: number): number {
  return shareBetween(domain.own ?? LINEAR, domain.low, domain.high, value);
}

export function valueAt(domain: Domain, fraction: number): number {
  return between(domain.own ?? LINEAR, domain.low, domain.high, fraction);
}

/** Height of an opacity: 0 at the bottom, 1 at the top. */
export function heightOf(alpha: number): number {
  return Math.sqrt(Math.max(0, alpha));
}

export function alphaAt(height: number): number {
  const bounded = Math.min(Math.max(height, 0), 1);
  return bounded * bounded;
}

/** Counts as heights from 0 to 1 on a linear scale. */
export function linearHeights(counts: readonly number[]): number[] {
  const max = counts.reduce((a, b) => Math.max(a, b), 0);
  return counts.map((count) => (max > 0 ? count / max : 0));
}

/** Counts as heights from 0 to 1 on a logarithmic scale. */
export function logHeights(counts: readonly number[]): number[] {
  const max = Math.log1p(counts.reduce((a, b) => Math.max(a, b), 0));
  return counts.map((count) => (max > 0 ? Math.log1p(count) / max : 0));
}
