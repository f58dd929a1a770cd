//! Part of an array inside of the clip box, as ranges of indices. Pure.

import type { Range } from "../wire/operations.ts";
import type { View } from "../view/schema.ts";
import { isDrawn, type ArrayInfo } from "./dataset.ts";

/** Share of a matrix's largest entry below which another one is rounding. */
const ROUNDING = 1e-6;

/** Returns true if the clip box is a box of voxels: the axes of the array are those of the world, and it is not resampled. */
export function canClipRanges(array: ArrayInfo): boolean {
  return array.levels === array.fileLevels && worldAxes(array) !== null;
}

/**
 * Returns for the voxel axes x, y and z the world axis along which each lies, and whether it runs against it; null if the
 * array is rotated.
 */
function worldAxes(
  array: ArrayInfo,
): readonly { readonly axis: number; readonly isReversed: boolean }[] | null {
  const map = array.levels[0]?.worldFromVoxel ?? [];
  const axes = [0, 1, 2].flatMap((column) => {
    const entries = [0, 1, 2].map((row) => map[row]?.[column] ?? 0);
    const largest = Math.max(...entries.map(Math.abs));
    const axis = entries.findIndex((entry) => Math.abs(entry) === largest);
    const isAlone = entries.every((entry, row) => row === axis || Math.abs(entry) <= ROUNDING * largest);
    return largest > 0 && isAlone ? [{ axis, isReversed: (entries[axis] ?? 0) < 0 }] : [];
  });
  return axes.length === 3 && new Set(axes.map(({ axis }) => axis)).size === 3 ? axes : null;
}

/** Cuts ranges of whole axes to the clip box; at least one voxel remains. */
export function clipRanges(array: ArrayInfo, ranges: readonly Range[], clip: View["clip"]): Range[] {
  const axes = worldAxes(array);
  if (!clip || !axes || !canClipRanges(array)) return [...ranges];
  const hasSpace = array.axes.some(({ kind }) => kind === "x" || kind === "y" || kind === "z");
  return ranges.map((range, i) => {
    if (!isDrawn(array, i)) return range;
    const kind = array.axes[i]?.kind ?? "other";
    const column = hasSpace ? ["x", "y", "z"].indexOf(kind) : array.axes.length - 1 - i;
    const along = axes[column];
    if (!along) return range;
    const [from, to] = [clip[0][along.axis] ?? 0, clip[1][along.axis] ?? 1];
    const [low, high] = along.isReversed ? [1 - to, 1 - from] : [from, to];
    const start = Math.min(Math.floor(low * range.count), range.count - 1);
    const end = Math.max(Math.ceil(high * range.count), start + 1);
    return { ...range, start: range.start + Math.max(start, 0), count: Math.min(end, range.count) - start };
  });
}
