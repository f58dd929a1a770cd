//! Views of the further pictures of a page, made from that of the first picture. Pure.

import { spaceShape, type ArrayInfo, type Dataset } from "../dataset/dataset.ts";
import { findArray, timeSteps, freeAxes } from "../dataset/dataset.ts";
import type { ShownLayout } from "../layout/choose.ts";
import { crosshairOf } from "../layout/crosshair.ts";
import { AXIS_NUMBERS, mapOf, type AxisNumber } from "../layout/space.ts";
import {
  SPACE_AXES,
  type Camera,
  type Cell,
  type Grid,
  type Layer,
  type View,
  type ViewPatch,
} from "../view/schema.ts";

/** A further picture: a plane across an axis, or a cell of a grid after the first. */
export type PaneSpec =
  { readonly kind: "plane"; readonly axis: AxisNumber } | { readonly kind: "cell"; readonly index: number };

export function paneKey(spec: PaneSpec): string {
  return spec.kind === "plane" ? `plane-${SPACE_AXES[spec.axis]}` : `cell-${spec.index}`;
}

/** Returns the further pictures of a view, in the order in which they stand on the page. */
export function panesOf(view: Pick<View, "grid">, layout: ShownLayout): readonly PaneSpec[] {
  if (layout === "planes") return [2, 1, 0].map((axis) => ({ kind: "plane", axis: axis as AxisNumber }));
  const { grid } = view;
  if (!grid) return [];
  return Array.from({ length: grid.rows * grid.columns - 1 }, (_, i) => ({ kind: "cell", index: i + 1 }));
}

/** Fields that all pictures of a page have in common, whichever array they show. */
function common(view: View): ViewPatch {
  const { array, time, at, level, shading, lighting, occlusion, depth_cue, background } = view;
  return { array, time, at, level, shading, lighting, occlusion, depth_cue, background, stereo: null };
}

/** Returns the view of a plane: its slice alone, seen by its own camera. */
export function planeView(
  view: View,
  array: ArrayInfo,
  axis: AxisNumber,
  camera: Camera,
  isLarge: boolean,
): ViewPatch {
  const at = crosshairOf(view.slices, array)[axis];
  const slice = { axis: SPACE_AXES[axis], at, ...(isLarge ? { nearest: true } : {}) };
  const alone: ViewPatch = { slices: [slice], surfaces: [], mode: "surfaces", clip: null, grids: false };
  const { transfer, color_by, layers } = view;
  return { ...common(view), transfer, color_by, layers, ...alone, camera };
}

/** Returns the differences of a cell, by its number from 1. */
export function cellOf(grid: Grid | null, index: number): Cell {
  return grid?.cells?.[index - 1] ?? {};
}

/** Returns the grid with the differences of a cell replaced. */
export function withCell(grid: Grid, index: number, cell: Cell): Grid {
  const cells = Array.from({ length: Math.max(grid.cells?.length ?? 0, index) }, (_, i) =>
    cellOf(grid, i + 1),
  );
  return { ...grid, cells: cells.with(index - 1, cell) };
}

/**
 * Returns the view of a cell of a grid. `camera`: its own one; null with tied cameras. A cell of another array has its own colors, and
 * nothing that only makes sense in another space.
 */
export function cellView(view: View, dataset: Dataset, cell: Cell, camera: Camera | null): ViewPatch {
  const main = findArray(dataset, view.array);
  const array = (cell.array === undefined ? main : findArray(dataset, cell.array)) ?? main;
  const isSame = array?.name === main?.name;
  const isAlike = isSame || (array !== null && main !== null && isSameSpace(array, main));
  const positions = array ? positionsIn(array, view, cell) : { time: view.time, at: view.at };
  const { mode, clip, slices, surfaces, grids, layers } = view;
  return {
    ...common(view),
    ...positions,
    ...(array ? { array: array.name } : {}),
    ...(isSame
      ? { transfer: view.transfer, color_by: view.color_by, surfaces, grids }
      : { surfaces: [], color_by: null }),
    ...(isSame || mode === "composite" || mode === "surfaces" ? { mode } : {}),
    ...(isAlike
      ? { clip, slices, layers, camera: camera ?? view.camera }
      : { clip: null, slices: [], layers: [], mode: "composite", camera }),
  };
}

