//! Dates of the calendars of the CF conventions (section 4.4.1), with the arithmetic of the node's `array::time`: units and
//! calendar of a time axis, dates of its values, values of dates.

export type Calendar = "standard" | "proleptic_gregorian" | "julian" | "noleap" | "all_leap" | "360_day";

/** Year, month from 1, day from 1. */
export type CalendarDate = readonly [year: number, month: number, day: number];

const NAMES: ReadonlyMap<string, Calendar> = new Map<string, Calendar>([
  ["", "standard"],
  ["standard", "standard"],
  ["gregorian", "standard"],
  ["proleptic_gregorian", "proleptic_gregorian"],
  ["julian", "julian"],
  ["noleap", "noleap"],
  ["365_day", "noleap"],
  ["all_leap", "all_leap"],
  ["366_day", "all_leap"],
  ["360_day", "360_day"],
]);

const SECONDS_A_DAY = 86_400;
/** Days before each month of a year without a leap day. */
const BEFORE_MONTH: readonly number[] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
/** Largest year, in both directions: as in the node. */
const MAX_YEAR = 99_999;
/** First day of the Gregorian calendar, and last one of the Julian one before it, in the standard calendar. */
const GREGORIAN_FROM: CalendarDate = [1582, 10, 15];
const JULIAN_UNTIL: CalendarDate = [1582, 10, 4];

/** Calendar of this name; null if it is unknown. */
export function calendarNamed(name: string): Calendar | null {
  return NAMES.get(name.trim().toLowerCase()) ?? null;
}

/** The standard and the Julian calendar have no year 0: "counted" years are on a scale without that gap. */
function counted(calendar: Calendar, year: number): number | null {
  if (calendar !== "standard" && calendar !== "julian") return year;
  if (year === 0) return null;
  return year < 0 ? year + 1 : year;
}

function written(calendar: Calendar, year: number): number {
  return (calendar === "standard" || calendar === "julian") && year <= 0 ? year - 1 : year;
}

const divides = (part: number, whole: number) => whole % part === 0;
const compare = (a: CalendarDate, b: CalendarDate) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];

function isLeap(calendar: Calendar, year: number): boolean {
  const isGregorian = divides(4, year) && (!divides(100, year) || divides(400, year));
  switch (calendar) {
    case "standard":
      return year <= 1582 ? divides(4, year) : isGregorian;
    case "proleptic_gregorian":
      return isGregorian;
    case "julian":
      return divides(4, year);
    case "all_leap":
      return true;
    case "noleap":
    case "360_day":
      return false;
  }
}

function daysOfMonth(calendar: Calendar, year: number, month: number): number {
  if (calendar === "360_day") return 30;
  if (month === 2) return isLeap(calendar, year) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** Days since the beginning of counted year 0; null for a day that the calendar does not have. */
export function dayOf(calendar: Calendar, [year, month, day]: CalendarDate): number | null {
  const own = counted(calendar, year);
  return own === null ? null : dayOfCounted(calendar, [own, month, day]);
}

function dayOfCounted(calendar: Calendar, date: CalendarDate): number | null {
  const [year, month, day] = date;
  if (Math.abs(year) > MAX_YEAR || month < 1 || month > 12 || day < 1) return null;
  if (day > daysOfMonth(calendar, year, month)) return null;
  const leapDays = (every: number) => Math.floor((year + every - 1) / every);
  const withinYear = () =>
    (BEFORE_MONTH[month - 1] ?? 0) + (month > 2 && isLeap(calendar, year) ? 1 : 0) + day - 1;
  const julian = 365 * year + leapDays(4);
  switch (calendar) {
    case "360_day":
      return 360 * year + 30 * (month - 1) + day - 1;
    case "noleap":
      return 365 * year + withinYear();
    case "all_leap":
      return 366 * year + withinYear();
    case "julian":
      return julian + withinYear();
    case "proleptic_gregorian":
      return julian - leapDays(100) + leapDays(400) + withinYear();
    case "standard":
      if (compare(date, GREGORIAN_FROM) >= 0) return (dayOfCounted("proleptic_gregorian", date) ?? 0) - GAP;
      return compare(date, JULIAN_UNTIL) > 0 ? null : dayOfCounted("julian", date);
  }
}

/** Difference of the day numbers of the two calendars where one follows the other. */
const GAP =
  (dayOfCounted("proleptic_gregorian", GREGORIAN_FROM) ?? 0) -
  (dayOfCounted("julian", JULIAN_UNTIL) ?? 0) -
  1;

/** Date of a day, the inverse of `dayOf`; null beyond the years that are known. */
export function dateOf(calendar: Calendar, day: number): CalendarDate | null {
  let low = Math.min(Math.floor(day / 367), Math.floor(day / 360)) - 1;
  let high = Math.max(Math.floor(day / 360), Math.floor(day / 367)) + 2;
  if (!Number.isFinite(day) || Math.abs(low) > MAX_YEAR || Math.abs(high) > MAX_YEAR) return null;
  const begins = (year: number, month: number) =>
    dayOfCounted(calendar, [year, month, 1]) ?? Number.POSITIVE_INFINITY;
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2);
    if (begins(middle, 1) <= day) low = middle;
    else high = middle;
  }
  let month = 12;
  while (month > 1 && begins(low, month) > day) month -= 1;
  // In October 1582 ten days are missing.
  for (let of = 31; of > 0; of -= 1)
    if (dayOfCounted(calendar, [low, month, of]) === day) return [written(calendar, low), month, of];
  return null;
}

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
    d: [SECONDS_A_DAY, 1],
    day: [SECONDS_A_DAY, 1],
    week: [7 * SECONDS_A_DAY, 1],
  }),
);

