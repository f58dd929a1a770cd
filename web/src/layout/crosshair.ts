//! The crosshair: the point where the planes across the three axes meet. It is kept in the view as slices. Pure.

import type { Size } from "../camera/camera.ts";
import { spaceShape, type ArrayInfo } from "../dataset/dataset.ts";
import { SPACE_AXES, type Camera, type Slice, type SpaceAxis, type Vec3 } from "../view/schema.ts";
import { onScreen, type ScreenPoint } from "./plane-camera.ts";
import { AXIS_NUMBERS, lastVoxel, others, worldOf, type AxisNumber } from "./space.ts";

/** True for the slice that belongs to the crosshair: the first one across its axis that is not oblique. */
function isAcross(slice: Slice, axis: SpaceAxis): boolean {
  return slice.axis === axis && slice.normal === undefined;
}

/** Returns the position of the crosshair in voxels; in the middle along axes without a slice. */
export function crosshairOf(slices: readonly Slice[], array: ArrayInfo): Vec3 {
  const last = lastVoxel(array);
  const along = (axis: AxisNumber) => {
    const slice = slices.find((one) => isAcross(one, SPACE_AXES[axis]));
    return Math.min(Math.max(slice?.at ?? Math.floor(last[axis] / 2), 0), last[axis]);
  };
  return [along(0), along(1), along(2)];
}

/**
 * Moves the crosshair to the voxel nearest to a position; slices of axes along which it does not move stay between voxels. Slices
 * across an axis that are missing are added if `adds`. Returns the same list if nothing changes.
 */
export function withCrosshair(
  slices: readonly Slice[],
  position: Vec3,
  array: ArrayInfo,
  adds = true,
): readonly Slice[] {
  const last = lastVoxel(array);
  const shape = spaceShape(array);
  const now = crosshairOf(slices, array);
  return AXIS_NUMBERS.reduce<readonly Slice[]>((all, axis) => {
    const name = SPACE_AXES[axis];
    const isMoved = position[axis] !== now[axis];
    const at = isMoved ? Math.min(Math.max(Math.round(position[axis]), 0), last[axis]) : now[axis];
    const first = all.findIndex((slice) => isAcross(slice, name));
    if (first < 0) return adds && shape[axis] > 1 ? [...all, { axis: name, at }] : all;
    if (all[first]?.at === at) return all;
    return all.map((slice, i) => (i === first ? { ...slice, at } : slice));
  }, slices);
}

/** Returns the slices with the planes of the crosshair drawn or only remembered. */
export function withShown(slices: readonly Slice[], isShown: boolean): readonly Slice[] {
  return slices.map((slice) => {
    if (slice.normal !== undefined) return slice;
    return isShown ? without(slice, "hidden") : { ...slice, hidden: true };
  });
}

/** Returns a slice without one of its marks. */
export function without(slice: Slice, mark: "hidden" | "nearest"): Slice {
  const isKept = ([name]: [string, unknown]) => name !== mark;
  return Object.fromEntries(Object.entries(slice).filter(isKept)) as unknown as Slice;
}

/** True if no plane of the crosshair is drawn. */
export function isHidden(slices: readonly Slice[]): boolean {
  const own = slices.filter((slice) => slice.normal === undefined);
  return own.length > 0 && own.every((slice) => slice.hidden === true);
}

/** Line of a plane as seen on another one. */
export interface CrosshairLine {
  /** The axis that the plane lies across. */
  readonly axis: AxisNumber;
  readonly from: ScreenPoint;
  readonly to: ScreenPoint;
}

/** Returns the two lines, across the whole volume, in a picture of the plane across `axis`. */
export function crosshairLines(
  camera: Camera,
  size: Size,
  array: ArrayInfo,
  axis: AxisNumber,
  position: Vec3,
): readonly CrosshairLine[] {
  const last = lastVoxel(array);
  const [i, j] = others(axis);
  return [
    [i, j],
    [j, i],
  ].map(([plane, along]) => {
    const end = (at: number) => {
      const voxel: [number, number, number] = [...position];
      voxel[along as AxisNumber] = at;
      return onScreen(camera, size, worldOf(array, voxel));
    };
    return { axis: plane as AxisNumber, from: end(-0.5), to: end(last[along as AxisNumber] + 0.5) };
  });
}

/** Returns the crosshair moved to a position in the plane across `axis`, which stays as it is. */
export function movedIn(axis: AxisNumber, position: Vec3, to: Vec3): Vec3 {
  const next: [number, number, number] = [...to];
  next[axis] = position[axis];
  return next;
}

/** Steps the plane across `axis` by a number of voxels; the same list if there is none, or it is at the end. */
export function stepped(
  slices: readonly Slice[],
  array: ArrayInfo,
  axis: AxisNumber,
  by: number,
): readonly Slice[] {
  const position: [number, number, number] = [...crosshairOf(slices, array)];
  position[axis] = Math.round(position[axis]) + by;
  return withCrosshair(slices, position, array, false);
}
