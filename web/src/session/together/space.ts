//! Places in space on the screen: projection of a world point by a camera, and the world point under the pointer. Pure.

import { basis, heightAtTarget, type Size } from "../../camera/camera.ts";
import { add, cross, dot, scale, sub } from "../../camera/vec.ts";
import { spaceShape, type ArrayInfo } from "../../dataset/dataset.ts";
import type { Camera, Slice, Vec3, View } from "../../view/schema.ts";
import type { PointerPlace } from "./items.ts";

export interface ScreenPoint {
  readonly x: number;
  readonly y: number;
}

export interface Ray {
  readonly origin: Vec3;
  readonly direction: Vec3;
}

/** Returns the place of a world point in the picture, pixels from its left and top; null if it is behind the camera. */
export function project(camera: Camera, size: Size, point: Vec3): ScreenPoint | null {
  const { forward, right, up } = basis(camera);
  const offset = sub(point, camera.eye);
  const depth = dot(offset, forward);
  const isParallel = "orthographic" in camera.projection;
  if (!isParallel && depth <= 0) return null;
  const atTarget = dot(sub(camera.target, camera.eye), forward);
  const height = heightAtTarget(camera) * (isParallel ? 1 : depth / atTarget);
  const perUnit = size.height / height;
  return {
    x: size.width / 2 + dot(offset, right) * perUnit,
    y: size.height / 2 - dot(offset, up) * perUnit,
  };
}

/** Returns the ray through a pixel; its direction has length 1 along the viewing direction. */
export function rayThrough(camera: Camera, size: Size, at: ScreenPoint): Ray {
  const { forward, right, up } = basis(camera);
  const perPixel = heightAtTarget(camera) / Math.max(1, size.height);
  const x = (at.x - size.width / 2) * perPixel;
  const y = (size.height / 2 - at.y) * perPixel;
  const aside = add(scale(right, x), scale(up, y));
  if ("orthographic" in camera.projection) return { origin: add(camera.eye, aside), direction: forward };
  const away = dot(sub(camera.target, camera.eye), forward);
  return { origin: camera.eye, direction: add(forward, scale(aside, 1 / away)) };
}

/**
 * Returns the world point under a pixel: on the first slice, else within the drawn box at the depth of `near`, a point that
 * was seen close by, or without one at that of the camera's target. Null beside the data.
 */
export function worldPoint(
  view: View,
  array: ArrayInfo,
  size: Size,
  at: ScreenPoint,
  near: Vec3 | null = null,
): Vec3 | null {
  const found = seen(view, array, size, at);
  if (!found || !view.camera) return null;
  const { ray, slice, first, last } = found;
  const { forward } = basis(view.camera);
  const depth = dot(sub(near ?? view.camera.target, ray.origin), forward);
  return add(ray.origin, scale(ray.direction, slice ?? Math.min(Math.max(depth, first), last)));
}

/** Returns the world point of the first slice across an axis under a pixel; null where there is none. */
export function slicePoint(view: View, array: ArrayInfo, size: Size, at: ScreenPoint): Vec3 | null {
  const found = seen(view, array, size, at);
  return found?.slice == null ? null : add(found.ray.origin, scale(found.ray.direction, found.slice));
}

/** Ray through a pixel, and where it enters and leaves the drawn box and meets the first slice. */
interface Seen {
  readonly ray: Ray;
  readonly first: number;
  readonly last: number;
  readonly slice: number | null;
}

function seen(view: View, array: ArrayInfo, size: Size, at: ScreenPoint): Seen | null {
  const map = array.levels[0]?.worldFromVoxel;
  if (!view.camera || !map) return null;
  const ray = rayThrough(view.camera, size, at);
  const column = (i: number): Vec3 => [map[0]?.[i] ?? 0, map[1]?.[i] ?? 0, map[2]?.[i] ?? 0];
  const voxel = voxelRay(ray, [column(0), column(1), column(2)], column(3));
  if (!voxel) return null;
  const [low, high] = drawnBox(spaceShape(array), view.clip);
  const range = crossing(voxel, low, high);
  if (!range) return null;
  const [first, last] = range;
  return { ray, first, last, slice: firstSlice(voxel, view.slices, first, last) };
}

