//! Round values for ticks, and their texts: numbers, logarithms, degrees, dates. Pure.

import {
  dateOfValue,
  dateText,
  valueOfDate,
  type CalendarDate,
  type TimeUnits,
} from "../../dataset/calendar.ts";

/** A value and its text. */
export interface Tick {
  readonly value: number;
  readonly text: string;
}

/** Maximum number of ticks of a scale. */
const MAX_TICKS = 24;
/** Share of a step within which the ends count as reached. */
const END = 1e-6;
/** Steps of degrees. */
const DEGREE_STEPS: readonly number[] = [1, 2, 5, 10, 15, 30, 45, 60, 90];

/** Smallest of 1, 2 and 5 times a power of ten that is at least `step`. */
export function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 5, 10].find((n) => n * power >= step * (1 - END)) ?? 10;
  return factor * power;
}

/** Largest of 1, 2 and 5 times a power of ten that is at most `length`. */
export function roundBelow(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  const factor = [5, 2, 1].find((n) => n * power <= length * (1 + END)) ?? 1;
  return factor * power;
}

/** Multiples of `step` between two values, in ascending order; none if there are too many. */
function multiples(a: number, b: number, step: number): number[] {
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  const [first, last] = [Math.ceil(low / step - END), Math.floor(high / step + END)];
  if (!Number.isFinite(first) || !Number.isFinite(last) || last - first + 1 > MAX_TICKS) return [];
  // By multiplication: sums of a rounded step would drift. No -0.
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step + 0);
}

/** Ticks at round values between two values, at most `count` of them, or a few more for a small count. */
export function numberTicks(a: number, b: number, count: number, isWhole = false): Tick[] {
  const span = Math.abs(b - a);
  if (!(span > 0) || !Number.isFinite(span) || count < 1) return [];
  // Neighbors that differ by less than a double resolves have no ticks.
  if (span < Math.max(Math.abs(a), Math.abs(b)) * 1e-13) return [];
  const step = roundStep(span / Math.min(count, MAX_TICKS - 2));
  const used = isWhole ? Math.max(1, step) : step;
  return multiples(a, b, used).map((value) => ({ value, text: numberText(value, used) }));
}

/** Text of a multiple of `step`: all texts of one scale have the same number of decimals. */
export function numberText(value: number, step: number): string {
  const size = Math.max(Math.abs(value), step);
  if (value !== 0 && ((size >= 1e6 && step >= 1e3) || size < 1e-3)) {
    const digits = Math.max(0, Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(step) + END));
    const [mantissa = "", exponent = ""] = value.toExponential(Math.min(12, digits)).split("e");
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    return minus(`${short}e${exponent.replace("+", "")}`);
  }
  const decimals = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + END)));
  return minus(value === 0 ? "0" : value.toFixed(decimals));
}

/** Hyphens of negative numbers as minus signs, as wide as a plus. */
export function minus(text: string): string {
  return text.replaceAll("-", "−");
}

/** Ticks of a logarithmic scale: powers of ten, with 2 and 5 times them between if there are few. */
export function logTicks(a: number, b: number, count: number): Tick[] {
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  if (!(low > 0) || !Number.isFinite(high)) return [];
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const decades = Math.log10(high / low);
  if (decades < 1) return numberTicks(a, b, count);
  const every = Math.max(1, Math.ceil(decades / Math.max(2, count)));
  const factors = decades * 3 <= count ? [1, 2, 5] : decades * 2 <= count ? [1, 3] : [1];
  const ticks: Tick[] = [];
  for (let power = Math.ceil(first / every) * every; power <= last; power += every)
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * (1 - END) && value <= high * (1 + END))
        ticks.push({ value, text: powerText(factor, power) });
    }
  return ticks.slice(0, MAX_TICKS);
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function powerText(factor: number, power: number): string {
  if (power >= -3 && power <= 4) return String(Number((factor * 10 ** power).toPrecision(3)));
  const digits = Array.from(String(power), (c) => (c === "-" ? "⁻" : (SUPERSCRIPTS[Number(c)] ?? c))).join(
    "",
  );
  return `${factor === 1 ? "" : `${factor}·`}10${digits}`;
}