/** Units of a time axis: seconds from an epoch in a calendar. */
export interface TimeUnits {
  readonly calendar: Calendar;
  /** Length of the unit: `seconds / parts`. */
  readonly seconds: number;
  readonly parts: number;
  readonly epochDay: number;
  /** Seconds from that day's midnight to the epoch. */
  readonly epochOfDay: number;
}

const SINCE =
  /^\s*([a-z_]+)\s+since\s+(-?\d{1,5})-(\d{1,2})-(\d{1,2})(?:[T\s]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?)?)?\s*(?:Z|UTC|GMT|([+-])(\d{1,2})(?::?(\d{2}))?)?\s*$/i;

/** Reads CF units such as `hours since 1900-01-01` and the name of a calendar; null if either is unknown. */
export function parseTimeUnits(units: string, calendarName: string): TimeUnits | null {
  const calendar = calendarNamed(calendarName);
  const match = SINCE.exec(units);
  if (!calendar || !match) return null;
  const unit = unitNamed((match[1] ?? "").toLowerCase(), calendar);
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match
    .slice(2, 8)
    .map((field) => Number(field || 0));
  const ahead = (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0)) * (match[8] === "-" ? -60 : 60);
  const epochDay = dayOf(calendar, [year, month, day]);
  if (!unit || epochDay === null) return null;
  const [seconds, parts] = unit;
  return { calendar, seconds, parts, epochDay, epochOfDay: hour * 3600 + minute * 60 + second - ahead };
}

/** Months and years have a length only where all are equally long. */
function unitNamed(name: string, calendar: Calendar): readonly [number, number] | null {
  const one = name.replace(/s$/, "");
  if (one === "month" && calendar === "360_day") return [30 * SECONDS_A_DAY, 1];
  if (one === "common_year" && calendar === "noleap") return [365 * SECONDS_A_DAY, 1];
  return UNITS.get(name) ?? UNITS.get(one) ?? null;
}

/** Seconds from the epoch to a value. */
export function momentOf(time: TimeUnits, value: number): number {
  return (value * time.seconds) / time.parts;
}

/** Value of a date and seconds after its midnight; null for a day that the calendar does not have. */
export function valueOfDate(time: TimeUnits, date: CalendarDate, ofDay = 0): number | null {
  const day = dayOf(time.calendar, date);
  if (day === null) return null;
  return (((day - time.epochDay) * SECONDS_A_DAY + ofDay - time.epochOfDay) * time.parts) / time.seconds;
}

/** Date of a value, and nanoseconds after its midnight in multiples of `grain`; null beyond the years that are known. */
export function dateOfValue(
  time: TimeUnits,
  value: number,
  grain = 1,
): { readonly date: CalendarDate; readonly nanoseconds: number } | null {
  const moment = momentOf(time, value);
  if (!Number.isFinite(moment)) return null;
  let day = Math.floor((time.epochOfDay + moment) / SECONDS_A_DAY);
  const ofDay = time.epochOfDay + moment - day * SECONDS_A_DAY;
  let nanoseconds = Math.round((ofDay * 1e9) / grain) * grain;
  if (nanoseconds >= SECONDS_A_DAY * 1e9) {
    day += 1;
    nanoseconds -= SECONDS_A_DAY * 1e9;
  }
  const date = dateOf(time.calendar, time.epochDay + day);
  return date && { date, nanoseconds };
}

/**
 * True if the date of a value is certain: in Gregorian calendars it is neither before 15 October 1582 nor after the year 9999. An epoch
 * before is read as CF defines the calendar. Same rule as in the node.
 */
export function isAgreed(time: TimeUnits, value: number): boolean {
  if (time.calendar !== "standard" && time.calendar !== "proleptic_gregorian") return true;
  const [from, end] = [dayOf(time.calendar, GREGORIAN_FROM), dayOf(time.calendar, [10_000, 1, 1])];
  if (from === null || end === null) return false;
  const day = time.epochDay + (time.epochOfDay + momentOf(time, value)) / SECONDS_A_DAY;
  return day >= from && day < end;
}

const two = (n: number) => String(n).padStart(2, "0");

/** `2001-02-03` */
export function dateText([year, month, day]: CalendarDate): string {
  const sign = year < 0 ? "-" : "";
  return `${sign}${String(Math.abs(year)).padStart(4, "0")}-${two(month)}-${two(day)}`;
}
