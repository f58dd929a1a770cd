//! Positions along axes as people type them: a number, with or without the units of the axis, or a date of its calendar; and the index
//! that a coordinate has. Pure.

import { texts } from "../texts/texts.ts";
import { dateText, parseTimeUnits, valueOfDate, type CalendarDate } from "./calendar.ts";
import type { Axis, Coordinates } from "./dataset.ts";
import {
  coordinateAt,
  coordinateWithUnits,
  formatUnits,
  positionLabel,
  shortUnits,
  timeSign,
} from "./labels.ts";

/** A place on an axis, or the sentence that says what is wrong with what was typed. */
export type Typed<T> = { readonly place: T } | { readonly problem: string };

/** Longest text that is read: a date with a time of day has fewer than 40 characters. */
const MAX_TEXT = 80;

const DATE =
  /^(-?\d{1,5})-(\d{1,2})(?:-(\d{1,2}))?(?:[T\s]+(\d{1,2})(?::(\d{2})(?::(\d{2}(?:\.\d*)?))?)?)?\s*(?:Z|UTC)?$/i;
const NUMBER = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(.*)$/i;

/** Reads a date as people write it: a year with a month, and a day and a time of day where they matter. */
export function parseDate(text: string): { readonly date: CalendarDate; readonly ofDay: number } | null {
  const match = DATE.exec(text.trim());
  if (!match) return null;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part: string | undefined, i) => Number(part ?? (i < 3 ? 1 : 0)));
  if (hour > 24 || minute > 59 || second >= 60) return null;
  return { date: [year, month, day], ofDay: hour * 3600 + minute * 60 + second };
}

/** Reads a coordinate of an axis: a date where it has dates, otherwise a number, with its units or without. */
export function parseCoordinate(text: string, axis: Axis, calendar: string): Typed<number> {
  const typed = text.trim().slice(0, MAX_TEXT).replace("−", "-");
  if (typed === "") return { problem: texts.typed.empty };
  const time = parseTimeUnits(axis.units, calendar);
  const date = parseDate(typed);
  if (date) {
    if (!time) return { problem: texts.typed.noDates(axis.name, formatUnits(axis.units)) };
    const value = valueOfDate(time, date.date, date.ofDay);
    return value === null
      ? { problem: texts.typed.noSuchDay(time.calendar, dateText(date.date)) }
      : { place: value };
  }
  const match = NUMBER.exec(typed);
  const value = Number(match?.[1]);
  if (!match || !Number.isFinite(value))
    return { problem: time ? texts.typed.notADate : texts.typed.notANumber(formatUnits(axis.units)) };
  const unit = match[2]?.trim() ?? "";
  // A year alone is the first day of it; a plain number in these units would be hours or days since some date.
  if (time && unit === "" && /^-?\d{4}$/.test(typed)) {
    const first = valueOfDate(time, [value, 1, 1]);
    if (first !== null) return { place: first };
  }
  if (unit !== "" && !isUnitOf(unit, axis.units))
    return { problem: texts.typed.otherUnits(axis.name, formatUnits(axis.units), unit) };
  return { place: value };
}

/** Spellings of units that mean the same. */
const SAME: Readonly<Record<string, string>> = {
  "°": "degrees",
  deg: "degrees",
  degree: "degrees",
  degrees_north: "degrees",
  degrees_east: "degrees",
  degree_north: "degrees",
  degree_east: "degrees",
  "°n": "degrees",
  "°e": "degrees",
  µm: "um",
  μm: "um",
  micrometer: "um",
  micron: "um",
  millimeter: "mm",
  meter: "m",
  meters: "m",
  metre: "m",
  metres: "m",
  kilometer: "km",
  nanometer: "nm",
};

function isUnitOf(typed: string, units: string): boolean {
  const plain = (text: string) => {
    const lower = text.trim().toLowerCase();
    return SAME[lower] ?? lower;
  };
  // Of times, the unit without the date from which they are counted.
  const isTimeUnit = / since /i.test(units) && timeSign(typed) === shortUnits(units);
  return isTimeUnit || plain(typed) === plain(units) || typed === formatUnits(units);
}

/**
 * Index, between whole numbers too, at which the coordinates have a value; beyond the ends it is extrapolated by the last step; NaN
 * where coordinates do not ascend or descend.
 */
export function indexOfCoordinate(coordinates: Coordinates, size: number, value: number): number {
  if (coordinates.kind === "index") return value;
  if (coordinates.kind === "regular")
    return coordinates.step === 0 ? Number.NaN : (value - coordinates.origin) / coordinates.step;
  const { values } = coordinates;
  const last = Math.min(size, values.length) - 1;
  const at = (i: number) => values[i] ?? Number.NaN;
  if (last < 1) return 0;
  const sign = directionOf(values);
  if (sign === 0) return Number.NaN;
  let [low, high] = [0, last];
  // The interval of the value; the first or last one for values beyond them.
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if ((value - at(middle)) * sign >= 0) low = middle;
    else high = middle;
  }
  const step = at(high) - at(low);
  return step === 0 ? low : low + (value - at(low)) / step;
}

/** Directions of coordinates that were looked at: an axis has many. */
const directions = new WeakMap<readonly number[], number>();

/** 1 for coordinates that ascend, -1 for those that descend, 0 for others, such as longitudes across the date line. */
function directionOf(values: readonly number[]): number {
  const known = directions.get(values);
  if (known !== undefined) return known;
  const sign = Math.sign((values.at(-1) ?? Number.NaN) - (values[0] ?? Number.NaN));
  const isOrdered = values.every((value, i) => i === 0 || (value - (values[i - 1] ?? value)) * sign >= 0);
  const direction = isOrdered ? sign : 0;
  directions.set(values, direction);
  return direction;
}

/** Returns the sample nearest to what was typed; a place beyond the ends by more than half a step is a problem. */
export function nearestIndex(text: string, axis: Axis, size: number, calendar: string): Typed<number> {
  const typed = parseCoordinate(text, axis, calendar);
  if ("problem" in typed) return typed;
  const index = indexOfCoordinate(axis.coordinates, size, typed.place);
  if (!Number.isFinite(index)) return { problem: texts.typed.notInOrder(axis.name) };
  const nearest = Math.round(index);
  if (nearest >= 0 && nearest < size) return { place: nearest };
  const end = positionLabel(axis, nearest < 0 ? 0 : size - 1, calendar);
  return { problem: nearest < 0 ? texts.typed.beyondFirst(end) : texts.typed.beyondLast(end) };
}

/** Coordinate at a position between samples too; NaN without coordinates. */
export function coordinateBetween(axis: Axis, at: number): number {
  if (axis.coordinates.kind !== "explicit") return coordinateAt(axis, at);
  const low = Math.floor(at);
  const from = coordinateAt(axis, low);
  return at === low ? from : from + (coordinateAt(axis, low + 1) - from) * (at - low);
}

/** Text of a coordinate with its units, as it can be typed again. */
export function coordinateText(axis: Axis, at: number, calendar: string): string {
  const value = coordinateBetween(axis, at);
  if (axis.coordinates.kind === "index" || !Number.isFinite(value)) return "";
  if (parseTimeUnits(axis.units, calendar)) return positionLabel(axis, Math.round(at), calendar);
  return coordinateWithUnits(axis, value, at);
}
