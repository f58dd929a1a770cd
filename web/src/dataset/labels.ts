//! Labels of controls: positions along axes, dates (CF conventions), shapes, numbers.

import type { ArrayInfo, Axis, Dataset } from "./dataset.ts";

/** Seconds of units, and into how many parts of the unit a second is divided: numbers of milliseconds are exact when divided. */
const UNITS: ReadonlyMap<string, readonly [seconds: number, parts: number]> = new Map(
  Object.entries<readonly [number, number]>({
    ns: [1, 1e9],
    nanosec: [1, 1e9],
    nanosecond: [1, 1e9],
    us: [1, 1e6],
    microsec: [1, 1e6],
    microsecond: [1, 1e6],
    ms: [1, 1000],
    msec: [1, 1000],
    millisec: [1, 1000],
    millisecond: [1, 1000],
    s: [1, 1],
    sec: [1, 1],
    second: [1, 1],
    min: [60, 1],
    minute: [60, 1],
    h: [3600, 1],
    hr: [3600, 1],
    hour: [3600, 1],
    d: [86_400, 1],
    day: [86_400, 1],
    week: [604_800, 1],
  }),
);
/** Nanoseconds of the parts to which times are rounded. */
const GRAINS: readonly number[] = [1, 1e3, 1e6, 1e9, 60e9];
/** Calendars in which a browser's dates are right (for the years since 1582). */
const GREGORIAN: readonly string[] = ["standard", "gregorian", "proleptic_gregorian"];

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
  const date = GREGORIAN.includes(calendar.toLowerCase()) ? cfDate(value, axis.units, leastStep(axis)) : null;
  if (date !== null) return date;
  return axis.units === "" ? formatNumber(value) : `${formatNumber(value)} ${formatUnits(axis.units)}`;
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

const SINCE =
  /^\s*([a-z]+)\s+since\s+(-?\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T\s]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?)?)?\s*(?:Z|UTC|GMT|([+-])(\d{1,2})(?::?(\d{2}))?)?\s*$/i;

/**
 * A CF time such as 12 `hours since 1900-01-01` as a date, of times `step` apart (0 if unknown); null when it is not one. It has a time
 * of day, seconds and their fractions where these are not zero, to a hundredth of the step.
 */
export function cfDate(value: number, units: string, step = 0): string | null {
  const match = SINCE.exec(units);
  if (!match) return null;
  const name = (match[1] ?? "").toLowerCase();
  const [unit, parts] = UNITS.get(name) ?? UNITS.get(name.replace(/s$/, "")) ?? [Number.NaN, 1];
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match
    .slice(2, 8)
    .map((field) => Number(field || 0));
  const ahead = (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0)) * (match[8] === "-" ? -60 : 60);
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month - 1, day);
  const ofDay = hour * 3600 + minute * 60 + second - ahead;
  const moment = (value * unit) / parts;
  const days = Math.floor((ofDay + moment) / 86_400);
  const grain = grainOf(moment, (step * unit) / parts);
  const nanoseconds = Math.round(((ofDay + moment - days * 86_400) * 1e9) / grain) * grain;
  const minutes = Math.floor(nanoseconds / 60e9);
  const date = new Date(midnight.getTime() + days * 86_400_000 + minutes * 60_000);
  const isDate = midnight.getUTCMonth() === month - 1 && midnight.getUTCDate() === day;
  const [from, end] = [Date.UTC(1582, 9, 15), Date.UTC(10_000, 0, 1)];
  const isInRange = [date.getTime(), midnight.getTime()].every((time) => time >= from && time < end);
  // Before 1582 the standard calendar is Julian, and years after 9999 have more digits; such dates stay numbers.
  if (!isDate || !isInRange) return null;
  const text = date.toISOString();
  const seconds = secondsText(nanoseconds - minutes * 60e9);
  const time = text.slice(11, 16) + seconds;
  return time === "00:00" ? text.slice(0, 10) : `${text.slice(0, 10)} ${time}`;
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
  return shape.length === 0 ? "scalar" : shape.map(String).join(" × ");
}

/** Formats a number in at most five significant digits, with an exponent if it would be long. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "no value" : String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(5)));
}

/** A size with three significant digits. */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${Number((bytes / 1024 ** step).toPrecision(3))} ${units[step] ?? ""}`;
}

/** Describes the elements of an array: packed colors, or numbers of a type. */
export function formatElements({ meaning, dtype }: ArrayInfo): string {
  return meaning === "colors" ? "colors" : formatType(dtype);
}

/** Formats a type such as `<f4` as `float32`. */
export function formatType(dtype: string): string {
  const match = /^[<>|=]?([iuf])([1248])$/.exec(dtype);
  if (!match) return dtype.replace(/^[<>|=]/, "");
  const names: Readonly<Record<string, string>> = { i: "int", u: "uint", f: "float" };
  return `${names[match[1] ?? ""] ?? ""}${8 * Number(match[2])}`;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Negative and marked exponents raised: `kg m-3` and `m^2` as `kg m⁻³` and `m²`. */
export function formatUnits(units: string): string {
  return units.replace(
    /(?<=[A-Za-z])(?:(?:\^|\*\*)(-?\d)|(-\d))(?!\d)/g,
    (_, marked?: string, bare?: string) =>
      Array.from(marked ?? bare ?? "", (c) => (c === "-" ? "⁻" : (SUPERSCRIPTS[Number(c)] ?? c))).join(""),
  );
}
