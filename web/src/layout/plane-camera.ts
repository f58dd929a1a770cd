//! Cameras that look straight at a plane with parallel rays: fitting, panning, zooming, places on the screen. Pure. Positions on
//! the screen are pixels with y down.

import { basis, distance, heightAtTarget, pan, type Size } from "../camera/camera.ts";
import { dot, length, scale, sub } from "../camera/vec.ts";
import type { ArrayInfo, Dataset } from "../dataset/dataset.ts";
import { worldBox } from "../dataset/world.ts";
import type { Camera, Vec3 } from "../view/schema.ts";
import {
  centerOf,
  column,
  halfExtents,
  mapOf,
  moved,
  spacingIn,
  stanceOn,
  voxelOf,
  type AxisNumber,
} from "./space.ts";

/** Margin around a fitted plane. */
const FIT_MARGIN = 1.02;
/** Fewest voxels across the picture, and most widths of the plane. */
const FEWEST_VOXELS = 2;
const MOST_WIDTHS = 20;
/** Screen pixels per voxel from which voxels are drawn as squares. */
export const SQUARES_FROM_PIXELS = 8;

export interface ScreenPoint {
  readonly x: number;
  readonly y: number;
}

/** Returns the camera that sees a whole plane across an axis. */
export function fitPlane(dataset: Dataset, array: ArrayInfo, axis: AxisNumber, size: Size): Camera {
  const stance = stanceOn(dataset, array, axis);
  const [right, up] = halfExtents(array, stance);
  const aspect = size.width / Math.max(1, size.height);
  const height = 2 * FIT_MARGIN * Math.max(up, right / Math.max(1e-6, aspect));
  const target = centerOf(array);
  const away = Math.max(height, 2 * right, 2 * up) || 1;
  return {
    eye: moved(target, stance.forward, -away),
    target,
    up: stance.up,
    projection: { orthographic: { height_world: height > 0 ? height : 1 } },
  };
}

/** True if a camera looks straight at planes across an axis. */
export function facesPlane(camera: Camera, array: ArrayInfo, axis: AxisNumber): boolean {
  const { forward } = basis(camera);
  const map = mapOf(array);
  const along = ([0, 1, 2] as const).filter((other) => other !== axis).map((other) => column(map, other));
  return along.every((step) => Math.abs(dot(step, forward)) <= 1e-3 * length(step));
}

/** Scales what is seen by `factor`, keeping the point at `x`, `y` pixels from the picture's center where it is. */
export function zoomPlane(
  camera: Camera,
  factor: number,
  array: ArrayInfo,
  axis: AxisNumber,
  size: Size,
  x = 0,
  y = 0,
): Camera {
  const now = heightAtTarget(camera);
  const side = worldBox(array)?.diagonal ?? now;
  const least = FEWEST_VOXELS * spacingIn(array, axis);
  const next = Math.min(Math.max(now * factor, Number.isFinite(least) ? least : 0), MOST_WIDTHS * side);
  const bounded = next / now;
  const held = pan(camera, x * (bounded - 1), y * (bounded - 1), size);
  return { ...held, projection: { orthographic: { height_world: next } } };
}

/** Returns the screen pixels per voxel in planes across an axis. */
export function pixelsPerVoxel(camera: Camera, array: ArrayInfo, axis: AxisNumber, size: Size): number {
  const spacing = spacingIn(array, axis);
  return Number.isFinite(spacing) ? (spacing * size.height) / heightAtTarget(camera) : 0;
}

/** Returns the place on the screen of a place in the world, for parallel rays. */
export function onScreen(camera: Camera, size: Size, world: Vec3): ScreenPoint {
  const { right, up } = basis(camera);
  const from = sub(world, camera.target);
  const perUnit = size.height / heightAtTarget(camera);
  return { x: size.width / 2 + dot(from, right) * perUnit, y: size.height / 2 - dot(from, up) * perUnit };
}

/** Returns the voxel position under a place on the screen, on the plane across `axis` at `at`; null if the plane is seen edge on. */
export function voxelAt(
  camera: Camera,
  size: Size,
  { x, y }: ScreenPoint,
  array: ArrayInfo,
  axis: AxisNumber,
  at: number,
): Vec3 | null {
  const { forward, right, up } = basis(camera);
  const unit = heightAtTarget(camera) / Math.max(1, size.height);
  const onTarget = moved(
    moved(camera.target, right, (x - size.width / 2) * unit),
    up,
    (size.height / 2 - y) * unit,
  );
  const origin = moved(onTarget, forward, -distance(camera));
  const [from, to] = [voxelOf(array, origin), voxelOf(array, moved(origin, forward, 1))];
  if (!from || !to) return null;
  const step = to[axis] - from[axis];
  if (!(Math.abs(step) > 0)) return null;
  const t = (at - from[axis]) / step;
  const place = scale(sub(to, from), t);
  return [from[0] + place[0], from[1] + place[1], from[2] + place[2]];
}
