//! Window and level: the center and the width of the range of values that the colors span. Pure.

import { between, position, scaleOf, scaleOver, shareBetween, valueOf } from "../transfer/value-scale.ts";
import type { OpacityPoint, Transfer } from "../view/schema.ts";

/** Factor by which the width changes when the pointer moves by the size of the picture. */
const WIDTH_RATE = 4;

/**
 * Changes the range of a transfer function by a drag over shares of the picture: to the right it becomes wider, downward its center
 * rises, on the scale of the transfer function. The opacity curve keeps its place in the range.
 */
export function windowed(transfer: Transfer, right: number, down: number): Transfer {
  const [low, high] = transfer.range;
  const from = scaleOf(transfer);
  const [first, last] = [position(from, low), position(from, high)];
  const width = last - first;
  const nextWidth = width * Math.exp(right * Math.log(WIDTH_RATE) * 2);
  const center = (first + last) / 2 + down * width;
  const range = [valueOf(from, center - nextWidth / 2), valueOf(from, center + nextWidth / 2)] as const;
  const isPlaced = from.scale !== "log" || range[0] > 0;
  if (!(range[0] < range[1]) || !range.every(Number.isFinite) || !isPlaced) return transfer;
  const to = scaleOver(from.scale, range);
  const opacity = transfer.opacity.map(([value, alpha]): OpacityPoint => {
    const share = shareBetween(from, low, high, value);
    // Values of 0 and less have no place on a logarithmic scale.
    return [Number.isFinite(share) ? between(to, ...range, share) : value, alpha];
  });
  return opacity.every(([value]) => Number.isFinite(value)) ? { ...transfer, range, opacity } : transfer;
}
