//! Place of a picture on the screen while the camera has moved on: with parallel rays a pan and a zoom shift and scale what was drawn, so
//! that the picture follows the hand at once, and the node's next picture only sharpens it and fills its edges. Pure.

import { basis, heightAtTarget } from "../camera/camera.ts";
import { dot, length, sub } from "../camera/vec.ts";
import type { Camera, Vec3 } from "../view/schema.ts";

/** Place of a picture: scaled about the center of the screen, then shifted right and down, in shares of the screen's height. */
export interface Placement {
  readonly scale: number;
  readonly right: number;
  readonly down: number;
}

export const IN_PLACE: Placement = { scale: 1, right: 0, down: 0 };

/** Largest sine of the angle between directions that count as equal. */
const SAME_DIRECTION = 1e-6;
/** Scales beyond which a picture shows nothing useful. */
const MOST_SCALED = 64;

/** Difference of a scale from 1, and shift, that are too small to be seen: drawing the picture again would only blur it. */
const UNSEEN = 1e-4;

const isSame = (a: Vec3, b: Vec3) => length(sub(a, b)) <= SAME_DIRECTION;

/** Returns where a picture by one camera stands for another one; null if it does not, because rays are not parallel or directions differ. */
export function placementOf(drawn: Camera, now: Camera): Placement | null {
  if (!("orthographic" in drawn.projection && "orthographic" in now.projection)) return null;
  const [from, to] = [basis(drawn), basis(now)];
  if (!isSame(from.forward, to.forward) || !isSame(from.up, to.up)) return null;
  const height = heightAtTarget(now);
  const scale = heightAtTarget(drawn) / height;
  if (!(scale >= 1 / MOST_SCALED && scale <= MOST_SCALED)) return null;
  const shift = sub(drawn.target, now.target);
  const [right, down] = [dot(shift, to.right) / height, -dot(shift, to.up) / height];
  const isUnseen = [scale - 1, right, down].every((value) => Math.abs(value) < UNSEEN);
  return isUnseen ? IN_PLACE : { scale, right, down };
}
