//! The description of a data set, reduced to what the page uses. Parsing is strict about shapes, which size controls,
//! and lenient about the rest.

import { texts } from "../texts/texts.ts";
import { isArray, isCount, isObject, scalarOr, textOr, type Json, type JsonObject } from "../json.ts";
import { parseLegend, type ArrayLegend } from "./legend.ts";

export type AxisKind = "time" | "z" | "y" | "x" | "channel" | "other";

export type Coordinates =
  | { readonly kind: "index" }
  | { readonly kind: "regular"; readonly origin: number; readonly step: number }
  | { readonly kind: "explicit"; readonly values: readonly number[] };

export interface Axis {
  readonly name: string;
  readonly kind: AxisKind;
  readonly units: string;
  readonly coordinates: Coordinates;
}

/** Rows of `world = m[..][0..3] * [x, y, z] + m[..][3]`; input in voxels of the level. */
export type Affine = readonly (readonly number[])[];

export interface Level {
  /** Sizes in the array's axis order. */
  readonly shape: readonly number[];
  readonly origin: string;
  readonly worldFromVoxel: Affine;
}

/** Meaning of values that the user can select. */
export type SelectableMeaning = "intensity" | "labels";

export interface ArrayInfo {
  /** Its number in the description. */
  readonly number: number;
  readonly name: string;
  readonly dtype: string;
  readonly axes: readonly Axis[];
  readonly units: string;
  /** Colors are those of an image, packed: only arrays as the node draws them. */
  readonly meaning: SelectableMeaning | "text" | "colors";
  /** Long name in the file; empty if it has none. */
  readonly title: string;
  /** `standard` unless the file says otherwise. */
  readonly calendar: string;
  /** Names along the axis of channels; empty if the file does not name all. */
  readonly channels: readonly string[];
  readonly levels: readonly Level[];
  /** Levels in the file, if `levels` are those of a regular grid on which the array is drawn. */
  readonly fileLevels: readonly Level[];
  /** Axes in the file, if `axes` are those of a regular grid on which the array is drawn. */
  readonly fileAxes?: readonly Axis[];
  /** True for a field of an adaptive mesh, whose grids can be drawn. */
  readonly hasGrids: boolean;
  /** True if the file names arrays with the coordinates of its elements. */
  readonly hasCoordinates?: boolean;
  readonly worldUnits: string;
  readonly notes: readonly string[];
  /** Names and colors of labels and channels. */
  readonly legend: ArrayLegend;
  /** For an array with the lengths of vectors: the arrays of their components along x, y and z, or the one that has them. */
  readonly components?: readonly string[];
  /** Axis of the components in that one. */
  readonly componentAxis?: string | null;
}

/**
 * An array as the node draws it. Without a `dtype` its axes, levels, units of the world and notes replace those of the data's array
 * of that name, and its other fields mean nothing. With a `dtype` it is an array that the data do not have.
 */
export type DrawnArray = ArrayInfo;

export interface Dataset {
  readonly id: string;
  readonly generation: number;
  readonly name: string;
  readonly format: string;
  readonly arrays: readonly ArrayInfo[];
  readonly warnings: readonly string[];
}

/** Maximum number of arrays that the page lists; the others can be named in a link. */
const MAX_ARRAYS = 10_000;
const MAX_LEVELS = 64;
const MEANINGS: readonly ArrayInfo["meaning"][] = ["intensity", "labels", "text", "colors"];
const KINDS: readonly string[] = ["time", "z", "y", "x", "channel", "other"];

/** Throws an `Error` that names what is wrong. */
export function parseDataset(value: Json): Dataset {
  if (!isObject(value) || !isArray(value.arrays)) throw new Error("expected the description of a data set");
  return {
    id: textOr(value.id, ""),
    generation: isCount(value.generation) ? value.generation : 0,
    name: textOr(value.name, texts.values.unnamedDataset),
    format: textOr(value.format, ""),
    arrays: value.arrays.slice(0, MAX_ARRAYS).map(parseArray),
    warnings: stringsOf(value.warnings),
  };
}

/** Reads the arrays that are drawn on other axes. Throws an `Error` that names what is wrong. */
export function parseDrawn(value: Json): DrawnArray[] {
  if (!isArray(value)) throw new Error("expected a list of arrays as they are drawn");
  return value.slice(0, MAX_ARRAYS).map(parseArray);
}

