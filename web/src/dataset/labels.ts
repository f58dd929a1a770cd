//! Labels beside controls, for people: positions along axes, dates (CF conventions), shapes, numbers.

import type { ArrayInfo, Axis, Dataset } from "./dataset.ts";

const UNIT_SECONDS: Readonly<Record<string, number>> = {
  s: 1,
  sec: 1,
  second: 1,
  min: 60,
  minute: 60,
  h: 3600,
  hr: 3600,
  hour: 3600,
  d: 86_400,
  day: 86_400,
};
/** Calendars in which a browser's dates are right (for the years since 1582). */
const GREGORIAN: readonly string[] = ["standard", "gregorian", "proleptic_gregorian"];

/** The coordinate of sample `index`; NaN where the file gives none. */
export function coordinateAt(axis: Axis, index: number): number {
  const { coordinates } = axis;
  if (coordinates.kind === "regular") return coordinates.origin + index * coordinates.step;
  return coordinates.kind === "explicit" ? (coordinates.values[index] ?? Number.NaN) : index;
}

/** Position of sample `index`, for people: a date for CF times, else a number with its units; empty if unknown. */
export function positionLabel(axis: Axis, index: number, calendar = "standard"): string {
  if (axis.coordinates.kind === "index") return "";
  const value = coordinateAt(axis, index);
  if (!Number.isFinite(value)) return "";
  const date = GREGORIAN.includes(calendar.toLowerCase()) ? cfDate(value, axis.units) : null;
  if (date !== null) return date;
  return axis.units === "" ? formatNumber(value) : `${formatNumber(value)} ${formatUnits(axis.units)}`;
}

/** A CF time such as 12 `hours since 1900-01-01` as a date; null when it is not one. */
export function cfDate(value: number, units: string): string | null {
  const match =
    /^\s*([a-z]+)\s+since\s+(-?\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T\s]+(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?)?/i.exec(
      units,
    );
  if (!match) return null;
  const [, unit = "", ...fields] = match;
  const seconds = UNIT_SECONDS[unit.toLowerCase()] ?? UNIT_SECONDS[unit.toLowerCase().replace(/s$/, "")];
  if (seconds === undefined) return null;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = fields.map((field) =>
    Number(field || 0),
  );
  const start = new Date(0);
  start.setUTCFullYear(year, month - 1, day);
  start.setUTCHours(hour, minute, second);
  const date = new Date(start.getTime() + value * seconds * 1000);
  // Before 1582 the standard calendar is Julian; such dates stay numbers.
  if (Number.isNaN(date.getTime()) || Math.min(date.getTime(), start.getTime()) < Date.UTC(1582, 9, 15))
    return null;
  const text = date.toISOString();
  return text.slice(11, 19) === "00:00:00" ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

/** The calendar of a time axis: that of the array that holds its coordinates, where there is one. */
export function calendarOf(dataset: Dataset, array: ArrayInfo, axis: Axis): string {
  return dataset.arrays.find((other) => other.name === axis.name)?.calendar ?? array.calendar;
}

/** `161 × 94 × 103` */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? "scalar" : shape.map(String).join(" × ");
}

/** Short and unambiguous: at most five significant digits, exponent where long. */
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

/** `<f4` and such, as people say it. */
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
