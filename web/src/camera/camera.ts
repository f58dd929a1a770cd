//! Moving a camera: orbit, pan, zoom, fit, axis views. Pure functions from camera to camera.
//! Screen positions are in pixels with y down; everything else is in world units.

import type { Camera, Projection, Vec3 } from "../view/schema.ts";
import type { WorldBox } from "../dataset/world.ts";
import { add, cross, dot, length, normalize, rotate, scale, sub } from "./vec.ts";

/** Angle of a full drag across the smaller side of the picture. */
const DRAG_ANGLE_RAD = Math.PI;
/** Default full vertical angle of view; the node's own. */
export const DEFAULT_FOV_Y_RAD = Math.PI / 6;
/** Margin around a fitted volume; as the node, with room for marks. */
const FIT_MARGIN = 1.1;
/** Nearest and farthest distance from the target, in diagonals of the volume. */
const NEAREST = 0.005;
const FARTHEST = 50;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Directions of the camera: viewing direction, right and up; orthonormal. */
export interface Basis {
  readonly forward: Vec3;
  readonly right: Vec3;
  readonly up: Vec3;
}

export function basis(camera: Camera): Basis {
  const forward = normalize(sub(camera.target, camera.eye), [0, 1, 0]);
  const spare: Vec3 = Math.abs(forward[2]) < 0.9 ? [0, 0, 1] : [0, 1, 0];
  const across = cross(forward, camera.up);
  const right = normalize(
    length(across) > 1e-9 * length(camera.up) ? across : cross(forward, spare),
    [1, 0, 0],
  );
  return { forward, right, up: cross(right, forward) };
}

export function distance(camera: Camera): number {
  return length(sub(camera.eye, camera.target));
}

/** Returns the height of the view at the target, world units. */
export function heightAtTarget(camera: Camera): number {
  const { projection } = camera;
  if ("orthographic" in projection) return projection.orthographic.height_world;
  return 2 * distance(camera) * Math.tan(projection.perspective.fov_y_rad / 2);
}

/** Rotates about the target by a drag of `dx`, `dy` pixels: the volume follows the pointer. */
export function orbit(camera: Camera, dx: number, dy: number, size: Size): Camera {
  const perPixel = DRAG_ANGLE_RAD / Math.max(1, Math.min(size.width, size.height));
  return turn(camera, -dx * perPixel, -dy * perPixel);
}

/** Rotates about the target: `yawRad` about the camera's up, `pitchRad` about its right. No poles, no limits. */
export function turn(camera: Camera, yawRad: number, pitchRad: number): Camera {
  const { right, up } = basis(camera);
  const rotateBoth = (v: Vec3) => rotate(rotate(v, right, pitchRad), up, yawRad);
  return {
    ...camera,
    eye: add(camera.target, rotateBoth(sub(camera.eye, camera.target))),
    up: normalize(rotateBoth(up)),
  };
}

/** Moves sideways by a drag of `dx`, `dy` pixels: the target stays under the pointer. */
export function pan(camera: Camera, dx: number, dy: number, size: Size): Camera {
  const { right, up } = basis(camera);
  const perPixel = heightAtTarget(camera) / Math.max(1, size.height);
  const shift = add(scale(right, -dx * perPixel), scale(up, dy * perPixel));
  return { ...camera, eye: add(camera.eye, shift), target: add(camera.target, shift) };
}

/**
 * Scales what is seen by `factor` (below 1: nearer), keeping the point at `x`, `y` pixels from the picture's
 * center where it is. `diagonal` is that of the volume and bounds how near and far one can go.
 */
export function zoom(camera: Camera, factor: number, diagonal: number, size: Size, x = 0, y = 0): Camera {
  const bounded = boundedFactor(camera, factor, diagonal);
  const held = pan(camera, x * (bounded - 1), y * (bounded - 1), size);
  const eye = add(held.target, scale(sub(held.eye, held.target), bounded));
  if (!("orthographic" in held.projection)) return { ...held, eye };
  const height = held.projection.orthographic.height_world * bounded;
  return { ...held, eye, projection: { orthographic: { height_world: height } } };
}

function boundedFactor(camera: Camera, factor: number, diagonal: number): number {
  const now = heightAtTarget(camera);
  const next = Math.min(Math.max(now * factor, NEAREST * diagonal), FARTHEST * diagonal);
  return next / now;
}

/** Switches between orthographic and perspective projection; the size at the target stays the same. */
export function toggleProjection(camera: Camera): Camera {
  const height = heightAtTarget(camera);
  if ("perspective" in camera.projection)
    return { ...camera, projection: { orthographic: { height_world: height } } };
  const { forward } = basis(camera);
  const away = height / (2 * Math.tan(DEFAULT_FOV_Y_RAD / 2));
  const projection: Projection = { perspective: { fov_y_rad: DEFAULT_FOV_Y_RAD } };
  return { ...camera, eye: sub(camera.target, scale(forward, away)), projection };
}

/** Signs of the corners of a box around its center. */
const CORNERS = [-1, 1].flatMap((x) => [-1, 1].flatMap((y) => [-1, 1].map((z) => [x, y, z])));

/** Returns the nearest camera that sees all of `box` along `forward`, with the projection of `like` if given. */
export function fit(
  box: Pick<WorldBox, "center" | "extent">,
  forward: Vec3,
  up: Vec3,
  size: Size,
  like: Camera | null = null,
): Camera {
  const aspect = size.width / Math.max(1, size.height);
  const isOrthographic = like !== null && "orthographic" in like.projection;
  const fov =
    like && "perspective" in like.projection ? like.projection.perspective.fov_y_rad : DEFAULT_FOV_Y_RAD;
  const tangent = Math.tan(fov / 2);
  const toward = normalize(forward);
  const right = normalize(cross(toward, up), [1, 0, 0]);
  const above = cross(right, toward);
  let [half, away] = [0, 0];
  for (const sign of CORNERS) {
    const corner = sign.map((s, axis) => (s * (box.extent[axis] ?? 0)) / 2) as unknown as Vec3;
    const aside = FIT_MARGIN * Math.max(Math.abs(dot(corner, above)), Math.abs(dot(corner, right)) / aspect);
    half = Math.max(half, aside);
    away = Math.max(away, aside / tangent - dot(corner, toward));
  }
  if (away <= 0) [half, away] = [1, 1 / tangent];
  return {
    eye: sub(box.center, scale(normalize(forward), away)),
    target: box.center,
    up,
    projection: isOrthographic
      ? { orthographic: { height_world: 2 * half } }
      : { perspective: { fov_y_rad: fov } },
  };
}

/** Direction of sight and up of the six views along the axes, from +x, −x, +y, −y, +z and −z, in the order of keys 1 to 6. */
export const AXIS_VIEWS: readonly { readonly forward: Vec3; readonly up: Vec3 }[] = [
  { forward: [-1, 0, 0], up: [0, 0, 1] },
  { forward: [1, 0, 0], up: [0, 0, 1] },
  { forward: [0, -1, 0], up: [0, 0, 1] },
  { forward: [0, 1, 0], up: [0, 0, 1] },
  { forward: [0, 0, -1], up: [0, 1, 0] },
  { forward: [0, 0, 1], up: [0, 1, 0] },
];

/** Direction and up of the node's first view of a volume: from the front, slightly right and above. */
export const HOME: { readonly forward: Vec3; readonly up: Vec3 } = {
  forward: [-0.45, 0.8, -0.4],
  up: [0, 0, 1],
};
