//! Oblique planes: through a point, in any direction. Pure.

import { basis } from "../camera/camera.ts";
import { cross, dot, length, normalize, scale, sub } from "../camera/vec.ts";
import { spaceShape, type ArrayInfo } from "../dataset/dataset.ts";
import { SPACE_AXES, type Camera, type Slice, type Vec3 } from "../view/schema.ts";
import { AXIS_NUMBERS, centerOf, column, lastVoxel, mapOf, moved, others, voxelOf } from "./space.ts";

/** An oblique slice: normal and point are both given. */
export interface Oblique extends Slice {
  readonly normal: Vec3;
  readonly point: Vec3;
}

export function isOblique(slice: Slice): slice is Oblique {
  return slice.normal !== undefined && slice.point !== undefined;
}

/** Returns the plane through a point with a normal. Programs that do not know oblique planes show a similar one across an axis. */
export function obliqueThrough(array: ArrayInfo, normal: Vec3, point: Vec3): Oblique {
  const map = mapOf(array);
  const shape = spaceShape(array);
  const steepness = AXIS_NUMBERS.map((axis) => {
    const [i, j] = others(axis);
    const across = normalize(cross(column(map, i), column(map, j)));
    return shape[axis] > 1 ? Math.abs(dot(across, normalize(normal))) : -1;
  });
  const axis = AXIS_NUMBERS[steepness.indexOf(Math.max(...steepness))] ?? 2;
  const voxel = voxelOf(array, point);
  const at = Math.min(Math.max(Math.round(voxel?.[axis] ?? 0), 0), lastVoxel(array)[axis]);
  return { axis: SPACE_AXES[axis], at, normal: normalize(normal), point };
}

/** Returns the plane through the center of the volume that faces a camera. */
export function obliqueFacing(array: ArrayInfo, camera: Camera): Oblique {
  return obliqueThrough(array, scale(basis(camera).forward, -1), centerOf(array));
}

/** Returns half the extent of the volume along a direction, world units. */
export function reach(array: ArrayInfo, normal: Vec3): number {
  const map = mapOf(array);
  const shape = spaceShape(array);
  const along = (axis: 0 | 1 | 2) => (Math.abs(dot(column(map, axis), normalize(normal))) * shape[axis]) / 2;
  return along(0) + along(1) + along(2);
}

/** Returns the distance of a plane from the center of the volume along its normal. */
export function offsetOf(array: ArrayInfo, { normal, point }: Oblique): number {
  return dot(sub(point, centerOf(array)), normal) / Math.max(length(normal), Number.MIN_VALUE);
}

/** Moves a plane to a distance from the center of the volume; its point is then on the normal through the center. */
export function atOffset(array: ArrayInfo, { normal }: Oblique, offset: number): Oblique {
  return obliqueThrough(array, normal, moved(centerOf(array), normalize(normal), offset));
}

/** Replaces the first oblique plane, adds one, or removes all. */
export function withOblique(slices: readonly Slice[], plane: Oblique | null): readonly Slice[] {
  const first = slices.findIndex(isOblique);
  if (plane === null) return slices.filter((slice) => !isOblique(slice));
  return first < 0 ? [...slices, plane] : slices.map((slice, i) => (i === first ? plane : slice));
}
