//! Bounds of an array in world space.

import type { Vec3 } from "../view/schema.ts";
import { spaceShape, type Affine, type ArrayInfo } from "./dataset.ts";

/** Box that cameras are fitted to: the volume's center, its longest diagonal, its extent along each axis. */
export interface WorldBox {
  readonly center: Vec3;
  readonly diagonal: number;
  readonly extent: Vec3;
}

/** The box of level 0 including the outer halves of its outermost voxels; null without levels. */
export function worldBox(array: ArrayInfo): WorldBox | null {
  const level = array.levels[0];
  if (!level) return null;
  const counts = spaceShape(array).map((size) => Math.max(1, size));
  const [nx = 1, ny = 1, nz = 1] = counts;
  const center = apply(level.worldFromVoxel, [(nx - 1) / 2, (ny - 1) / 2, (nz - 1) / 2]);
  const opposite: [Vec3, Vec3][] = [
    [
      [0, 0, 0],
      [nx, ny, nz],
    ],
    [
      [nx, 0, 0],
      [0, ny, nz],
    ],
    [
      [0, ny, 0],
      [nx, 0, nz],
    ],
    [
      [0, 0, nz],
      [nx, ny, 0],
    ],
  ];
  const lengths = opposite.map(([a, b]) => {
    const [p, q] = [apply(level.worldFromVoxel, a), apply(level.worldFromVoxel, b)];
    return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
  });
  const diagonal = Math.max(...lengths);
  return {
    center,
    diagonal: Number.isFinite(diagonal) && diagonal > 0 ? diagonal : 1,
    extent: extent(level.worldFromVoxel, counts),
  };
}

/** Least fraction of the box's extent along a world axis that is not due to rounding. */
const LEAST_SHARE = 1e-6;

/** Returns for each axis of the world whether the array has more than one voxel along it. */
export function isThick(array: ArrayInfo): readonly [boolean, boolean, boolean] {
  const map = array.levels[0]?.worldFromVoxel ?? [];
  const counts = spaceShape(array);
  const all = extent(map, counts);
  const long = extent(
    map,
    counts.map((n) => (n > 1 ? n : 0)),
  );
  const is = (i: 0 | 1 | 2) => long[i] > LEAST_SHARE * all[i];
  return [is(0), is(1), is(2)];
}

/** Returns the extent along each axis of the world of a box of `counts` voxels. */
function extent(map: Affine, counts: readonly number[]): Vec3 {
  const along = (i: number) => counts.reduce((sum, n, axis) => sum + Math.abs(map[i]?.[axis] ?? 0) * n, 0);
  return [along(0), along(1), along(2)];
}

/** Returns the place in the world of a position in voxels `[x, y, z]`. */
export function apply(map: Affine, p: Vec3): Vec3 {
  const row = (i: number) => {
    const [a = 0, b = 0, c = 0, d = 0] = map[i] ?? [];
    return a * p[0] + b * p[1] + c * p[2] + d;
  };
  return [row(0), row(1), row(2)];
}
