//! Lines of a data set that can be plotted together: those along the same axis. Pure.

import { freeAxes, isDrawable, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import type { View } from "../../view/schema.ts";
import { lineAxis } from "./scale.ts";

/** Most lines that are listed, and that are shown at the same time. */
export const MAX_LISTED = 200;
export const MAX_SHOWN = 12;

/** Returns the lines along the axis of an array, itself among them; coordinates of the axis are left out. */
export function linesBeside(dataset: Dataset, array: ArrayInfo): readonly ArrayInfo[] {
  const own = lineAxis(array);
  if (!own) return [];
  const isBeside = (other: ArrayInfo) => {
    if (other.name === array.name) return true;
    const line = isDrawable(other) ? lineAxis(other) : null;
    return (
      line !== null &&
      line.axis.name === own.axis.name &&
      line.size === own.size &&
      other.name !== line.axis.name
    );
  };
  return dataset.arrays.filter(isBeside).slice(0, MAX_LISTED);
}

/** Returns the lines in groups of one unit, in order. */
export function byUnits(
  lines: readonly ArrayInfo[],
): readonly { readonly units: string; readonly lines: readonly ArrayInfo[] }[] {
  const groups = new Map<string, ArrayInfo[]>();
  for (const line of lines) groups.set(line.units, [...(groups.get(line.units) ?? []), line]);
  return [...groups].map(([units, own]) => ({ units, lines: own }));
}

/** Returns the time and the indices of a view that exist in an array. */
export function placesIn(array: ArrayInfo, view: Pick<View, "time" | "at">): Pick<View, "time" | "at"> {
  const free = freeAxes(array);
  const at: Record<string, number> = {};
  let time = 0;
  for (const { axis, size } of free) {
    if (axis.kind === "time") time = Math.min(view.time, size - 1);
    else at[axis.name] = Math.min(view.at[axis.name] ?? 0, size - 1);
  }
  return { time, at };
}
