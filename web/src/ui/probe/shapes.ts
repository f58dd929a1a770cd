//! Lines of measurements in world space, as they are drawn on the picture: the line of a profile, the edges of a box, the outline of a
//! polygon. In an image of a volume only what lies on its slice. Pure.

import type { ArrayInfo } from "../../dataset/dataset.ts";
import { voxelOf, worldOf } from "../../layout/space.ts";
import type { Vec3 } from "../../view/schema.ts";
import type { ShownSlice } from "./presence.ts";
import type { Measurement } from "./requests.ts";

export type WorldLine = readonly [from: Vec3, to: Vec3];

/** Distance from a slice up to which parts of lines are drawn, voxels: half a voxel, and rounding. */
const HALF = 0.5 + 1e-6;

/** Returns the lines of a measurement; none for a single place and for whole volumes. */
export function shapeOf(
  measurement: Measurement,
  array: ArrayInfo,
  slice: ShownSlice | null,
): readonly WorldLine[] {
  switch (measurement.kind) {
    case "profile":
      return onSlice([[measurement.from, measurement.to]], array, slice);
    case "polygon": {
      const { corners } = measurement;
      const edges = corners.map((from, i): WorldLine => [from, corners[(i + 1) % corners.length] ?? from]);
      return onSlice(edges, array, slice);
    }
    case "box":
      return boxEdges(measurement.corners, array, slice);
    case "points":
    case "series":
    case "clip":
      return [];
  }
}

/** Edges of the box around all voxels between two corners; in an image those of the rectangle on its slice. */
function boxEdges(
  corners: readonly [Vec3, Vec3],
  array: ArrayInfo,
  slice: ShownSlice | null,
): readonly WorldLine[] {
  const [a, b] = [voxelOf(array, corners[0]), voxelOf(array, corners[1])];
  if (!a || !b) return [];
  const low = a.map((at, i) => Math.round(Math.min(at, b[i] ?? at)) - 0.5);
  const high = a.map((at, i) => Math.round(Math.max(at, b[i] ?? at)) + 0.5);
  if (slice) {
    const { axis, at } = slice;
    if (at < (low[axis] ?? at) || at > (high[axis] ?? at)) return [];
    low[axis] = high[axis] = at;
  }
  const corner = (bits: number): Vec3 => {
    const at = (i: number) => (((bits >> i) & 1) === 1 ? high[i] : low[i]) ?? 0;
    return worldOf(array, [at(0), at(1), at(2)]);
  };
  const drawn = ([0, 1, 2] as const).filter((axis) => axis !== slice?.axis);
  return drawn.flatMap((axis) =>
    Array.from({ length: 8 }, (_, bits) => bits)
      .filter((bits) => ((bits >> axis) & 1) === 0 && (!slice || ((bits >> slice.axis) & 1) === 0))
      .map((bits): WorldLine => [corner(bits), corner(bits | (1 << axis))]),
  );
}

/** Limits lines to the slice of an image. */
function onSlice(
  lines: readonly WorldLine[],
  array: ArrayInfo,
  slice: ShownSlice | null,
): readonly WorldLine[] {
  if (!slice) return lines;
  return lines.flatMap(([from, to]): WorldLine[] => {
    const [a, b] = [voxelOf(array, from)?.[slice.axis], voxelOf(array, to)?.[slice.axis]];
    if (a === undefined || b === undefined) return [];
    const shares = a === b ? [0, 1] : [-HALF, HALF].map((side) => (slice.at + side - a) / (b - a));
    const [first, last] = [Math.max(0, Math.min(...shares)), Math.min(1, Math.max(...shares))];
    const isOutside = a === b ? Math.abs(a - slice.at) > HALF : first > last;
    return isOutside ? [] : [[between(from, to, first), between(from, to, last)]];
  });
}

/** Point at a share of a line. */
export function between(from: Vec3, to: Vec3, share: number): Vec3 {
  const at = (i: 0 | 1 | 2) => from[i] + (to[i] - from[i]) * share;
  return [at(0), at(1), at(2)];
}
