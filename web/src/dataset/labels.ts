//! Labels of controls: positions along axes, dates (CF conventions), shapes, numbers.

import { texts } from "../texts/texts.ts";
import { dateOfValue, dateText, isAgreed, momentOf, parseTimeUnits } from "./calendar.ts";
import type { ArrayInfo, Axis, Dataset } from "./dataset.ts";

/** Nanoseconds of the parts to which times are rounded. */
const GRAINS: readonly number[] = [1, 1e3, 1e6, 1e9, 60e9];

/** Coordinate of sample `index`; NaN if the file has none. */
export function coordinateAt(axis: Axis, index: number): number {
  const { coordinates } = axis;
  if (coordinates.kind === "regular") return coordinates.origin + index * coordinates.step;
  return coordinates.kind === "explicit" ? (coordinates.values[index] ?? Number.NaN) : index;
}

/**
 * Position of sample `index`, for display: one of the names of `channels`, a date for CF times, else a number with its units;
 * empty if unknown.
 */
export function positionLabel(
  axis: Axis,
  index: number,
  calendar = "standard",
  channels: readonly string[] = [],
): string {
  const channel = axis.kind === "channel" ? (channels[index] ?? "") : "";
  if (channel !== "") return `${axis.name} ${channel}`;
  if (axis.coordinates.kind === "index") return "";
  const value = coordinateAt(axis, index);
  if (!Number.isFinite(value)) return "";
  const date = cfDate(value, axis.units, leastStep(axis), calendar);
  if (date !== null) return date;
  return coordinateWithUnits(axis, value, index);
}

/**
 * Whole text of the position of sample `index`: as `positionLabel`, but times that are no dates have the date from which they are
 * counted, such as `366 hours since 0000-01-01`.
 */
export function positionTitle(
  axis: Axis,
  index: number,
  calendar = "standard",
  channels: readonly string[] = [],
): string {
  const label = positionLabel(axis, index, calendar, channels);
  const short = shortUnits(axis.units);
  const isShort = short !== formatUnits(axis.units) && label.endsWith(` ${short}`);
  return isShort ? label.slice(0, -short.length) + formatUnits(axis.units) : label;
}

/** A coordinate at a position along an axis, and its units in their short form. */
export function coordinateWithUnits(axis: Axis, value: number, at: number): string {
  const text = formatPlace(value, stepAt(axis, at));
  return axis.units === "" ? text : `${text} ${shortUnits(axis.units)}`;
}

/** Distance of the samples around a position, in the axis's units; 0 if unknown. */
function stepAt({ coordinates }: Axis, at: number): number {
  if (coordinates.kind === "regular") return Math.abs(coordinates.step);
  if (coordinates.kind === "index") return 0;
  const { values } = coordinates;
  const low = Math.max(0, Math.min(Math.floor(at), values.length - 2));
  const step = Math.abs((values[low + 1] ?? Number.NaN) - (values[low] ?? Number.NaN));
  return Number.isFinite(step) ? step : 0;
}

/** Minimum distance of successive samples, in the axis's units; 0 if unknown. */
function leastStep({ coordinates }: Axis): number {
  if (coordinates.kind === "regular") return Math.abs(coordinates.step);
  if (coordinates.kind === "index") return 0;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 1; i < coordinates.values.length; i += 1) {
    const step = Math.abs((coordinates.values[i] ?? Number.NaN) - (coordinates.values[i - 1] ?? Number.NaN));
    if (step > 0 && step < least) least = step;
  }
  return Number.isFinite(least) ? least : 0;
}

/**
 * A CF time such as 12 `hours since 1900-01-01` as a date of a calendar, of times `step` apart (0 if unknown); null when it is not one, or
 * where programs disagree on the date. It has a time of day, seconds and their fractions where these are not zero, to a hundredth of
 * the step.
 */
export function cfDate(value: number, units: string, step = 0, calendar = "standard"): string | null {
  const time = parseTimeUnits(units, calendar);
  if (!time || !isAgreed(time, value)) return null;
  const found = dateOfValue(time, value, grainOf(momentOf(time, value), momentOf(time, step)));
  if (!found) return null;
  const minutes = Math.floor(found.nanoseconds / 60e9);
  const clock = [Math.floor(minutes / 60), minutes % 60].map((n) => String(n).padStart(2, "0")).join(":");
  const text = clock + secondsText(found.nanoseconds - minutes * 60e9);
  return text === "00:00" ? dateText(found.date) : `${dateText(found.date)} ${text}`;
}

/** Precision to which a time is rounded, in nanoseconds: that of a double of its size, and at most a hundredth of the step. */
function grainOf(moment: number, step: number): number {
  const fine = GRAINS.find((grain) => grain > Math.abs(moment) * Number.EPSILON * 1e9) ?? 1e9;
  const coarse = GRAINS.findLast((grain) => grain <= step * 1e7) ?? 1;
  return Math.max(fine, coarse);
}

/** `:SS` and as many digits of a fraction as are not zero (3, 6 or 9); nothing for a whole minute. */
function secondsText(nanoseconds: number): string {
  if (nanoseconds === 0) return "";
  const fraction = String(nanoseconds % 1e9).padStart(9, "0");
  const digits = fraction.replace(/^((?:\d{3})*?)(?:000)*$/, "$1");
  return `:${String(Math.floor(nanoseconds / 1e9)).padStart(2, "0")}${digits === "" ? "" : `.${digits}`}`;
}

