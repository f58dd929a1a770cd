//! The box of an array in the world, and what is written along its axes: coordinates, world positions or indices. Pure.

import { texts } from "../../texts/texts.ts";
import { parseTimeUnits, type TimeUnits } from "../../dataset/calendar.ts";
import { isSpatial, spaceShape, type ArrayInfo, type Axis } from "../../dataset/dataset.ts";
import { formatUnits } from "../../dataset/labels.ts";
import { cross, length, normalize, scale } from "../../camera/vec.ts";
import type { Vec3 } from "../../view/schema.ts";
import { dateTicks, degreeTicks, numberTicks, type Tick } from "./ticks.ts";

/** Texts along an axis. */
export type AxisQuantity = "latitude" | "longitude" | "time" | "index" | "number";

/** An axis of voxels, with the coordinates along it. */
export interface AxisScale {
  readonly name: string;
  /** Units for display; empty for degrees, dates and indices. */
  readonly units: string;
  readonly quantity: AxisQuantity;
  readonly time: TimeUnits | null;
  /** Voxels along it. */
  readonly count: number;
  /** World vector from one voxel to the next. */
  readonly step: Vec3;
  /** World axis that it is parallel to; null if it is oblique. */
  readonly world: 0 | 1 | 2 | null;
  /** Coordinates of samples at ascending indices, at least two if there is more than one voxel. */
  readonly samples: readonly (readonly [index: number, coordinate: number])[];
  /** True if lengths along it are those of the world. */
  readonly isToScale: boolean;
}

export interface Volume {
  /** Center of voxel 0, 0, 0. */
  readonly origin: Vec3;
  /** Axes x, y, z. */
  readonly axes: readonly [AxisScale, AxisScale, AxisScale];
  readonly worldUnits: string;
  readonly isAnatomical: boolean;
  /** True for a map: x and y are longitude and latitude in degrees, to scale. */
  readonly isMap: boolean;
}

/** Share of a length within which directions and steps count as equal. */
const ALIKE = 1e-6;
const KINDS = ["x", "y", "z"] as const;

export function volumeOf(array: ArrayInfo, calendar: string): Volume | null {
  const map = array.levels[0]?.worldFromVoxel;
  if (!map) return null;
  const hasSpace = array.axes.some((axis) => isSpatial(axis.kind));
  const shape = spaceShape(array);
  // The node draws an array without spatial axes in voxels.
  const entry = (row: number, c: number) => (hasSpace ? (map[row]?.[c] ?? 0) : row === c ? 1 : 0);
  const column = (c: number): Vec3 => [entry(0, c), entry(1, c), entry(2, c)];
  const axisOf = (place: number): Axis | null => {
    const kind = KINDS[place];
    const found = hasSpace
      ? array.axes.find((axis) => axis.kind === kind)
      : array.axes[array.axes.length - 1 - place];
    return found ?? null;
  };
  const hasCoordinates = [0, 1, 2].some((place) => axisOf(place)?.coordinates.kind === "regular");
  const steps = thickened([column(0), column(1), column(2)], shape);
  const stepOf = (place: 0 | 1 | 2) => steps[place];
  const scaleAt = (place: 0 | 1 | 2) =>
    scaleOf(
      axisOf(place),
      place,
      shape[place],
      { step: stepOf(place), origin: column(3) },
      array,
      calendar,
      hasCoordinates,
    );
  const axes = [scaleAt(0), scaleAt(1), scaleAt(2)] as const;
  const isMap =
    axes[0].quantity === "longitude" &&
    axes[1].quantity === "latitude" &&
    axes[0].isToScale &&
    axes[1].isToScale;
  return {
    origin: column(3),
    axes,
    worldUnits: array.worldUnits.trim() === "1" ? "" : array.worldUnits,
    isAnatomical: array.legend.isAnatomical,
    isMap,
  };
}

