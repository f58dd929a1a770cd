//! Editing a transfer function: points, range, presets. Pure; points stay sorted and within bounds.

import { texts } from "../texts/texts.ts";
import { MAX_OPACITY_POINTS, type OpacityPoint, type Transfer } from "../view/schema.ts";
import { alphaAt, heightOf } from "./scale.ts";
import { between, scaleOf, shareBetween, type RangeScale } from "./value-scale.ts";

const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

/** The opacity at `value`; holds beyond the outermost points; at a step the right-hand side counts. Linear on a scale. */
export function opacityAt(points: readonly OpacityPoint[], value: number, own?: RangeScale): number {
  if (own?.scale === "log" && value <= 0) return 0;
  const after = points.findIndex((point) => point[0] > value);
  const next = after < 0 ? undefined : points[after];
  const before = after < 0 ? points.at(-1) : points[after - 1];
  if (!before || !next) return (before ?? next)?.[1] ?? 0;
  const share = own
    ? shareBetween(own, before[0], next[0], value)
    : (value - before[0]) / (next[0] - before[0]);
  // A point without a position on the scale is infinitely far away.
  return before[1] + (Number.isFinite(share) ? share : 1) * (next[1] - before[1]);
}

/** Moves point `index`, not past its neighbors. */
export function movePoint(transfer: Transfer, index: number, value: number, alpha: number): Transfer {
  const { opacity } = transfer;
  if (index < 0 || index >= opacity.length) return transfer;
  const low = opacity[index - 1]?.[0] ?? -Infinity;
  const high = opacity[index + 1]?.[0] ?? Infinity;
  const moved: OpacityPoint = [clamp(value, low, high), clamp(alpha, 0, 1)];
  return { ...transfer, opacity: opacity.with(index, moved) };
}

/** Moves point `index` by `by` in value and by `up` parts of the editor's height. */
export function nudgePoint(transfer: Transfer, index: number, by: number, up: number): Transfer {
  const point = transfer.opacity[index];
  return point ? movePoint(transfer, index, point[0] + by, alphaAt(heightOf(point[1]) + up)) : transfer;
}

/** Adds a point and returns its index; -1 if the curve is full. */
export function addPoint(
  transfer: Transfer,
  value: number,
  alpha: number,
): { transfer: Transfer; index: number } {
  if (transfer.opacity.length >= MAX_OPACITY_POINTS) return { transfer, index: -1 };
  const after = transfer.opacity.findIndex((point) => point[0] > value);
  const index = after < 0 ? transfer.opacity.length : after;
  const added: OpacityPoint = [value, clamp(alpha, 0, 1)];
  return { transfer: { ...transfer, opacity: transfer.opacity.toSpliced(index, 0, added) }, index };
}

/** Adds a point on the curve, halfway from point `index` to the next one, or from the last one to the one before. */
export function addBeside(transfer: Transfer, index: number): { transfer: Transfer; index: number } {
  const point = transfer.opacity[index];
  const other = transfer.opacity[index + 1] ?? transfer.opacity[index - 1];
  if (!point || !other) return { transfer, index: -1 };
  const middle = between(scaleOf(transfer), point[0], other[0], 0.5);
  return addPoint(
    transfer,
    Number.isFinite(middle) ? middle : (point[0] + other[0]) / 2,
    (point[1] + other[1]) / 2,
  );
}

/** Removes point `index`; the last two points stay. */
export function removePoint(transfer: Transfer, index: number): Transfer {
  if (transfer.opacity.length <= 2 || index < 0 || index >= transfer.opacity.length) return transfer;
  return { ...transfer, opacity: transfer.opacity.toSpliced(index, 1) };
}

/** Sets the value and the opacity of point `index`; the points are sorted again. Returns its new index. */
export function setPoint(
  transfer: Transfer,
  index: number,
  value: number,
  alpha: number,
): { transfer: Transfer; index: number } {
  if (index < 0 || index >= transfer.opacity.length || !Number.isFinite(value)) return { transfer, index };
  const rest = { ...transfer, opacity: transfer.opacity.toSpliced(index, 1) };
  return addPoint(rest, value, alpha);
}

