//! Values of new isosurfaces. Pure.

import type { Transfer } from "../view/schema.ts";
import { between, position, scaleOf } from "./value-scale.ts";

/** The middle of the widest part of the range without a surface, on its scale; the middle of the range for the first one. */
export function nextIsovalue(transfer: Transfer, values: readonly number[]): number {
  const own = scaleOf(transfer);
  const [low, high] = transfer.range;
  const inside = values.filter((value) => value > low && value < high).sort((a, b) => a - b);
  const marks = [low, ...inside, high];
  let best: readonly [number, number] = [low, high];
  let widest = -1;
  for (let i = 1; i < marks.length; i++) {
    const [from, to] = [marks[i - 1] ?? low, marks[i] ?? high];
    const width = position(own, to) - position(own, from);
    // Of equal parts, the higher one, since low values are often background.
    if (width >= widest * (1 - 1e-9)) {
      widest = width;
      best = [from, to];
    }
  }
  return between(own, best[0], best[1], 0.5);
}