/** Steps of voxels; a single layer is as thick as the smallest of the other steps. Same rule as in the node. */
function thickened(
  steps: readonly [Vec3, Vec3, Vec3],
  shape: readonly [number, number, number],
): readonly [Vec3, Vec3, Vec3] {
  const thick = [0, 1, 2].filter((axis) => (shape[axis] ?? 1) > 1);
  const least = Math.min(...thick.map((axis) => length(steps[axis as 0 | 1 | 2])));
  if (!Number.isFinite(least) || !(least > 0)) return steps;
  const along = (axis: 0 | 1 | 2): Vec3 => {
    if (shape[axis] > 1) return steps[axis];
    const [b, c] = [steps[((axis + 1) % 3) as 0 | 1 | 2], steps[((axis + 2) % 3) as 0 | 1 | 2]];
    return scale(normalize(steps[axis], normalize(cross(b, c))), least);
  };
  return [along(0), along(1), along(2)];
}

interface Line {
  readonly step: Vec3;
  readonly origin: Vec3;
}

function scaleOf(
  axis: Axis | null,
  place: 0 | 1 | 2,
  count: number,
  line: Line,
  array: ArrayInfo,
  calendarName: string,
  hasCoordinates: boolean,
): AxisScale {
  const { step, origin } = line;
  const long = length(step);
  const world = ([0, 1, 2] as const).find((i) => Math.abs(Math.abs(step[i]) - long) <= ALIKE * long) ?? null;
  const name = axis !== null && axis.name !== "" ? axis.name : KINDS[place];
  const base = { name, count, step, world, time: null };
  const last = Math.max(1, count - 1);
  const byIndex: AxisScale = {
    ...base,
    units: "",
    quantity: "index",
    samples: [
      [0, 0],
      [last, last],
    ],
    isToScale: !hasCoordinates,
  };
  const ends = (from: number, to: number) =>
    [
      [0, from],
      [last, to],
    ] as const;
  const byWorld = (units: string): AxisScale => ({
    ...base,
    units: formatUnits(units),
    quantity: "number",
    // Along an oblique axis, the distance from its first voxel.
    samples: world === null ? ends(0, last * long) : ends(origin[world], origin[world] + last * step[world]),
    isToScale: true,
  });
  const coordinates = axis?.coordinates ?? { kind: "index" as const };
  if (!axis || coordinates.kind === "index") {
    const isPlain = long === 1 && origin.every((at) => at === 0);
    return array.worldUnits === "" || isPlain || hasCoordinates ? byIndex : byWorld(array.worldUnits);
  }
  const units = axis.units.trim() === "1" ? "" : axis.units;
  const quantity = quantityOf(axis, units);
  const time = quantity === "time" ? parseTimeUnits(units, calendarName) : null;
  const shown = { ...base, units: quantity === "number" ? formatUnits(units) : "", quantity, time };
  if (coordinates.kind === "explicit") {
    const { values } = coordinates;
    const isSorted =
      values.length === count &&
      values.every((v, i) => i === 0 || v > (values[i - 1] ?? v)) !==
        values.every((v, i) => i === 0 || v < (values[i - 1] ?? v));
    if (!isSorted || !values.every(Number.isFinite)) return { ...byIndex, isToScale: false };
    return { ...shown, samples: values.map((v, i) => [i, v] as const), isToScale: false };
  }
  const own = Math.abs(coordinates.step);
  const isSameLength = Math.abs(long - own) <= ALIKE * 1e3 * own;
  // A file gives the step of a volume that lies elsewhere in the world: the world has the positions.
  if (coordinates.origin === 0 && isSameLength && quantity === "number") {
    const isHere = world !== null && origin[world] === 0 && step[world] > 0;
    // Rows and depths that are drawn downward keep their own numbers.
    const isDownward = !array.legend.isAnatomical && world !== null && step[world] * coordinates.step < 0;
    if (!isHere && !isDownward) return byWorld(array.worldUnits === "" ? units : array.worldUnits);
  }
  return {
    ...shown,
    samples: ends(coordinates.origin, coordinates.origin + last * coordinates.step),
    isToScale: isSameLength && baseUnit(units) === baseUnit(array.worldUnits),
  };
}

