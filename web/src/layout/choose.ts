//! Choice of the arrangement of the pictures from the shape of an array. Pure.

import { isOneLayer, type ArrayInfo } from "../dataset/dataset.ts";
import type { Layout, View } from "../view/schema.ts";
import { facesPlane } from "./plane-camera.ts";
import { flatAxis, thickAxes, type AxisNumber } from "./space.ts";

/** Arrangement that is shown; `plot` for the values along a line. */
export type ShownLayout = Layout | "plot";

/**
 * Returns the arrangement: that of the view if the array can be shown so. By default single layers are images, unless the camera
 * looks at them from aside, and lines are plots.
 */
export function layoutOf(view: Pick<View, "layout" | "camera">, array: ArrayInfo | null): ShownLayout {
  if (!array) return "space";
  if (view.layout !== null && isPossible(view.layout, array)) return view.layout;
  if (thickAxes(array) === 1) return "plot";
  const axis = flatAxis(array);
  if (axis === null || !isOneLayer(array)) return "space";
  return view.camera === null || facesPlane(view.camera, array, axis) ? "image" : "space";
}

/** True if an array can be shown in an arrangement: three planes need a volume, an image two axes. */
export function isPossible(layout: ShownLayout, array: ArrayInfo): boolean {
  const thick = thickAxes(array);
  if (layout === "planes") return thick === 3;
  if (layout === "plot") return thick === 1;
  return layout === "space" || thick >= 2;
}

/** Returns the axis across which an image lies: that of the only layer, that of the first visible slice, or `otherwise`. */
export function imageAxis(
  view: Pick<View, "slices">,
  array: ArrayInfo,
  otherwise: AxisNumber = 2,
): AxisNumber {
  const flat = flatAxis(array);
  if (flat !== null) return flat;
  const names = ["x", "y", "z"] as const;
  const slice = view.slices.find((one) => one.normal === undefined && one.hidden !== true);
  return slice ? (names.indexOf(slice.axis) as AxisNumber) : otherwise;
}