/** Returns the ray in voxels; null for a degenerate map. */
function voxelRay(ray: Ray, [a, b, c]: readonly [Vec3, Vec3, Vec3], origin: Vec3): Ray | null {
  const determinant = dot(a, cross(b, c));
  if (determinant === 0 || !Number.isFinite(determinant)) return null;
  const inverse = (v: Vec3): Vec3 => [
    dot(v, cross(b, c)) / determinant,
    dot(v, cross(c, a)) / determinant,
    dot(v, cross(a, b)) / determinant,
  ];
  return { origin: inverse(sub(ray.origin, origin)), direction: inverse(ray.direction) };
}

/** Returns the corners of the drawn box in voxels, including the outer halves of the outermost ones. */
function drawnBox(counts: readonly [number, number, number], clip: View["clip"]): readonly [Vec3, Vec3] {
  const [low, high] = clip ?? [
    [0, 0, 0],
    [1, 1, 1],
  ];
  const corner = ([x, y, z]: Vec3): Vec3 => [x * counts[0] - 0.5, y * counts[1] - 0.5, z * counts[2] - 0.5];
  return [corner(low), corner(high)];
}

/** Returns where a ray enters and leaves a box, in front of its origin; null if it misses the box. */
function crossing({ origin, direction }: Ray, low: Vec3, high: Vec3): readonly [number, number] | null {
  let [first, last] = [0, Infinity];
  for (const axis of [0, 1, 2] as const) {
    const [from, by] = [origin[axis], direction[axis]];
    if (by === 0) {
      if (from < low[axis] || from > high[axis]) return null;
      continue;
    }
    const [t, u] = [(low[axis] - from) / by, (high[axis] - from) / by];
    first = Math.max(first, Math.min(t, u));
    last = Math.min(last, Math.max(t, u));
  }
  return first <= last && Number.isFinite(last) ? [first, last] : null;
}

function firstSlice(ray: Ray, slices: readonly Slice[], first: number, last: number): number | null {
  const across = slices.filter(({ hidden, normal }) => hidden !== true && normal === undefined);
  const hits = across.map(({ axis, at }) => {
    const i = { x: 0, y: 1, z: 2 }[axis] as 0 | 1 | 2;
    return (at - ray.origin[i]) / ray.direction[i];
  });
  const seen = hits.filter((t) => t >= first && t <= last);
  return seen.length > 0 ? Math.min(...seen) : null;
}

/** Returns the place to send for a pixel: a world point, or a fraction of the picture beside the data. */
export function pointerPlace(
  view: View,
  array: ArrayInfo | null,
  size: Size,
  at: ScreenPoint,
  near: Vec3 | null = null,
): PointerPlace | null {
  // A stereo picture has two places for each point.
  if (view.stereo !== null) return null;
  const world = array ? worldPoint(view, array, size, at, near) : null;
  if (world) return { world };
  const share = (length: number, of: number) => Math.min(1, Math.max(0, length / Math.max(1, of)));
  return { picture: [share(at.x, size.width), share(at.y, size.height)] };
}

/** Returns the pixel at which the receiver sees a pointer; null if it is outside of the picture. */
export function seenAt(place: PointerPlace, view: View, size: Size): ScreenPoint | null {
  if (view.stereo !== null) return null;
  const point =
    "world" in place
      ? view.camera && project(view.camera, size, place.world)
      : { x: place.picture[0] * size.width, y: place.picture[1] * size.height };
  const isInside =
    point !== null && point.x >= 0 && point.y >= 0 && point.x <= size.width && point.y <= size.height;
  return isInside ? point : null;
}