/** Time and indices that exist in an array: those of the cell, else those of the view. */
function positionsIn(array: ArrayInfo, view: View, cell: Cell): Pick<View, "time" | "at"> {
  const steps = timeSteps(array);
  const time = Math.min(cell.time ?? view.time, Math.max(0, steps - 1));
  const at: Record<string, number> = {};
  for (const { axis, size } of freeAxes(array)) {
    if (axis.kind === "time") continue;
    const index = cell.at?.[axis.name] ?? view.at[axis.name];
    if (index !== undefined) at[axis.name] = Math.min(index, size - 1);
  }
  return { time, at };
}

export function isSameSpace(a: ArrayInfo, b: ArrayInfo): boolean {
  const place = (array: ArrayInfo) => JSON.stringify([spaceShape(array), mapOf(array)]);
  return place(a) === place(b);
}

/**
 * Returns the differences with which a grid is opened: successive time steps, or indices of the first other axis, or the other arrays
 * of the same space.
 */
export function firstCells(dataset: Dataset, array: ArrayInfo, view: View, count: number): readonly Cell[] {
  const numbers = Array.from({ length: Math.max(0, count) }, (_, i) => i + 1);
  const steps = timeSteps(array);
  if (steps > 1) return numbers.map((i) => ({ time: (view.time + i) % steps }));
  const free = freeAxes(array).find(({ axis }) => axis.kind !== "time");
  if (free) {
    const first = view.at[free.axis.name] ?? 0;
    return numbers.map((i) => ({ at: { [free.axis.name]: (first + i) % free.size } }));
  }
  const others = dataset.arrays.filter(
    (other) => other.name !== array.name && isSameSpace(other, array) && other.meaning !== "text",
  );
  return numbers.map((i) => {
    const other = others[i - 1];
    return other ? { array: other.name } : {};
  });
}

/** Returns the grid with another number of rows or columns; new cells get the next differences. */
export function resizedGrid(
  grid: Grid | null,
  rows: number,
  columns: number,
  dataset: Dataset,
  array: ArrayInfo,
  view: View,
): Grid | null {
  const count = rows * columns - 1;
  if (count <= 0) return null;
  const fresh = firstCells(dataset, array, view, count);
  const known = grid?.cells ?? [];
  return {
    ...grid,
    rows,
    columns,
    tied: grid?.tied ?? true,
    cells: fresh.map((cell, i) => known[i] ?? cell),
  };
}

/** Returns the fields of `wanted` that differ from those of a view. */
export function difference(wanted: ViewPatch, shown: View): ViewPatch {
  const differs = ([name, value]: [string, unknown]) =>
    name === "layers"
      ? !areLayersShown(wanted.layers ?? [], shown.layers)
      : JSON.stringify(value) !== JSON.stringify(shown[name as keyof View]);
  return Object.fromEntries(Object.entries(wanted).filter(differs));
}

/** True if layers are shown as wanted: those without colors have what the node chose for them, for each picture by itself. */
function areLayersShown(wanted: readonly Layer[], shown: readonly Layer[]): boolean {
  const isShown = (layer: Layer, own: Layer | undefined) =>
    own !== undefined &&
    members(layer) === members(own) &&
    (!layer.transfer || JSON.stringify(layer.transfer) === JSON.stringify(own.transfer));
  return wanted.length === shown.length && wanted.every((layer, i) => isShown(layer, shown[i]));
}

/** The members of a layer besides its colors, in the same order whoever wrote them. */
function members(layer: Layer): string {
  const given = Object.entries(layer).filter(([name, value]) => name !== "transfer" && value !== null);
  return JSON.stringify(given.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** True if all axes of the volume have several voxels. */
export function isVolume(array: ArrayInfo): boolean {
  return AXIS_NUMBERS.every((axis) => spaceShape(array)[axis] > 1);
}