/** Moves one end of the color range, keeping a little room between the ends. */
export function moveRange(transfer: Transfer, end: "low" | "high", value: number, domain: number): Transfer {
  const [low, high] = transfer.range;
  const room = Math.abs(domain) * 1e-3;
  const range: [number, number] =
    end === "low" ? [Math.min(value, high - room), high] : [low, Math.max(value, low + room)];
  return range[0] < range[1] && (range[0] > 0 || transfer.scale !== "log")
    ? { ...transfer, range }
    : transfer;
}

/** Moves colors and points to another range; points keep their places in it. A range that reaches down to 0 is linear. */
export function spreadOver(transfer: Transfer, range: readonly [number, number]): Transfer {
  const [low, high] = transfer.range;
  const isDefined = transfer.scale !== "log" || range[0] > 0;
  const next: Transfer = isDefined ? { ...transfer, range } : { ...transfer, range, scale: "linear" };
  const [from, to] = [scaleOf(transfer), scaleOf(next)];
  const moved = transfer.opacity.map(([value, alpha]): OpacityPoint => {
    // Points without a position on the scale stay just below the range.
    const share = Math.max(shareBetween(from, low, high, value), -1);
    return [between(to, range[0], range[1], share), alpha];
  });
  const opacity = moved.every(([value]) => Number.isFinite(value)) ? moved : transfer.opacity;
  return { ...next, opacity };
}

/** Preset curves: fractions of the color range with their opacities. */
export const PRESETS: readonly {
  readonly name: string;
  readonly hint: string;
  readonly shape: readonly OpacityPoint[];
}[] = [
  {
    ...texts.opacityPresets.ramp,
    shape: [
      [0, 0],
      [0.15, 0],
      [1, 0.3],
    ],
  },
  {
    ...texts.opacityPresets.shell,
    shape: [
      [0, 0],
      [0.3, 0],
      [0.4, 0.3],
      [0.5, 0],
      [1, 0],
    ],
  },
  {
    ...texts.opacityPresets.solid,
    shape: [
      [0, 0],
      [0.35, 0],
      [0.42, 0.85],
      [1, 0.95],
    ],
  },
  {
    ...texts.opacityPresets.ends,
    shape: [
      [0, 0.25],
      [0.3, 0],
      [0.7, 0],
      [1, 0.25],
    ],
  },
  {
    ...texts.opacityPresets.fog,
    shape: [
      [0, 0.01],
      [1, 0.04],
    ],
  },
];

/** All values opaque: for a single layer, which hides nothing. */
export const OPAQUE: readonly OpacityPoint[] = [
  [0, 1],
  [1, 1],
];

export function applyPreset(transfer: Transfer, shape: readonly OpacityPoint[]): Transfer {
  const [low, high] = transfer.range;
  const own = scaleOf(transfer);
  return { ...transfer, opacity: shape.map(([at, alpha]) => [between(own, low, high, at), alpha]) };
}

/** Opacity below this is invisible even through hundreds of voxels. */
const VISIBLE_ALPHA = 1e-4;

/** True if some value that occurs has opacity; without a histogram, any value. */
export function isAnythingVisible(
  transfer: Transfer,
  histogram: { readonly low: number; readonly high: number; readonly counts: readonly number[] } | null,
): boolean {
  if (!histogram || histogram.counts.length === 0)
    return transfer.opacity.some((point) => point[1] > VISIBLE_ALPHA);
  const width = (histogram.high - histogram.low) / histogram.counts.length;
  const own = scaleOf(transfer);
  const isSeen = (low: number, high: number) =>
    opacityAt(transfer.opacity, low, own) > VISIBLE_ALPHA ||
    opacityAt(transfer.opacity, high, own) > VISIBLE_ALPHA ||
    transfer.opacity.some((point) => point[0] >= low && point[0] <= high && point[1] > VISIBLE_ALPHA);
  return histogram.counts.some(
    (n, i) => n > 0 && isSeen(histogram.low + i * width, histogram.low + (i + 1) * width),
  );
}