/** Ticks of latitudes (`45°N`) or longitudes (`120°W`, also for 240). */
export function degreeTicks(a: number, b: number, count: number, kind: "latitude" | "longitude"): Tick[] {
  const span = Math.abs(b - a);
  if (!(span > 0) || !Number.isFinite(span) || count < 1) return [];
  const least = span / Math.min(count, MAX_TICKS - 2);
  const step = (least < 1 ? null : DEGREE_STEPS.find((n) => n >= least * (1 - END))) ?? roundStep(least);
  return multiples(a, b, step).map((value) => ({ value, text: degreeText(value, kind, step) }));
}

export function degreeText(value: number, kind: "latitude" | "longitude", step = 1): string {
  const turned = kind === "longitude" ? ((((value + 180) % 360) + 360) % 360) - 180 : value;
  const decimals = Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + END)));
  const size = Number(Math.abs(turned).toFixed(decimals));
  const text = `${size.toFixed(decimals)}°`;
  if (size === 0 || (kind === "longitude" && size === 180)) return text;
  if (kind === "latitude") return text + (turned > 0 ? "N" : "S");
  return text + (turned > 0 ? "E" : "W");
}

/** Steps of dates: the unit and how many of it. */
const DATE_STEPS: readonly (readonly [
  seconds: number,
  unit: "s" | "day" | "month" | "year",
  count: number,
])[] = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200].map(
    (seconds) => [seconds, "s", seconds] as const,
  ),
  ...[1, 2, 5, 10].map((n) => [n * 86_400, "day", n] as const),
  ...[1, 2, 3, 6].map((n) => [n * 30 * 86_400, "month", n] as const),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000].map(
    (n) => [n * 365 * 86_400, "year", n] as const,
  ),
];

/** Ticks of times: first days of years and months, days, whole hours and so on, at most about `count`. */
export function dateTicks(a: number, b: number, count: number, time: TimeUnits): Tick[] {
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  const seconds = ((high - low) * time.seconds) / time.parts / Math.max(1, Math.min(count, MAX_TICKS / 2));
  const step = DATE_STEPS.find(([length]) => length >= 0.9 * seconds);
  const first = dateOfValue(time, low);
  if (!step || !first || !(high > low)) return [];
  const [, unit, every] = step;
  const [year, month] = first.date;
  const ticks: Tick[] = [];
  const add = (date: CalendarDate, ofDay: number, text: string) => {
    const value = valueOfDate(time, date, ofDay);
    if (value !== null && value >= low && value <= high && ticks.length < MAX_TICKS)
      ticks.push({ value, text });
  };
  const days = ((high - low) * time.seconds) / time.parts / 86_400;
  // Every day is tried, of other units every step; `add` leaves out what lies outside.
  const tries = unit === "day" ? Math.ceil(days) + 1 : 3 * MAX_TICKS;
  for (let i = 0; i <= tries; i += 1) {
    if (unit === "year") {
      const of = (Math.floor(year / every) + i) * every;
      add([of, 1, 1], 0, minus(String(of)));
    } else if (unit === "month") {
      const months = year * 12 + Math.floor((month - 1) / every) * every + i * every;
      const date: CalendarDate = [Math.floor(months / 12), (months % 12) + 1, 1];
      add(date, 0, dateText(date).slice(0, -3));
    } else if (unit === "day") {
      const value = valueOfDate(time, first.date);
      const at =
        value === null ? null : dateOfValue(time, value + (i * 86_400 * time.parts) / time.seconds, 1e9);
      // Days of a month that are 1 or a multiple of the step, so that ticks stay where they are when the view moves.
      if (at && (every === 1 || (at.date[2] % every === 1 && at.date[2] < 30)))
        add(at.date, 0, dateText(at.date));
    } else {
      const ofDay = Math.floor(first.nanoseconds / 1e9 / every) * every + i * every;
      const start = valueOfDate(time, first.date, ofDay);
      const at = start === null ? null : dateOfValue(time, start, 1e9);
      if (at) add(at.date, at.nanoseconds / 1e9, clockText(at.date, at.nanoseconds / 1e9, every));
    }
  }
  return ticks.filter((tick, i) => i === 0 || tick.value > (ticks[i - 1]?.value ?? 0));
}

function clockText(date: CalendarDate, ofDay: number, every: number): string {
  if (ofDay === 0) return dateText(date);
  const parts = [Math.floor(ofDay / 3600), Math.floor(ofDay / 60) % 60, ofDay % 60];
  return parts
    .slice(0, every < 60 ? 3 : 2)
    .map((n) => String(n).padStart(2, "0"))
    .join(":");
}
