//! Positions in the picture of points of world space: for the crosses of pinned places and the lines of measurements.

import { basis, distance, type Size } from "../../camera/camera.ts";
import { dot, sub } from "../../camera/vec.ts";
import type { Camera, Vec3 } from "../../view/schema.ts";
import type { Position } from "./rest.ts";
import { between } from "./shapes.ts";

/** Nearest depth in front of the eye, as a share of the distance to the point. */
const NEAREST = 1e-9;

/**
 * Positions of a point in a picture of `size`, in its pixels from the upper left corner: one, or one in each half of a
 * stereo pair with this parallax. Empty behind the eye and beside the picture.
 */
export function positionsOf(point: Vec3, camera: Camera, size: Size, parallax: number | null): Position[] {
  if (parallax === null) return visible(project(point, camera, size, 0), size);
  const half = { width: Math.floor(size.width / 2), height: size.height };
  const apart = (distance(camera) * parallax) / 2;
  return [-apart, apart].flatMap((aside, eye) =>
    visible(project(point, camera, half, aside), half).map(({ x, y }) => ({ x: x + eye * half.width, y })),
  );
}

/** Steps in which the visible part of a line is found that begins or ends behind the eye. */
const STEPS = 64;

/** Ends of a line in a picture, also beside it; of one that is partly behind the eye those of the rest. Null if all of it is. */
export function lineOf(
  [from, to]: readonly [Vec3, Vec3],
  camera: Camera,
  size: Size,
): readonly [Position, Position] | null {
  const [a, b] = [project(from, camera, size, 0), project(to, camera, size, 0)];
  if (a && b) return [a, b];
  if (!a && !b) return null;
  const seen = Array.from({ length: STEPS + 1 }, (_, i) => {
    return project(between(from, to, i / STEPS), camera, size, 0);
  }).filter((position) => position !== null);
  const [first, last] = [seen[0], seen.at(-1)];
  return first && last ? [first, last] : null;
}

function visible(position: Position | null, size: Size): Position[] {
  if (!position) return [];
  const { x, y } = position;
  return x >= 0 && y >= 0 && x <= size.width && y <= size.height ? [position] : [];
}

/** Projects as the node does; `aside` is the offset of an eye to the right. */
function project(point: Vec3, camera: Camera, size: Size, aside: number): Position | null {
  const { forward, right, up } = basis(camera);
  const to = sub(point, camera.eye);
  const depth = dot(to, forward);
  const [across, upward] = [dot(to, right) - aside, dot(to, up)];
  const { projection } = camera;
  if ("orthographic" in projection) {
    const scale = size.height / projection.orthographic.height_world;
    return { x: size.width / 2 + across * scale, y: size.height / 2 - upward * scale };
  }
  if (depth <= NEAREST * Math.hypot(...to)) return null;
  const scale = size.height / 2 / Math.tan(projection.perspective.fov_y_rad / 2);
  const shift = aside / distance(camera);
  return {
    x: size.width / 2 + (across / depth + shift) * scale,
    y: size.height / 2 - (upward / depth) * scale,
  };
}
