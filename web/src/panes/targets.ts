//! Targets of the gestures that turn a three-dimensional picture.

import type { GestureTarget } from "../camera/gestures.ts";
import type { ArrayInfo } from "../dataset/dataset.ts";
import { worldBox } from "../dataset/world.ts";
import type { Camera } from "../view/schema.ts";

export function orbitTarget(
  camera: () => Camera | null,
  array: () => ArrayInfo | null,
  move: (camera: Camera) => void,
  rest: () => void,
): GestureTarget {
  const diagonal = () => {
    const shown = array();
    return (shown && worldBox(shown)?.diagonal) ?? 1;
  };
  return { camera, diagonal, move, rest };
}
