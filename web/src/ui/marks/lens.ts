//! Positions of world points in the picture. Pure.

import { basis, type Size } from "../../camera/camera.ts";
import { dot, sub } from "../../camera/vec.ts";
import type { Camera, Vec3 } from "../../view/schema.ts";
import type { Point } from "./shapes.ts";

/** Share of the distance to the target; points nearer to the eye than this are not in the picture. */
const NEAR_SHARE = 1e-3;

export interface Lens {
  readonly camera: Camera;
  readonly forward: Vec3;
  readonly right: Vec3;
  readonly up: Vec3;
  readonly isParallel: boolean;
  /** World units per pixel at the target. */
  readonly worldPerPixel: number;
  /** Position of a point; null behind the eye. */
  readonly place: (point: Vec3) => Point | null;
}

/** The lens of a camera for a picture of this size. */
export function lensOf(camera: Camera, size: Size): Lens {
  const { forward, right, up } = basis(camera);
  const { projection } = camera;
  const isParallel = "orthographic" in projection;
  const distance = dot(sub(camera.target, camera.eye), forward);
  const heightWorld = isParallel
    ? projection.orthographic.height_world
    : 2 * distance * Math.tan(projection.perspective.fov_y_rad / 2);
  const worldPerPixel = heightWorld / Math.max(1, size.height);
  const place = (point: Vec3): Point | null => {
    const to = sub(point, camera.eye);
    const depth = dot(to, forward);
    if (!isParallel && depth <= NEAR_SHARE * distance) return null;
    const perPixel = isParallel ? worldPerPixel : (worldPerPixel * depth) / distance;
    const [x, y] = [size.width / 2 + dot(to, right) / perPixel, size.height / 2 - dot(to, up) / perPixel];
    return Number.isFinite(x) && Number.isFinite(y) ? { x, y } : null;
  };
  return { camera, forward, right, up, isParallel, worldPerPixel, place };
}
