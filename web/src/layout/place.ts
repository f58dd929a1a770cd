//! Places across an axis of the volume as people read and type them: by index, and by coordinate of the file or of the world. Pure.

import { texts } from "../texts/texts.ts";
import type { Axis, ArrayInfo, Dataset } from "../dataset/dataset.ts";
import { calendarOf } from "../dataset/labels.ts";
import {
  coordinateBetween,
  coordinateText,
  indexOfCoordinate,
  parseCoordinate,
  type Typed,
} from "../dataset/position.ts";
import { worldBox } from "../dataset/world.ts";
import type { Vec3 } from "../view/schema.ts";
import {
  axisIndex,
  axisName,
  column,
  lastVoxel,
  mapOf,
  worldAxis,
  worldOf,
  type AxisNumber,
} from "./space.ts";

/** Coordinates along an axis of the volume, by voxel of level 0 as it is drawn. */
export interface PlaceAxis {
  readonly axis: Axis;
  readonly calendar: string;
}

/**
 * Returns the coordinates along an axis: those of the file, of patients and of arrays without any those of the world; null if there
 * are only indices.
 */
export function placeAxis(dataset: Dataset, array: ArrayInfo, axis: AxisNumber): PlaceAxis | null {
  const own = array.axes[axisIndex(array, axis)];
  if (own && own.coordinates.kind !== "index" && !array.legend.isAnatomical)
    return { axis: own, calendar: calendarOf(dataset, array, own) };
  if (array.worldUnits === "") return null;
  const along = worldAxis(array, axis);
  const middle = lastVoxel(array).map((last) => last / 2) as unknown as Vec3;
  const first = worldOf(array, replaced(middle, axis, 0))[along];
  const step = column(mapOf(array), axis)[along];
  if (step === 0) return null;
  const coordinates = { kind: "regular", origin: first, step } as const;
  return {
    axis: { name: axisName(array, axis), kind: "other", units: array.worldUnits, coordinates },
    calendar: "standard",
  };
}

export function placeText(place: PlaceAxis | null, at: number): string {
  return place ? coordinateText(place.axis, at, place.calendar) : "";
}

/** Returns the voxel at what was typed, between voxels too; places outside of the volume are a problem. */
export function typedVoxel(text: string, place: PlaceAxis, size: number): Typed<number> {
  const typed = parseCoordinate(text, place.axis, place.calendar);
  if ("problem" in typed) return typed;
  const at = indexOfCoordinate(place.axis.coordinates, size, typed.place);
  if (!Number.isFinite(at)) return { problem: texts.typed.notInOrder(place.axis.name) };
  if (at >= -0.5 && at <= size - 0.5) return { place: Math.min(Math.max(at, 0), size - 1) };
  return { problem: texts.typed.outside(placeText(place, 0), placeText(place, size - 1)) };
}

/**
 * Returns the index in the file of a voxel, and the number of indices: of uneven axes, which are drawn on an even grid, the one with
 * the nearest coordinate.
 */
export function fileIndex(
  array: ArrayInfo,
  axis: AxisNumber,
  at: number,
): { readonly index: number; readonly size: number } {
  const number = axisIndex(array, axis);
  const drawn = array.axes[number];
  const own = array.fileAxes?.[number];
  const size = array.levels[0]?.shape[number] ?? 1;
  if (!drawn || !own || own.coordinates.kind !== "explicit") return { index: at, size };
  const fileSize = array.fileLevels[0]?.shape[number] ?? size;
  const index = indexOfCoordinate(own.coordinates, fileSize, coordinateBetween(drawn, at));
  const isKnown = Number.isFinite(index);
  return isKnown
    ? { index: Math.min(Math.max(Math.round(index), 0), fileSize - 1), size: fileSize }
    : { index: at, size };
}

/** Text of a voxel's index in the file and the last one there is, counted from 0. */
export function indexText(array: ArrayInfo, axis: AxisNumber, at: number): string {
  const { index, size } = fileIndex(array, axis, at);
  return `${Number(index.toFixed(2))} / ${size - 1}`;
}

