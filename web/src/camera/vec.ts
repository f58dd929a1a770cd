//! Three-component vectors, immutable.

import type { Vec3 } from "../view/schema.ts";

export const add = (a: Vec3, b: Vec3): Vec3 => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a: Vec3, b: Vec3): Vec3 => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a: Vec3, by: number): Vec3 => [a[0] * by, a[1] * by, a[2] * by];
export const dot = (a: Vec3, b: Vec3): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const length = (a: Vec3): number => Math.hypot(a[0], a[1], a[2]);

export function cross(a: Vec3, b: Vec3): Vec3 {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

/** Vector of length one in the direction of `a`; `otherwise` if `a` is zero. */
export function normalize(a: Vec3, otherwise: Vec3 = [0, 0, 1]): Vec3 {
  const size = length(a);
  return size > 0 && Number.isFinite(size) ? scale(a, 1 / size) : otherwise;
}

/** `a` turned about the unit vector `axis` (Rodrigues), counter-clockwise seen against the axis. */
export function rotate(a: Vec3, axis: Vec3, angleRad: number): Vec3 {
  const cos = Math.cos(angleRad);
  const along = scale(axis, dot(axis, a) * (1 - cos));
  return add(add(scale(a, cos), scale(cross(axis, a), Math.sin(angleRad))), along);
}