/** Calendar of a time axis: that of the array with its coordinates, if there is one. */
export function calendarOf(dataset: Dataset, array: ArrayInfo, axis: Axis): string {
  return dataset.arrays.find((other) => other.name === axis.name)?.calendar ?? array.calendar;
}

/** `161 × 94 × 103` */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? texts.values.scalar : shape.map(String).join(" × ");
}

/** Formats a number in at most five significant digits, with an exponent if it would be long. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? texts.values.none : String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(5)));
}

/** Significant digits of coordinates and of numbers in fields: enough to type them again. */
const FIELD_DIGITS = 9;
/** Share of the step of an axis to which its coordinates are rounded. */
const STEP_SHARE = 1e-3;

/** Formats a coordinate, or a number of a field: in nine digits, or to a thousandth of the step of its axis (0 if unknown). */
export function formatPlace(value: number, step = 0): string {
  if (!Number.isFinite(value)) return formatNumber(value);
  const digits = step > 0 ? digitsAt(value, step * STEP_SHARE) : fieldDigits(value);
  // No -0.
  const rounded = digits < 1 ? 0 : Number(value.toPrecision(digits)) + 0;
  return String(rounded).replace("e+", "e");
}

/** Number of significant digits of a value in a field: of one in single precision, those that distinguish it from others. */
function fieldDigits(value: number): number {
  if (Math.fround(value) !== value) return FIELD_DIGITS;
  let digits = 1;
  while (digits < FIELD_DIGITS && Math.fround(Number(value.toPrecision(digits))) !== value) digits += 1;
  return digits;
}

/** Number of significant digits of a value down to a part; 0 if the value is smaller. */
function digitsAt(value: number, part: number): number {
  if (value === 0) return 0;
  const digits = Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(part)) + 1;
  return Math.min(15, Math.max(0, digits));
}

/** A size with three significant digits. */
export function formatBytes(bytes: number): string {
  const units = [texts.values.bytes, "KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${Number((bytes / 1024 ** step).toPrecision(3))} ${units[step] ?? ""}`;
}

/** Describes the elements of an array: packed colors, or numbers of a type. */
export function formatElements({ meaning, dtype }: ArrayInfo): string {
  return meaning === "colors" ? texts.values.colors : formatType(dtype);
}

/** Formats a type such as `<f4` as `float32`. */
export function formatType(dtype: string): string {
  const match = /^[<>|=]?([iuf])([1248])$/.exec(dtype);
  if (!match) return dtype.replace(/^[<>|=]/, "");
  const names: Readonly<Record<string, string>> = { i: "int", u: "uint", f: "float" };
  return `${names[match[1] ?? ""] ?? ""}${8 * Number(match[2])}`;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Names that files give to units, and the signs that people read. */
const SIGNS: ReadonlyMap<string, string> = new Map([
  ["degree_north", "°N"],
  ["degrees_north", "°N"],
  ["degree_east", "°E"],
  ["degrees_east", "°E"],
  ["angstrom", "Å"],
  ["nanometer", "nm"],
  ["micrometer", "µm"],
  ["micron", "µm"],
  ["millimeter", "mm"],
  ["centimeter", "cm"],
  ["meter", "m"],
  ["kilometer", "km"],
]);

/** Signs of units of time, by their names in the singular. */
const TIME_SIGNS: ReadonlyMap<string, string> = new Map([
  ["hour", "h"],
  ["hr", "h"],
  ["h", "h"],
  ["day", "d"],
  ["d", "d"],
  ["minute", "min"],
  ["min", "min"],
  ["second", "s"],
  ["sec", "s"],
  ["s", "s"],
  ["millisecond", "ms"],
  ["msec", "ms"],
  ["ms", "ms"],
  ["microsecond", "µs"],
  ["us", "µs"],
  ["nanosecond", "ns"],
  ["ns", "ns"],
]);

/** Units as a sign that fits beside a number: `hours since 1900-01-01` as `h`; other units as `formatUnits` gives them. */
export function shortUnits(units: string): string {
  const name = /^\s*(\S+)\s+since\s/i.exec(units)?.[1];
  return name === undefined ? formatUnits(units) : timeSign(name);
}

/** Sign of a unit of time, such as `h` of `hours`; an unknown unit as it is. */
export function timeSign(name: string): string {
  const lower = name.toLowerCase();
  return TIME_SIGNS.get(lower) ?? TIME_SIGNS.get(lower.replace(/s$/, "")) ?? name;
}

/** Negative and marked exponents raised, and names of lengths and degrees as signs: `kg m-3` and `micrometer` as `kg m⁻³` and `µm`. */
export function formatUnits(units: string): string {
  const sign = SIGNS.get(units);
  if (sign !== undefined) return sign;
  return units.replace(
    /(?<=[A-Za-z])(?:(?:\^|\*\*)(-?\d)|(-\d))(?!\d)/g,
    (_, marked?: string, bare?: string) =>
      Array.from(marked ?? bare ?? "", (c) => (c === "-" ? "⁻" : (SUPERSCRIPTS[Number(c)] ?? c))).join(""),
  );
}
