//! Changes of the view that belong to an arrangement of the pictures: camera, slices and mode. Pure.

import { toggleProjection, type Size } from "../camera/camera.ts";
import { isContinuous, type ArrayInfo, type Dataset } from "../dataset/dataset.ts";
import {
  SPACE_AXES,
  type Camera,
  type Layout,
  type Mode,
  type Slice,
  type View,
  type ViewPatch,
} from "../view/schema.ts";
import { imageAxis, layoutOf } from "./choose.ts";
import { crosshairOf, withCrosshair, without, withShown } from "./crosshair.ts";
import { facesPlane, fitPlane, pixelsPerVoxel, SQUARES_FROM_PIXELS } from "./plane-camera.ts";
import { flatAxis, type AxisNumber } from "./space.ts";

/** Fields of the three-dimensional picture before another arrangement replaced it. */
export interface SpaceMemory {
  readonly camera: Camera | null;
  readonly mode: Mode;
  readonly slices: readonly Slice[];
}

export const NO_MEMORY: SpaceMemory = { camera: null, mode: "composite", slices: [] };

/** Returns what to remember of a three-dimensional picture. */
export function remembered(view: View): SpaceMemory {
  return { camera: view.camera, mode: view.mode, slices: view.slices };
}

/** Returns the change that shows an array in an arrangement; `axis` is that of an image. */
export function arranged(
  layout: Layout,
  dataset: Dataset,
  array: ArrayInfo,
  view: View,
  memory: SpaceMemory,
  size: Size,
  axis: AxisNumber = imageAxis(view, array),
): ViewPatch {
  switch (layout) {
    case "space":
      return { layout, camera: memory.camera, mode: memory.mode, slices: memory.slices, stereo: view.stereo };
    case "image":
      return {
        layout,
        stereo: null,
        camera: fitPlane(dataset, array, axis, size),
        ...imageSlices(view, array, axis),
      };
    case "planes": {
      const slices = withShown(withCrosshair(view.slices, crosshairOf(view.slices, array), array), true);
      const isAlone = view.mode === "surfaces" && view.surfaces.length === 0;
      const mode = isAlone ? memory.mode : view.mode;
      const isHeadOn = view.layout === "image" || memory.camera !== null;
      return {
        layout,
        mode,
        slices: slices.map(interpolated),
        ...(isHeadOn ? { camera: memory.camera } : {}),
      };
    }
  }
}

function interpolated(slice: Slice): Slice {
  return without(slice, "nearest");
}

/** Slices and mode of an image: of a volume one plane and nothing else, of a single layer what the view has. */
function imageSlices(view: View, array: ArrayInfo, axis: AxisNumber): ViewPatch {
  if (flatAxis(array) !== null) return {};
  const at = crosshairOf(view.slices, array)[axis];
  // The other planes of a crosshair are remembered.
  const others = view.slices.filter((slice) => slice.normal === undefined && slice.axis !== SPACE_AXES[axis]);
  return { slices: [{ axis: SPACE_AXES[axis], at }, ...withShown(others, false)], mode: "surfaces" };
}

/**
 * Returns the change that a view needs after it was joined, or after another array or arrangement was chosen elsewhere, such as in a
 * link; null if it needs none. `isAutomatic`: nobody has moved the camera, so an image is fitted.
 */
export function completed(
  dataset: Dataset,
  array: ArrayInfo,
  view: View,
  size: Size,
  isAutomatic = false,
): ViewPatch | null {
  const layout = layoutOf(view, array);
  if (layout === "planes") {
    const slices = withCrosshair(view.slices, crosshairOf(view.slices, array), array);
    return slices.length > view.slices.length ? { slices } : null;
  }
  if (layout !== "image") return null;
  const axis = imageAxis(view, array);
  const isPlane = flatAxis(array) !== null || view.slices.some((slice) => slice.hidden !== true);
  const slices = isPlane ? {} : imageSlices(view, array, axis);
  const { camera } = view;
  if (!camera || isAutomatic || !facesPlane(camera, array, axis))
    return { ...slices, stereo: null, camera: fitPlane(dataset, array, axis, size) };
  if ("perspective" in camera.projection)
    return { ...slices, stereo: null, camera: toggleProjection(camera) };
  return isPlane ? null : slices;
}

/**
 * Returns the change after which an image shows its voxels as squares where they are large on the screen, and interpolated where they
 * are small; null if it does already. Labels and colors are never interpolated.
 */
export function squared(array: ArrayInfo, view: View, size: Size): ViewPatch | null {
  if (layoutOf(view, array) !== "image" || !view.camera || !isContinuous(array)) return null;
  const axis = imageAxis(view, array);
  const isLarge = pixelsPerVoxel(view.camera, array, axis, size) >= SQUARES_FROM_PIXELS;
  const flat = flatAxis(array);
  if (flat === null) return withSquares(view.slices, axis, isLarge);
  const own = view.slices[0];
  const isOwn = view.mode === "surfaces" && view.slices.length === 1 && own?.nearest === true;
  if (isLarge && view.mode === "composite" && view.slices.length === 0 && isOpaque(view))
    return { mode: "surfaces", slices: [{ axis: SPACE_AXES[flat], at: 0, nearest: true }] };
  return !isLarge && isOwn ? { mode: "composite", slices: [] } : null;
}

function withSquares(slices: readonly Slice[], axis: AxisNumber, isLarge: boolean): ViewPatch | null {
  const name = SPACE_AXES[axis];
  const isWrong = (slice: Slice) =>
    slice.axis === name && slice.normal === undefined && (slice.nearest === true) !== isLarge;
  if (!slices.some(isWrong)) return null;
  const right = (slice: Slice): Slice => (isLarge ? { ...slice, nearest: true } : interpolated(slice));
  return { slices: slices.map((slice) => (isWrong(slice) ? right(slice) : slice)) };
}

/** True if nothing shines through: a slice, which is always opaque, then looks the same. */
function isOpaque({ transfer, surfaces }: View): boolean {
  return surfaces.length === 0 && transfer !== null && transfer.opacity.every(([, alpha]) => alpha >= 1);
}
