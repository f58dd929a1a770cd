//! Whether pinned places and measurements belong to what the picture shows: the array, time and positions on other axes, and in an image
//! of a volume the slice. Pure.

import { freeAxes, spaceShape, type ArrayInfo } from "../../dataset/dataset.ts";
import { imageAxis, layoutOf } from "../../layout/choose.ts";
import { crosshairOf } from "../../layout/crosshair.ts";
import { axisName, voxelOf, type AxisNumber } from "../../layout/space.ts";
import { texts } from "../../texts/texts.ts";
import type { Vec3, View } from "../../view/schema.ts";
import type { PickedPlace } from "./place.ts";
import { axisText } from "./text.ts";

/** Index on an axis of a stored array. */
export interface AxisIndex {
  readonly name: string;
  readonly kind: string;
  readonly index: number;
}

/** Slice of a volume that an image shows. */
export interface ShownSlice {
  readonly axis: AxisNumber;
  /** Its index, also between voxels. */
  readonly at: number;
}

/** How a place lies in the picture. */
export interface Presence {
  /** False in an image of another slice, where the place is not drawn. */
  readonly isOnSlice: boolean;
  /** True if the place belongs to another array, time or position on another axis. */
  readonly isFaded: boolean;
  /** Sentence for people; empty if the place belongs to what is shown. */
  readonly note: string;
}

/** Distance from a slice up to which a place lies on it, voxels: half a voxel, and rounding. */
const HALF = 0.5 + 1e-6;

/** Returns the slice of an image; null for other arrangements and for arrays of a single layer. */
export function shownSlice(view: View, array: ArrayInfo): ShownSlice | null {
  if (layoutOf(view, array) !== "image") return null;
  const axis = imageAxis(view, array);
  if (spaceShape(array)[axis] < 2) return null;
  return { axis, at: crosshairOf(view.slices, array)[axis] };
}

export function isOnSlice({ axis, at }: ShownSlice, world: Vec3, array: ArrayInfo): boolean {
  const voxel = voxelOf(array, world);
  return voxel === null || Math.abs(voxel[axis] - at) <= HALF;
}

/** Returns the axes along which the view shows another position. */
export function otherAxes<T extends AxisIndex>(places: readonly T[], array: ArrayInfo, view: View): T[] {
  const free = freeAxes(array);
  return places.filter(({ name, kind, index }) => {
    const found = free.find(({ axis }) => (kind === "time" ? axis.kind === "time" : axis.name === name));
    return found !== undefined && indexShown(found.axis, view) !== index;
  });
}

/** Returns the positions that a view shows along the axes that are not drawn. */
export function positionsShown(array: ArrayInfo, view: View): AxisIndex[] {
  return freeAxes(array).map(({ axis }) => ({
    name: axis.name,
    kind: axis.kind,
    index: indexShown(axis, view),
  }));
}

function indexShown({ name, kind }: { readonly name: string; readonly kind: string }, view: View): number {
  return kind === "time" ? view.time : (view.at[name] ?? 0);
}

/** Returns how a pinned place lies in the picture of a view. */
export function presenceOf({ world, value }: PickedPlace, array: ArrayInfo, view: View): Presence {
  const slice = shownSlice(view, array);
  const onSlice = slice === null || world === null || isOnSlice(slice, world, array);
  const isOfOther = value !== null && value.array !== array.name;
  const others = value ? otherAxes(value.axes, array, view) : [];
  const sliceName = slice ? axisName(array, slice.axis) : "";
  const across = value?.axes.find(({ name }) => name === sliceName);
  const notes = [
    ...(onSlice ? [] : [texts.probe.onOtherSlice(across ? axisText(across) : sliceName)]),
    ...(isOfOther ? [texts.probe.ofOtherArray(value.array)] : []),
    ...(others.length > 0
      ? [texts.probe.atOtherPosition(others.map((axis) => axisText(axis)).join(", "))]
      : []),
  ];
  return { isOnSlice: onSlice, isFaded: isOfOther || others.length > 0, note: notes.join(" ") };
}