/** Returns the data set with the arrays as drawn, whose axes views refer to. */
export function asDrawn(dataset: Dataset, drawn: readonly DrawnArray[]): Dataset {
  if (drawn.length === 0) return dataset;
  const byName = new Map(drawn.map((array) => [array.name, array]));
  const replaced = (array: ArrayInfo): ArrayInfo => {
    const own = byName.get(array.name);
    if (own?.axes.length !== array.axes.length) return array;
    const { axes, levels, worldUnits, notes } = own;
    return { ...array, axes, levels, worldUnits, notes, fileAxes: array.axes };
  };
  const isNew = (array: DrawnArray) =>
    array.dtype !== "" && !dataset.arrays.some(({ name }) => name === array.name);
  const added = drawn.filter(isNew).map((array, i) => ({ ...array, number: dataset.arrays.length + i }));
  return { ...dataset, arrays: [...dataset.arrays.map(replaced), ...added] };
}

/** True if values can be interpolated: those of labels and colors cannot. Same rule as in the node. */
export function isContinuous(array: ArrayInfo): boolean {
  return array.meaning === "intensity";
}

/** The array with this name; for the empty name the first volume, or the first plane if there is none. */
export function findArray(dataset: Dataset, name: string): ArrayInfo | null {
  const trim = (text: string) => text.replace(/^\/+|\/+$/g, "");
  if (trim(name) !== "") return dataset.arrays.find((array) => trim(array.name) === trim(name)) ?? null;
  const withSides = (sides: number) =>
    dataset.arrays.find((array) => isDrawable(array) && thickSides(array) === sides);
  return withSides(3) ?? withSides(2) ?? dataset.arrays.find(isDrawable) ?? dataset.arrays[0] ?? null;
}

/** True if the node can draw the array. */
export function isDrawable(array: ArrayInfo): boolean {
  return array.meaning !== "text" && thickSides(array) > 0;
}

/** Number of axes of the drawn volume with more than one voxel; 0 without elements. Same rule as in the node. */
function thickSides(array: ArrayInfo): number {
  if (array.levels[0]?.shape.includes(0)) return 0;
  return spaceShape(array).filter((size) => size > 1).length;
}

/** Voxels of level 0 along x, y, z; of an array without spatial axes, along the last three. */
export function spaceShape(array: ArrayInfo): readonly [number, number, number] {
  const shape = array.levels[0]?.shape ?? [];
  const hasSpace = array.axes.some((axis) => isSpatial(axis.kind));
  const size = (kind: AxisKind, back: number) => {
    const at = hasSpace ? array.axes.findIndex((axis) => axis.kind === kind) : shape.length - back;
    return shape[at] ?? 1;
  };
  return [size("x", 1), size("y", 2), size("z", 3)];
}

/** True for a single layer of voxels, which hides nothing. */
export function isOneLayer(array: ArrayInfo): boolean {
  return spaceShape(array).some((size) => size < 2);
}

/** Most layers of a volume that is drawn like a stack of maps, if its longest side is as many times longer. */
const FEW_LAYERS = 8;

/** True for a map or a few layers of one, of which nothing is hidden. Same rule as in the node. */
export function showsAllLayers(array: ArrayInfo): boolean {
  const sides = spaceShape(array);
  const layers = Math.min(...sides);
  return layers < 2 || (layers <= FEW_LAYERS && layers * FEW_LAYERS <= Math.max(...sides));
}

/** Whether the volume of an array is shaded in a view that does not say so. Same rule as in the node. */
export function isShadedByDefault(array: ArrayInfo): boolean {
  return isContinuous(array) && !showsAllLayers(array);
}

/** True for spatial axes, or the last three axes of an array without spatial ones. Same rule as in the node. */
export function isDrawn(array: ArrayInfo, axis: number): boolean {
  if (array.axes.some(({ kind }) => isSpatial(kind))) return isSpatial(array.axes[axis]?.kind ?? "other");
  return axis >= array.axes.length - 3 && axis < array.axes.length;
}

/** Number of time steps that can be chosen; 0 if there is no time axis, or the array is drawn along it. */
export function timeSteps(array: ArrayInfo): number {
  const axis = array.axes.findIndex(({ kind }) => kind === "time");
  return axis < 0 || isDrawn(array, axis) ? 0 : (array.levels[0]?.shape[axis] ?? 0);
}

/** Returns the axes along which a position is chosen, with their lengths. */
export function freeAxes(array: ArrayInfo): { axis: Axis; size: number }[] {
  const axes = array.axes.map((axis, i) => ({ axis, size: array.levels[0]?.shape[i] ?? 1, i }));
  return axes.flatMap(({ axis, size, i }) => (size > 1 && !isDrawn(array, i) ? [{ axis, size }] : []));
}

