//! Ticks: round values between the ends, with short texts.

import { describe, expect, it } from "vitest";

import { parseTimeUnits } from "../../dataset/calendar.ts";
import { dateTicks, degreeText, degreeTicks, logTicks, numberTicks, roundBelow } from "./ticks.ts";

const texts = (ticks: readonly { readonly text: string }[]) => ticks.map(({ text }) => text);

describe("numbers", () => {
  it("are round, between the ends, with the same decimals", () => {
    expect(texts(numberTicks(-24, 24, 5))).toEqual(["−20", "−10", "0", "10", "20"]);
    expect(texts(numberTicks(0.9, 0.1, 4))).toEqual(["0.2", "0.4", "0.6", "0.8"]);
    expect(texts(numberTicks(0, 3e21, 3))).toEqual(["0", "1e21", "2e21", "3e21"]);
    expect(texts(numberTicks(1.00002, 1.00004, 3))).toEqual(["1.00002", "1.00003", "1.00004"]);
    expect(texts(numberTicks(0, 2, 20, true))).toEqual(["0", "1", "2"]);
    expect([0.03, 0.7, 1.9, 2, 3.9, 5, 73, 1234].map(roundBelow)).toEqual([0.02, 0.5, 1, 2, 2, 5, 50, 1000]);
  });

  it("are few for any range, and none for a range that has none", () => {
    for (const span of [1e-300, 1e-9, 0.37, 99, 1e18, 1e300])
      for (const count of [1, 2, 5, 10, 500]) {
        const ticks = numberTicks(-span / 3, span, count);
        expect(ticks.length).toBeLessThanOrEqual(24);
        if (count >= 5) expect(ticks.length).toBeGreaterThan(1);
        for (const { value } of ticks) {
          expect(value).toBeGreaterThanOrEqual(-span / 3 - span * 1e-5);
          expect(value).toBeLessThanOrEqual(span * 1.00001);
        }
        expect(new Set(texts(ticks)).size).toBe(ticks.length);
      }
    for (const [a, b] of [
      [1, 1],
      [Number.NaN, 1],
      [0, Number.POSITIVE_INFINITY],
      [1e300, 1e300 * (1 + 2e-16)],
    ] as const)
      expect(numberTicks(a, b, 5)).toEqual([]);
  });

  it("of logarithmic scales are powers of ten", () => {
    expect(texts(logTicks(1e-6, 1e6, 7))).toEqual([
      "10⁻⁶",
      "10⁻⁴",
      "0.01",
      "1",
      "100",
      "10⁴".replace("10⁴", "10000"),
      "10⁶",
    ]);
    expect(texts(logTicks(1, 100, 7))).toEqual(["1", "2", "5", "10", "20", "50", "100"]);
    expect(texts(logTicks(2, 7, 5))).toEqual(["2", "3", "4", "5", "6", "7"]);
    expect(logTicks(-1, 10, 5)).toEqual([]);
  });
});

describe("places and dates", () => {
  it("name the hemisphere", () => {
    expect(texts(degreeTicks(-90, 90, 4, "latitude"))).toEqual(["90°S", "45°S", "0°", "45°N", "90°N"]);
    expect(texts(degreeTicks(0, 360, 4, "longitude"))).toEqual(["0°", "90°E", "180°", "90°W", "0°"]);
    expect(texts(degreeTicks(7.05, 7.31, 3, "longitude"))).toEqual(["7.1°E", "7.2°E", "7.3°E"]);
    expect([degreeText(240, "longitude"), degreeText(-0.001, "latitude")]).toEqual(["120°W", "0°"]);
  });

  it("are the first days of years and months, days or hours, in every calendar", () => {
    const of = (units: string, calendar: string, a: number, b: number, count: number) => {
      const time = parseTimeUnits(units, calendar);
      return time ? texts(dateTicks(a, b, count, time)) : null;
    };
    expect(of("days since 2000-01-01", "standard", 0, 731, 4)).toEqual([
      "2000-01",
      "2000-07",
      "2001-01",
      "2001-07",
      "2002-01",
    ]);
    expect(of("days since 2000-01-01", "360_day", 0, 3600, 5)).toEqual([
      "2000",
      "2002",
      "2004",
      "2006",
      "2008",
      "2010",
    ]);
    expect(of("days since 2000-02-27", "noleap", 0, 3, 4)).toEqual([
      "2000-02-27",
      "2000-02-28",
      "2000-03-01",
      "2000-03-02",
    ]);
    expect(of("hours since 2001-12-31 18:00", "standard", 0, 12, 4)).toEqual([
      "18:00",
      "21:00",
      "2002-01-01",
      "03:00",
      "06:00",
    ]);
    const season = of("days since 2001-01-01", "standard", 0, 105, 12);
    expect(season?.at(-1)).toBe("2001-04-11");
    expect(of("days since 1850-01-01", "proleptic_gregorian", 0, 1e9, 4)).toEqual([]);
  });
});
