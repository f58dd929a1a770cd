//! Distribution of the values that the view shows, for the editors of the transfer function and of isosurfaces.

import { canClipRanges } from "../dataset/clip-ranges.ts";
import { positionKey } from "../dataset/stats.ts";
import { binned, outside, outsideText, quantilesOf, type Quantiles } from "../transfer/distribution.ts";
import type { Domain } from "../transfer/scale.ts";
import { statsShown, type State } from "./state.ts";

/** Quantiles of the whole volume of this step and channel; empty while unknown. */
function ownQuantiles({ values, array, view }: State): Quantiles {
  if (!values || !array || values.array !== array.name) return [];
  return positionKey(array, values) === positionKey(array, view) ? values.quantiles : [];
}

/** True if statistics are those of the clip box. */
export function isClipped({ array, view }: State): boolean {
  return view.clip !== null && array !== null && canClipRanges(array);
}

/** Quantiles of the values shown: of the clip box if there is one, of this step and channel. */
export function shownQuantiles(state: State): Quantiles {
  const histogram = statsShown(state)?.stats.histogram;
  const ofBox = isClipped(state) && histogram ? quantilesOf(histogram) : [];
  const own = ofBox.length > 0 ? ofBox : ownQuantiles(state);
  return own.length > 0 || !histogram ? own : quantilesOf(histogram);
}

export interface ShownHistogram {
  readonly low: number;
  readonly high: number;
  readonly counts: readonly number[];
}

/** Histogram over a domain of the editor: with equal bins on its scale; null while unknown. */
export function shownHistogram(state: State, domain: Domain): ShownHistogram | null {
  const own = domain.own;
  if (!own || own.scale === "linear") return state.stats?.stats.histogram ?? null;
  const counts = binned(shownQuantiles(state), own, domain.low, domain.high);
  return counts.length > 0
    ? { low: domain.low, high: domain.high, counts: counts.map((n) => n * 1e6) }
    : null;
}

/** States how many values lie outside of the color range; empty if none do or they are unknown. */
export function outsideNote(state: State): string {
  const range = state.view.transfer?.range;
  return range ? outsideText(outside(shownQuantiles(state), range)) : "";
}

/** The smallest positive value that is usual; null if none is known. */
export function leastPositive(state: State): number | null {
  const positive = shownQuantiles(state).filter(([share, value]) => share >= 0.002 && value > 0);
  return positive[0]?.[1] ?? null;
}

/** Kind of the data shown, such as `ct`; empty while unknown. */
export function dataKind({ values, array }: State): string {
  return values && array && values.array === array.name ? values.kind : "";
}
