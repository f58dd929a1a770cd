//! Scales and shapes of a plot of lines: the range along the axis that is shown, which zooms and pans, paths of values with gaps, and
//! the column under the pointer. Pure.

import type { ArrayInfo, Axis } from "../../dataset/dataset.ts";
import { coordinateBetween, indexOfCoordinate } from "../../dataset/position.ts";
import { AXIS_NUMBERS, axisIndex } from "../../layout/space.ts";
import { spaceShape } from "../../dataset/dataset.ts";
import { indexOf, type PlotColumns } from "./columns.ts";

/** Part of the axis that is shown, in coordinates (or indices), ascending. */
export type Window = readonly [from: number, to: number];

/** The long axis of a line. */
export interface LineAxis {
  readonly axis: Axis;
  readonly size: number;
  /** True if coordinates rise or fall all along; otherwise indices are shown. */
  readonly hasCoordinates: boolean;
}

/** Returns the only long axis of an array, as it is in the file; null if the array is no line. */
export function lineAxis(array: ArrayInfo): LineAxis | null {
  const shape = spaceShape(array);
  const long = AXIS_NUMBERS.filter((axis) => shape[axis] > 1);
  const [only] = long;
  if (only === undefined || long.length > 1) return null;
  const number = axisIndex(array, only);
  const axis = (array.fileAxes ?? array.axes)[number];
  const size = array.fileLevels[0]?.shape[number] ?? 0;
  return axis && size > 1 ? { axis, size, hasCoordinates: isMonotonic(axis, size) } : null;
}

function isMonotonic({ coordinates }: Axis, size: number): boolean {
  if (coordinates.kind === "index") return false;
  if (coordinates.kind === "regular") return coordinates.step !== 0 && Number.isFinite(coordinates.step);
  const { values } = coordinates;
  if (values.length < size) return false;
  const sign = Math.sign((values[size - 1] ?? 0) - (values[0] ?? 0));
  return sign !== 0 && values.every((value, i) => i === 0 || (value - (values[i - 1] ?? value)) * sign > 0);
}

/** Place of an index on the scale: its coordinate, or itself. */
export function placeOf({ axis, hasCoordinates }: LineAxis, index: number): number {
  return hasCoordinates ? coordinateBetween(axis, index) : index;
}

/** Index, between whole numbers too, at a place on the scale. */
export function indexAt({ axis, size, hasCoordinates }: LineAxis, place: number): number {
  return hasCoordinates ? indexOfCoordinate(axis.coordinates, size, place) : place;
}

export function wholeWindow(line: LineAxis): Window {
  const ends = [placeOf(line, 0), placeOf(line, line.size - 1)];
  return [Math.min(...ends), Math.max(...ends)];
}

/** Returns the first index and the number of indices of a window, with one more at each end so that lines reach the borders. */
export function indicesIn(
  line: LineAxis,
  [from, to]: Window,
): { readonly from: number; readonly count: number } {
  const ends = [indexAt(line, from), indexAt(line, to)];
  const first = Math.min(Math.max(Math.floor(Math.min(...ends)) - 1, 0), line.size - 1);
  const last = Math.min(Math.max(Math.ceil(Math.max(...ends)) + 1, first), line.size - 1);
  return { from: first, count: last - first + 1 };
}

/** Fewest indices that a window shows. */
const FEWEST = 4;

/** Returns a window scaled by `factor` about a share of it, within the whole. */
export function zoomed(line: LineAxis, window: Window, factor: number, share: number): Window {
  const whole = wholeWindow(line);
  const width = window[1] - window[0];
  const least = (whole[1] - whole[0]) * Math.min(1, FEWEST / (line.size - 1));
  const next = Math.min(Math.max(width * factor, least), whole[1] - whole[0]);
  const fixed = window[0] + share * width;
  return within(whole, [fixed - share * next, fixed + (1 - share) * next]);
}

/** Returns a window moved by a share of its width, within the whole. */
export function panned(line: LineAxis, [from, to]: Window, share: number): Window {
  const by = share * (to - from);
  return within(wholeWindow(line), [from + by, to + by]);
}

function within(whole: Window, [from, to]: Window): Window {
  const width = Math.min(to - from, whole[1] - whole[0]);
  const start = Math.min(Math.max(from, whole[0]), whole[1] - width);
  return [start, start + width];
}

/** Least and largest value of lines inside of a window; null without any value. */
export function valueRange(line: LineAxis, window: Window, lines: readonly PlotColumns[]): Window | null {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const columns of lines)
    columns.low.forEach((value, column) => {
      const place = placeOf(line, indexOf(columns, column));
      const largest = columns.high[column] ?? null;
      const end = placeOf(line, Math.min(indexOf(columns, column) + columns.perColumn, line.size) - 1);
      if (value === null || largest === null) return;
      if (Math.max(place, end) < window[0] || Math.min(place, end) > window[1]) return;
      [low, high] = [Math.min(low, value), Math.max(high, largest)];
    });
  if (low > high) return null;
  // Equal values lie in the middle.
  const margin = high > low ? 0.04 * (high - low) : Math.max(Math.abs(high) * 0.05, 0.5);
  return [low - margin, high + margin];
}

export interface PlotBox {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Position across of a place on the scale. */
export function across(box: PlotBox, [from, to]: Window, place: number): number {
  return box.left + ((place - from) / Math.max(to - from, Number.MIN_VALUE)) * (box.right - box.left);
}

/** Position down of a value. */
export function down(box: PlotBox, [low, high]: Window, value: number): number {
  return box.bottom - ((value - low) / Math.max(high - low, Number.MIN_VALUE)) * (box.bottom - box.top);
}

/**
 * Returns the path of a line: through its values, or, where a column stands for several indices, up and down between their
 * extremes. Missing values are gaps.
 */
export function pathOf(
  line: LineAxis,
  columns: PlotColumns,
  box: PlotBox,
  window: Window,
  values: Window,
): string {
  let isDrawing = false;
  const parts: string[] = [];
  columns.low.forEach((low, column) => {
    const high = columns.high[column] ?? null;
    if (low === null || high === null) {
      isDrawing = false;
      return;
    }
    const middle = indexOf(columns, column) + (columns.perColumn - 1) / 2;
    const x = across(box, window, placeOf(line, Math.min(middle, line.size - 1))).toFixed(2);
    const [upper, lower] = [down(box, values, high).toFixed(2), down(box, values, low).toFixed(2)];
    const isAlone = !isDrawing && (columns.low[column + 1] ?? null) === null;
    parts.push(
      `${isDrawing ? "L" : "M"}${x} ${lower}${upper === lower ? "" : `V${upper}`}${isAlone ? "h0.01" : ""}`,
    );
    isDrawing = true;
  });
  return parts.join("");
}

/** Returns the column nearest to a place on the scale; null beside the columns. */
export function columnAt(line: LineAxis, columns: PlotColumns, place: number): number | null {
  const at = (indexAt(line, place) - indexOf(columns, 0)) / columns.perColumn;
  const column = columns.perColumn === 1 ? Math.round(at) : Math.floor(at);
  return column >= 0 && column < columns.low.length ? column : null;
}