/** Returns the voxel, as drawn, of an index in the file. */
export function voxelOfFileIndex(array: ArrayInfo, axis: AxisNumber, index: number): number {
  const number = axisIndex(array, axis);
  const drawn = array.axes[number];
  const own = array.fileAxes?.[number];
  if (!drawn || own?.coordinates.kind !== "explicit") return index;
  const size = array.levels[0]?.shape[number] ?? 1;
  const at = indexOfCoordinate(drawn.coordinates, size, coordinateBetween(own, index));
  return Number.isFinite(at) ? Math.min(Math.max(at, 0), size - 1) : index;
}

/** Share of a matrix's largest entry below which another one is rounding. */
const ROUNDING = 1e-6;

/** Axis of the volume that lies along an axis of the world, and whether it runs against it; null if none does. */
export function volumeAxisOf(
  array: ArrayInfo,
  world: AxisNumber,
): { readonly axis: AxisNumber; readonly isReversed: boolean } | null {
  const map = mapOf(array);
  for (const axis of [0, 1, 2] as const) {
    const step = column(map, axis);
    const largest = Math.max(...step.map(Math.abs));
    const isAlone = step.every((entry, row) => row === world || Math.abs(entry) <= ROUNDING * largest);
    if (isAlone && Math.abs(step[world]) === largest && largest > 0)
      return { axis, isReversed: step[world] < 0 };
  }
  return null;
}

/** Lowest and highest corner of the box around the volume, world units: fractions of the clip box are of this one. */
export function worldBounds(array: ArrayInfo): readonly [Vec3, Vec3] {
  const box = worldBox(array);
  if (!box)
    return [
      [0, 0, 0],
      [1, 1, 1],
    ];
  const corner = (sign: number) => (a: AxisNumber) => box.center[a] + (sign * box.extent[a]) / 2;
  const [low, high] = [corner(-1), corner(1)];
  return [
    [low(0), low(1), low(2)],
    [high(0), high(1), high(2)],
  ];
}

/** Coordinates along an axis of the world, by share of the box around the volume. */
export interface ClipAxis {
  readonly text: (share: number) => string;
  readonly parse: (text: string) => Typed<number>;
}

/** Returns how ends of the clip box along an axis of the world are read and typed. */
export function clipAxis(dataset: Dataset, array: ArrayInfo, world: AxisNumber): ClipAxis {
  const along = volumeAxisOf(array, world);
  const [low, high] = worldBounds(array);
  if (!along) {
    const coordinates = { kind: "regular", origin: low[world], step: high[world] - low[world] } as const;
    const name = "xyz"[world] ?? "";
    const place = {
      axis: { name, kind: "other", units: array.worldUnits, coordinates },
      calendar: "standard",
    } as const;
    return {
      text: (share) => placeText(place, share),
      parse: (text) => bounded(parsedIndex(text, place, 2)),
    };
  }
  const { axis, isReversed } = along;
  const size = lastVoxel(array)[axis] + 1;
  const place = placeAxis(dataset, array, axis);
  const turned = (share: number) => (isReversed ? 1 - share : share);
  const voxel = (share: number) => turned(share) * size - 0.5;
  const shareOf = (typed: Typed<number>): Typed<number> =>
    "place" in typed ? { place: turned((typed.place + 0.5) / size) } : typed;
  return {
    text: (share) => {
      const text = place && place.axis.coordinates.kind === "regular" ? placeText(place, voxel(share)) : "";
      return text === "" ? String(Number(voxel(share).toFixed(1))) : text;
    },
    parse: (text) => {
      if (place && place.axis.coordinates.kind === "regular")
        return bounded(shareOf(parsedIndex(text, place, size)));
      const index = Number(text);
      const isNumber = text.trim() !== "" && Number.isFinite(index);
      return isNumber ? bounded(shareOf({ place: index })) : { problem: texts.typed.notAnIndex };
    },
  };
}

function parsedIndex(text: string, place: PlaceAxis, size: number): Typed<number> {
  const typed = parseCoordinate(text, place.axis, place.calendar);
  return "place" in typed ? { place: indexOfCoordinate(place.axis.coordinates, size, typed.place) } : typed;
}

/** Limits a share to the box. */
function bounded(typed: Typed<number>): Typed<number> {
  return "place" in typed ? { place: Math.min(Math.max(typed.place, 0), 1) } : typed;
}

function replaced(v: Vec3, axis: AxisNumber, value: number): Vec3 {
  const next: [number, number, number] = [...v];
  next[axis] = value;
  return next;
}