/**
 * True if an array can determine the colors of another one at all times and positions: its voxels have the same
 * positions, and it is at least as long along the axes that both have.
 */
export function canColor(array: ArrayInfo, shown: ArrayInfo): boolean {
  const place = (of: ArrayInfo) => JSON.stringify([spaceShape(of), of.levels[0]?.worldFromVoxel]);
  const size = (of: ArrayInfo, axis: number) => of.levels[0]?.shape[axis] ?? 1;
  const isLong = (axis: Axis, i: number) => {
    const same = (other: Axis) => (axis.kind === "time" ? other.kind === "time" : other.name === axis.name);
    return isSpatial(axis.kind) || size(array, i) >= size(shown, shown.axes.findIndex(same));
  };
  const isOther = array.number !== shown.number;
  return isOther && isDrawable(array) && place(array) === place(shown) && array.axes.every(isLong);
}

export function isSpatial(kind: AxisKind): boolean {
  return kind === "x" || kind === "y" || kind === "z";
}

function parseArray(value: Json, number: number): ArrayInfo {
  if (!isObject(value) || !isArray(value.axes) || !isArray(value.levels)) {
    throw new Error(`expected array ${number} to have axes and levels`);
  }
  const name = textOr(value.name, texts.values.unnamedArray(number));
  const axes = value.axes.map(parseAxis);
  const levels = value.levels.slice(0, MAX_LEVELS).map((level) => parseLevel(level, axes.length, name));
  if (levels.length === 0) throw new Error(`expected array \`${name}\` to have a level`);
  const attributes = isObject(value.attributes) ? value.attributes : {};
  return {
    number,
    name,
    dtype: textOr(value.dtype, ""),
    axes,
    units: textOr(value.units, ""),
    meaning: MEANINGS.find((meaning) => meaning === value.meaning) ?? "intensity",
    title: textOr(attributes.long_name, textOr(attributes.standard_name, "")),
    calendar: textOr(attributes.calendar, "standard"),
    channels: channelNames(attributes.channels, axes, levels[0]?.shape ?? []),
    levels,
    fileLevels: levels,
    worldUnits: textOr(value.world_units, ""),
    hasGrids: typeof attributes.grids === "string",
    hasCoordinates: attributes.coordinates !== undefined,
    notes: stringsOf(value.notes),
    legend: parseLegend(attributes),
    components: stringsOf(value.components),
    componentAxis: typeof value.component_axis === "string" ? value.component_axis : null,
  };
}

function channelNames(value: Json | undefined, axes: readonly Axis[], shape: readonly number[]): string[] {
  const names = stringsOf(value);
  return names.length === shape[axes.findIndex(({ kind }) => kind === "channel")] ? names : [];
}

function parseAxis(value: Json): Axis {
  const axis: JsonObject = isObject(value) ? value : {};
  const kind = textOr(axis.kind, "other");
  return {
    name: textOr(axis.name, "axis"),
    kind: KINDS.includes(kind) ? (kind as AxisKind) : "other",
    units: textOr(axis.units, ""),
    coordinates: parseCoordinates(axis.coordinates),
  };
}

function parseCoordinates(value: Json | undefined): Coordinates {
  if (isObject(value) && isObject(value.regular)) {
    const { origin, step } = value.regular;
    return { kind: "regular", origin: scalarOr(origin, 0), step: scalarOr(step, 1) };
  }
  if (isObject(value) && isArray(value.explicit)) {
    return { kind: "explicit", values: value.explicit.map((v) => scalarOr(v, Number.NaN)) };
  }
  return { kind: "index" };
}

function parseLevel(value: Json, axes: number, array: string): Level {
  const shape = isObject(value) && isArray(value.shape) ? value.shape.filter(isCount) : [];
  if (!isObject(value) || shape.length !== axes) {
    throw new Error(`expected every level of array \`${array}\` to have ${axes} axes`);
  }
  const rows = isArray(value.world_from_voxel) ? value.world_from_voxel : [];
  const matrix = rows.map((row) => (isArray(row) ? row.map((x) => scalarOr(x, 0)) : []));
  const isAffine = matrix.length === 3 && matrix.every((row) => row.length === 4);
  return { shape, origin: textOr(value.origin, "stored"), worldFromVoxel: isAffine ? matrix : IDENTITY };
}

const IDENTITY: Affine = [
  [1, 0, 0, 0],
  [0, 1, 0, 0],
  [0, 0, 1, 0],
];

function stringsOf(value: Json | undefined): string[] {
  return isArray(value) ? value.filter((text) => typeof text === "string") : [];
}
