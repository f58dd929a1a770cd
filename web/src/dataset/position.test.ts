import { describe, expect, it } from "vitest";

import type { Axis } from "./dataset.ts";
import { coordinateText, indexOfCoordinate, nearestIndex, parseCoordinate, parseDate } from "./position.ts";

const axis = (units: string, coordinates: Axis["coordinates"], kind: Axis["kind"] = "time"): Axis => ({
  name: "time",
  kind,
  units,
  coordinates,
});
const daily = (calendarDays: number[]) =>
  axis("days since 2000-01-01", { kind: "explicit", values: calendarDays });
const place = (typed: ReturnType<typeof nearestIndex>) => ("place" in typed ? typed.place : typed.problem);

describe("typed positions", () => {
  it("reads dates as people write them", () => {
    expect(parseDate("2001-02-03")).toEqual({ date: [2001, 2, 3], ofDay: 0 });
    expect(parseDate("2001-02")).toEqual({ date: [2001, 2, 1], ofDay: 0 });
    expect(parseDate("2001-02-03T06:30Z")?.ofDay).toBe(6.5 * 3600);
    expect(parseDate("-0044-03-15 12:00:01.5")?.date).toEqual([-44, 3, 15]);
    for (const bad of ["", "2001", "today", "2001-2-3 25:61", "1-2-3-4"])
      expect(parseDate(bad), bad).toBeNull();
  });

  it("finds the step of a date in the calendar of the axis", () => {
    const time = daily(Array.from({ length: 720 }, (_, day) => day));
    expect(place(nearestIndex("2001-02-30", time, 720, "360_day"))).toBe(360 + 30 + 29);
    expect(place(nearestIndex("2001-02-30", time, 720, "noleap"))).toBe(
      "The calendar noleap has no day 2001-02-30",
    );
    expect(place(nearestIndex("2001-01-01", time, 720, "noleap"))).toBe(365);
    expect(place(nearestIndex("2001-01-01", time, 720, "standard"))).toBe(366);
    expect(place(nearestIndex("2001-01-01", time, 720, "julian"))).toBe(366);
    expect(place(nearestIndex("2000-03-01 13:00", time, 720, "all_leap"))).toBe(61);
    expect(place(nearestIndex("2001", time, 720, "noleap"))).toBe(365);
    expect(place(nearestIndex("1999-06-01", time, 720, "noleap"))).toContain(
      "beyond the first position, 2000-01-01",
    );
    expect(place(nearestIndex("12.4", time, 720, "noleap"))).toBe(12);
  });

  it("reads numbers with the units of the axis only", () => {
    const depth = axis("m", { kind: "explicit", values: [0, 10, 50, 250] }, "z");
    expect(parseCoordinate("30 m", depth, "standard")).toEqual({ place: 30 });
    expect(parseCoordinate("3e1", depth, "standard")).toEqual({ place: 30 });
    expect(place(parseCoordinate("30 km", depth, "standard"))).toBe("Axis time is in m, not km");
    expect(place(parseCoordinate("2001-01-01", depth, "standard"))).toContain("has no dates");
    const latitude = axis("degrees_north", { kind: "regular", origin: 90, step: -0.25 }, "y");
    expect(place(nearestIndex("45.1°", latitude, 721, "standard"))).toBe(180);
  });

  it("have the digits that the step of the axis needs", () => {
    const at = (origin: number, step: number, index: number) =>
      coordinateText(axis("m", { kind: "regular", origin, step }, "y"), index, "standard");
    expect(at(5_412_345, 0.5, 1)).toBe("5412345.5 m");
    expect(at(5_412_345_678, 0.25, 1)).toBe("5412345678.25 m");
    expect(at(-0.3, 0.1, 3)).toBe("0 m");
    expect(at(0, 1 / 3, 2)).toBe("0.6667 m");
    const single = { kind: "explicit", values: [0, Math.fround(0.1), Math.fround(0.2)] } as const;
    expect(coordinateText(axis("", single, "x"), 1, "standard")).toBe("0.1");
  });

  it("finds places between uneven and descending coordinates", () => {
    const uneven = { kind: "explicit", values: [0, 10, 50, 250] } as const;
    expect([0, 5, 30, 250, 350].map((v) => indexOfCoordinate(uneven, 4, v))).toEqual([0, 0.5, 1.5, 3, 3.5]);
    const falling = { kind: "explicit", values: [1000, 500, 100] } as const;
    expect([1000, 750, 300, 100].map((v) => indexOfCoordinate(falling, 3, v))).toEqual([0, 0.5, 1.5, 2]);
    const dateLine = { kind: "explicit", values: [170, 175, 180, -175, -170] } as const;
    expect([176, -172].map((v) => indexOfCoordinate(dateLine, 5, v))).toEqual([Number.NaN, Number.NaN]);
    const longitude = axis("degrees_east", dateLine, "x");
    expect(place(nearestIndex("-172", longitude, 5, "standard"))).toContain("not in order");
    expect(indexOfCoordinate({ kind: "explicit", values: [0, 5, 5] }, 3, 5)).toBe(1);
    expect(indexOfCoordinate({ kind: "regular", origin: 90, step: -0.5 }, 361, 0)).toBe(180);
  });
});