function quantityOf(axis: Axis, units: string): AxisQuantity {
  const lower = units.toLowerCase().replaceAll(/[_ ]/g, "");
  if (/^degrees?(north|n)$/.test(lower)) return "latitude";
  if (/^degrees?(east|e)$/.test(lower)) return "longitude";
  const isDegrees = /^degrees?$/.test(lower);
  if (isDegrees && /^(lat|latitude)$/i.test(axis.name)) return "latitude";
  if (isDegrees && /^(lon|longitude)$/i.test(axis.name)) return "longitude";
  return / since /i.test(units) ? "time" : "number";
}

function baseUnit(units: string): string {
  return /^degrees?(_| )?(north|east|n|e)?$/i.test(units) ? "degrees" : units;
}

/** World position of voxel indices, which may be fractions. */
export function worldPoint({ origin, axes }: Volume, index: readonly [number, number, number]): Vec3 {
  const at = (row: 0 | 1 | 2) =>
    origin[row] + axes[0].step[row] * index[0] + axes[1].step[row] * index[1] + axes[2].step[row] * index[2];
  return [at(0), at(1), at(2)];
}

/** Corner of the box: bit 0 of `number` is x, bit 1 y, bit 2 z; `part` limits it to shares of the box. */
export function cornerIndex(
  volume: Volume,
  number: number,
  part: readonly [low: Vec3, high: Vec3] | null,
): [number, number, number] {
  const at = (axis: 0 | 1 | 2): number => {
    const isHigh = ((number >> axis) & 1) === 1;
    const share = isHigh ? (part?.[1][axis] ?? 1) : (part?.[0][axis] ?? 0);
    return share * volume.axes[axis].count - 0.5;
  };
  return [at(0), at(1), at(2)];
}

/** Coordinate at a fractional index, extrapolated by half a voxel at the ends. */
export function coordinateOf({ samples }: AxisScale, index: number): number {
  const after = samples.findIndex(([at]) => at >= index);
  const i = after < 0 ? samples.length - 1 : Math.max(1, after);
  const [low, high] = [samples[i - 1], samples[i]];
  if (!low || !high) return samples[0]?.[1] ?? Number.NaN;
  return low[1] + ((index - low[0]) / (high[0] - low[0])) * (high[1] - low[1]);
}

/** Fractional index of a coordinate, the inverse of `coordinateOf`. */
export function indexOf({ samples }: AxisScale, coordinate: number): number {
  const isRising = (samples.at(-1)?.[1] ?? 0) > (samples[0]?.[1] ?? 0);
  const after = samples.findIndex(([, at]) => (isRising ? at >= coordinate : at <= coordinate));
  const i = after < 0 ? samples.length - 1 : Math.max(1, after);
  const [low, high] = [samples[i - 1], samples[i]];
  if (!low || !high) return samples[0]?.[0] ?? 0;
  return low[0] + ((coordinate - low[1]) / (high[1] - low[1])) * (high[0] - low[0]);
}

/** Ticks between two fractional indices of an axis, at most about `count`. */
export function axisTicks(scale: AxisScale, from: number, to: number, count: number): Tick[] {
  if (scale.count < 2) return [];
  const [a, b] = [coordinateOf(scale, from), coordinateOf(scale, to)];
  switch (scale.quantity) {
    case "latitude":
      return degreeTicks(Math.max(-90, Math.min(a, b)), Math.min(90, Math.max(a, b)), count, "latitude");
    case "longitude":
      return degreeTicks(a, b, count, "longitude");
    case "time": {
      const dates = scale.time ? dateTicks(a, b, count, scale.time) : [];
      return dates.length > 0 ? dates : numberTicks(a, b, count);
    }
    case "index":
      return numberTicks(Math.max(a, 0), Math.min(b, scale.count - 1), count, true);
    case "number":
      return numberTicks(a, b, count);
  }
}

/** Title of an axis: its name and units. */
export function axisTitle(scale: AxisScale): string {
  if (scale.quantity === "latitude" || scale.quantity === "longitude") return "";
  if (scale.quantity === "index") return texts.values.indexAxis(scale.name);
  if (scale.quantity === "time" && scale.time) return scale.name;
  return scale.units === "" ? scale.name : `${scale.name} (${scale.units})`;
}
