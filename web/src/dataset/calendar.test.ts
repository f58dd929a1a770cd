//! Calendars: dates as cftime computes them.

import { describe, expect, it } from "vitest";

import { calendarNamed, dateOf, dateText, dayOf, parseTimeUnits, valueOfDate } from "./calendar.ts";
import { cfDate } from "./labels.ts";

/** Computed by cftime 1.6: `num2date(value, units, calendar)`. */
const DATES: readonly (readonly [value: number, units: string, calendar: string, date: string])[] = [
  [59, "days since 2000-01-01", "noleap", "2000-03-01"],
  [59.25, "days since 2000-01-01", "360_day", "2000-02-30 06:00"],
  [59, "days since 2000-01-01", "366_day", "2000-02-29"],
  [36_159, "days since 1850-01-01", "365_day", "1949-01-25"],
  [13, "months since 2000-01-01", "360_day", "2001-02-01"],
  [2, "common_years since 2000-01-01", "noleap", "2002-01-01"],
  [0, "days since 1500-02-29", "julian", "1500-02-29"],
  [366, "days since 1899-12-31", "julian", "1900-12-31"],
  [36_525, "days since 1900-01-01", "proleptic_gregorian", "2000-01-02"],
];

describe("dates of every calendar", () => {
  it.each(DATES)("%d %s of %s is %s", (value, units, calendar, date) => {
    expect(cfDate(value, units, 0, calendar)).toBe(date);
    const time = parseTimeUnits(units, calendar);
    const [year = 0, month = 0, day = 0, hour = 0] = date.split(/[- :]/).map(Number);
    expect(time && valueOfDate(time, [year, month, day], hour * 3600)).toBeCloseTo(value, 9);
  });

  it("days and dates are inverse, in October 1582 too", () => {
    for (const name of ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]) {
      const calendar = calendarNamed(name);
      if (!calendar) throw new Error(name);
      const first = dayOf(calendar, [1582, 9, 28]) ?? 0;
      for (let day = first; day < first + 1500; day += 1) {
        const date = dateOf(calendar, day);
        expect(date && dayOf(calendar, date)).toBe(day);
      }
      const early = dateOf(calendar, -800);
      expect(early && dayOf(calendar, early)).toBe(-800);
    }
    const last = dayOf("standard", [1582, 10, 4]) ?? 0;
    expect(dateOf("standard", last + 1)).toEqual([1582, 10, 15]);
    expect(dayOf("standard", [1582, 10, 9])).toBeNull();
  });

  it("what has no date stays a number", () => {
    expect(parseTimeUnits("days since 2000-01-01", "lunar")).toBeNull();
    expect(parseTimeUnits("months since 2000-01-01", "standard")).toBeNull();
    expect(parseTimeUnits("days since 2001-02-29", "noleap")).toBeNull();
    expect(dateOf("noleap", 1e300)).toBeNull();
    expect(dateText([-44, 3, 15])).toBe("-0044-03-15");
  });
});
