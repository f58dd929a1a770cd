//! Motion that a controller asks for, and its effect on the camera. Pure.

import type { Camera } from "../../view/schema.ts";
import { pan, turn, zoom, type Size } from "../camera.ts";

/** Speeds from -1 to 1: of the picture to the right and down, nearer, and of the volume about the axes of the screen. */
export interface Motion {
  readonly panX: number;
  readonly panY: number;
  readonly nearer: number;
  readonly yaw: number;
  readonly pitch: number;
}

export const STILL: Motion = { panX: 0, panY: 0, nearer: 0, yaw: 0, pitch: 0 };

/** Fastest turn, radians per second. */
const TURN_RAD_PER_SEC = 2;
/** Fastest move of the picture, heights of the picture per second. */
const PAN_HEIGHTS_PER_SEC = 0.9;
/** Fastest zoom: the scale changes by this power of e per second. */
const ZOOM_PER_SEC = 1.4;
/** Longest time between two steps that counts: after a pause the camera must not jump. */
const MAX_STEP_SECS = 0.1;

export function isStill(motion: Motion): boolean {
  return Object.values(motion).every((speed) => speed === 0);
}

/** Returns the sum of two motions, within the limits. */
export function sum(a: Motion, b: Motion): Motion {
  const add = (x: number, y: number) => Math.min(1, Math.max(-1, x + y));
  return {
    panX: add(a.panX, b.panX),
    panY: add(a.panY, b.panY),
    nearer: add(a.nearer, b.nearer),
    yaw: add(a.yaw, b.yaw),
    pitch: add(a.pitch, b.pitch),
  };
}

/** Returns the speed of a stick or cap: none near its middle, and finer for small deflections. */
export function speedOf(deflection: number, deadZone: number): number {
  const size = Math.min(1, Math.abs(deflection));
  if (!(size > deadZone)) return 0;
  const share = (size - deadZone) / (1 - deadZone);
  return Math.sign(deflection) * share * share;
}

/** Returns the camera after a motion of `secs`; `isFlat`: it looks at an image head on, which moves instead of turning. */
export function moved(
  camera: Camera,
  motion: Motion,
  secs: number,
  { size, diagonal, isFlat }: { readonly size: Size; readonly diagonal: number; readonly isFlat: boolean },
): Camera {
  const step = Math.min(secs, MAX_STEP_SECS);
  const pixels = PAN_HEIGHTS_PER_SEC * size.height * step;
  const flat = isFlat ? { x: motion.yaw, y: motion.pitch } : { x: 0, y: 0 };
  const [x, y] = [motion.panX + flat.x, motion.panY + flat.y];
  const angle = TURN_RAD_PER_SEC * step;
  const turned = isFlat ? camera : turn(camera, -motion.yaw * angle, -motion.pitch * angle);
  const panned = x === 0 && y === 0 ? turned : pan(turned, x * pixels, y * pixels, size);
  return motion.nearer === 0
    ? panned
    : zoom(panned, Math.exp(-motion.nearer * ZOOM_PER_SEC * step), diagonal, size);
}
