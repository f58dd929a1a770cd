//! Scales of transfer functions, as in crates/view/src/scale.rs: positions of values that are linear, logarithmic, or
//! logarithmic on both sides of zero. Pure.

import type { OpacityPoint, Transfer, ValueScale } from "../view/schema.ts";
import { SYMLOG_SHARE } from "./presets.ts";

/** A scale over a range, which determines the threshold of the symmetric logarithm. */
export interface RangeScale {
  readonly scale: ValueScale;
  /** Threshold of `symlog`, in the units of values. */
  readonly threshold: number;
}

/** Least positive low end of a logarithmic range as a share of its high end, if no positive value is known. */
const LOG_SHARE = 1e-6;

export function scaleOver(scale: ValueScale, [low, high]: readonly [number, number]): RangeScale {
  const largest = Math.max(Math.abs(low), Math.abs(high));
  return { scale, threshold: Math.max(largest * SYMLOG_SHARE, Number.MIN_VALUE) };
}

export function scaleOf(transfer: Transfer): RangeScale {
  return scaleOver(transfer.scale ?? "linear", transfer.range);
}

/** Position of a value; -Infinity for values of 0 and less on a logarithmic scale. */
export function position({ scale, threshold }: RangeScale, value: number): number {
  switch (scale) {
    case "linear":
      return value;
    case "log":
      return value > 0 ? Math.log2(value) : -Infinity;
    case "symlog":
      return (Math.sign(value) * Math.log1p(Math.abs(value) / threshold)) / Math.LN2;
  }
}

/** The value at a position: the inverse of `position`. */
export function valueOf({ scale, threshold }: RangeScale, at: number): number {
  switch (scale) {
    case "linear":
      return at;
    case "log":
      return 2 ** at;
    case "symlog":
      return Math.sign(at) * Math.expm1(Math.abs(at) * Math.LN2) * threshold;
  }
}

/** Place of a value between two others: 0 at `low`, 1 at `high`. */
export function shareBetween(own: RangeScale, low: number, high: number, value: number): number {
  const from = position(own, low);
  return (position(own, value) - from) / (position(own, high) - from);
}

/** The value at a share between two others. */
export function between(own: RangeScale, low: number, high: number, share: number): number {
  const from = position(own, low);
  return valueOf(own, from + share * (position(own, high) - from));
}

/** Changes the scale; points of opacity keep their places in the range, which must lie above 0 for `log`. */
export function rescaled(transfer: Transfer, scale: ValueScale, leastPositive: number | null): Transfer {
  const [low, high] = transfer.range;
  if (scale === (transfer.scale ?? "linear")) return transfer;
  if (scale === "log" && high <= 0) return transfer;
  const least =
    leastPositive !== null && leastPositive > 0 && leastPositive < high ? leastPositive : high * LOG_SHARE;
  const from = scaleOf(transfer);
  const range = [scale === "log" && low <= 0 ? least : low, high] as const;
  const to = scaleOver(scale, range);
  const opacity = transfer.opacity.map(([value, alpha]): OpacityPoint => {
    const share = shareBetween(from, low, high, value);
    return [share >= 0 && share <= 1 ? between(to, range[0], range[1], share) : value, alpha];
  });
  return { ...transfer, scale, range, opacity: opacity.sort((a, b) => a[0] - b[0]) };
}
