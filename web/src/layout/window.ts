//! Window and level: the center and the width of the range of values that the colors span. Pure.

import type { Transfer } from "../view/schema.ts";

/** Factor by which the width changes when the pointer moves by the size of the picture. */
const WIDTH_RATE = 4;

/**
 * Changes the range of a transfer function by a drag over shares of the picture: to the right it becomes wider, downward its center
 * rises. The opacity curve keeps its place in the range.
 */
export function windowed(transfer: Transfer, right: number, down: number): Transfer {
  const [low, high] = transfer.range;
  const width = high - low;
  const nextWidth = width * Math.exp(right * Math.log(WIDTH_RATE) * 2);
  const center = (low + high) / 2 + down * width;
  const range: [number, number] = [center - nextWidth / 2, center + nextWidth / 2];
  if (!(range[0] < range[1]) || !range.every(Number.isFinite)) return transfer;
  const place = (value: number) => range[0] + ((value - low) / width) * (range[1] - range[0]);
  return {
    ...transfer,
    range,
    opacity: transfer.opacity.map(([value, alpha]) => [place(value), alpha] as const),
  };
}
