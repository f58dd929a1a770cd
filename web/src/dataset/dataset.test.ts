//! Descriptions, dates, places in the world, statistics.

import { describe, expect, it } from "vitest";

import { DATASET } from "./sample.ts";
import { parseJson, type Json } from "../json.ts";
import {
  asDrawn,
  canColor,
  findArray,
  freeAxes,
  isContinuous,
  isDrawable,
  isOneLayer,
  parseDataset,
  parseDrawn,
  spaceShape,
  timeSteps,
} from "./dataset.ts";
import {
  cfDate,
  formatElements,
  formatNumber,
  formatPlace,
  formatShape,
  formatType,
  formatUnits,
  positionLabel,
} from "./labels.ts";
import { parseStats, positionKey, statsLevel, statsRanges } from "./stats.ts";
import { isThick, worldBox } from "./world.ts";

const parsed = parseDataset(parseJson(JSON.stringify(DATASET)));
const [rho] = parsed.arrays;
if (!rho) throw new Error("expected an array");

describe("description", () => {
  it("finds arrays by name, ignoring outer slashes, and the first that can be drawn", () => {
    expect(findArray(parsed, "/speed")?.number).toBe(1);
    expect(findArray(parsed, "")?.name).toBe("rho");
    expect(findArray(parsed, "gone")).toBeNull();
    expect(parsed.arrays.every(isDrawable)).toBe(true);
  });

  const of = (kinds: string[], shape: number[], name: string) => ({
    name,
    axes: kinds.map((kind) => ({ name: kind, kind })),
    levels: [{ shape }],
  });
  const parse = (...arrays: Json[]) => parseDataset({ arrays });

  it("uses the axes on which an array is drawn, and has the shape in the file", () => {
    const described = parse(of(["z", "y", "x"], [14, 5, 6], "t"), of(["y", "x"], [5, 6], "map"));
    const drawn = parseDrawn([
      { ...of(["z", "y", "x"], [1037, 5, 6], "t"), notes: ["even"], world_units: "km" },
    ]);
    const [t, map] = asDrawn(described, drawn).arrays;
    expect(t && spaceShape(t)).toEqual([6, 5, 1037]);
    expect([t?.fileLevels[0]?.shape, t?.notes, t?.worldUnits, t?.number]).toEqual([
      [14, 5, 6],
      ["even"],
      "km",
      0,
    ]);
    expect(map).toBe(described.arrays[1]);
    const other = parseDrawn([of(["y", "x"], [9, 9], "t"), of(["y", "x"], [9, 9], "gone")]);
    expect(asDrawn(described, other).arrays).toEqual(described.arrays);
    expect(() => parseDrawn({})).toThrow("list of arrays");
  });

  it("adds arrays that only the node has: color images", () => {
    const described = parse(of(["y", "x", "channel"], [5, 6, 3], "photo"));
    const colors = { ...of(["y", "x"], [5, 6], "photo (color)"), dtype: "<u4", meaning: "colors" };
    const { arrays } = asDrawn(described, parseDrawn([colors]));
    expect(arrays.map(({ name, number, meaning }) => [name, number, meaning])).toEqual([
      ["photo", 0, "intensity"],
      ["photo (color)", 1, "colors"],
    ]);
    expect(arrays.map(isContinuous)).toEqual([true, false]);
    expect(arrays.map(formatElements)).toEqual(["", "colors"]);
  });

  it("treats planes as drawable, as the node does, and prefers volumes", () => {
    const map = of(["time", "y", "x"], [12, 90, 180], "map");
    const rows = of(["other", "other"], [40, 50], "rows");
    const step = of(["time"], [1], "step");
    const empty = of(["y", "x"], [0, 5], "empty");
    expect(parse(map, rows, step, empty).arrays.map(isDrawable)).toEqual([true, true, false, false]);
    const volume = of(["z", "y", "x"], [4, 5, 6], "volume");
    expect(findArray(parse(step, map, volume), "")?.name).toBe("volume");
    expect(findArray(parse(step, map), "")?.name).toBe("map");
  });

  it("places an array without spatial axes by its last axes", () => {
    const [rows] = parse(of(["other", "other"], [40, 50], "rows")).arrays;
    expect(rows && worldBox(rows)?.extent).toEqual([50, 40, 1]);
  });

  it("offers places along the axes on which an array is not drawn", () => {
    const free = (kinds: string[], shape: number[]) =>
      parse(of(kinds, shape, "a")).arrays.flatMap((array) => [
        freeAxes(array).map(({ axis, size }) => `${axis.kind} ${size}`),
        timeSteps(array),
      ]);
    expect(free(["time", "z", "y", "x"], [9, 2, 3, 4])).toEqual([["time 9"], 9]);
    expect(free(["time", "channel", "y", "x"], [1, 3, 3, 4])).toEqual([["channel 3"], 1]);
    expect(free(["time"], [9])).toEqual([[], 0]);
    expect(free(["time", "other"], [9, 5])).toEqual([[], 0]);
    expect(free(["time", "other", "other", "other"], [9, 5, 6, 7])).toEqual([["time 9"], 9]);
  });

  it("recognizes arrays of one layer", () => {
    const photo = of(["y", "x", "channel"], [5, 6, 3], "photo");
    const { arrays } = parse(photo, of(["z", "y", "x"], [2, 5, 6], "two"), of(["x"], [6], "line"));
    expect(arrays.map(isOneLayer)).toEqual([true, false, true]);
  });

  it("names channels if the file names all of them", () => {
    const cells = of(["channel", "y", "x"], [3, 5, 6], "cells");
    const named = (channels: Json) =>
      parse({ ...cells, attributes: { channels } }).arrays.flatMap((array) =>
        array.axes.slice(0, 1).map((axis) => positionLabel(axis, 1, "standard", array.channels)),
      );
    expect(named(["DAPI", "GFP", "RFP"])).toEqual(["channel GFP"]);
    for (const other of [["DAPI", "GFP"], "GFP", [1, 2, 3], ["", "", ""], 3])
      expect(named(other)).toEqual([""]);
  });

  it("lists the arrays that can color another array: those on the same voxels, at all times and positions", () => {
    const rho = of(["time", "z", "y", "x"], [5, 2, 3, 4], "rho");
    const mask = of(["z", "y", "x"], [2, 3, 4], "mask");
    const cells = of(["time", "channel", "z", "y", "x"], [5, 3, 2, 3, 4], "cells");
    const brief = of(["time", "channel", "z", "y", "x"], [4, 9, 2, 3, 4], "brief");
    const other = of(["z", "y", "x"], [2, 3, 5], "other");
    const shifted = {
      ...mask,
      levels: [
        {
          shape: [2, 3, 4],
          world_from_voxel: [
            [1, 0, 0, 1],
            [0, 1, 0, 0],
            [0, 0, 1, 0],
          ],
        },
      ],
    };
    const { arrays } = parse(rho, mask, cells, brief, other, shifted);
    const fitting = (shown: string) =>
      arrays.filter((a) => arrays.some((b) => b.name === shown && canColor(a, b))).map((a) => a.name);
    expect(fitting("rho")).toEqual(["mask", "cells"]);
    expect(fitting("cells")).toEqual(["rho", "mask"]);
    expect(fitting("brief")).toEqual(["rho", "mask"]);
    expect(fitting("other")).toEqual([]);
  });

  it("that is malformed causes an error with the place", () => {
    expect(() => parseDataset({ arrays: 3 })).toThrow("description");
    expect(() => parseDataset({ arrays: [{ name: "u", axes: [{}], levels: [{ shape: [1, 2] }] }] })).toThrow(
      "`u`",
    );
    expect(() => parseDataset({ arrays: [{ name: "u", axes: [], levels: [] }] })).toThrow("a level");
  });

  it("is thick along the world axes along which it has several voxels", () => {
    const flat = of(["z", "y", "x"], [1, 5, 6], "flat");
    const thick = (rows: number[][]) =>
      parse({ ...flat, levels: [{ shape: [1, 5, 6], world_from_voxel: rows }] }).arrays.map(isThick);
    const upright = [
      [2, 0, 0, 7],
      [0, 2, 0, 0],
      [0, 0, 3, 0],
    ];
    expect(thick(upright)).toEqual([[true, true, false]]);
    // A layer that stands upright in the world, up to rounding.
    const turned = [
      [2, 0, 0, 0],
      [0, 1e-16, -3, 0],
      [0, 2, 1e-16, 0],
    ];
    expect(thick(turned)).toEqual([[true, false, true]]);
    expect(isThick(rho)).toEqual([true, true, true]);
  });

  it("covers all voxels, including the outer halves of the outermost ones", () => {
    const box = worldBox(rho);
    expect(box?.center).toEqual([95.5, 79.5, 63.5]);
    expect(box?.diagonal).toBeCloseTo(Math.hypot(192, 160, 128), 9);
  });
});

describe("dates", () => {
  it.each([
    [0, "hours since 1900-01-01 00:00:0.0", "1900-01-01"],
    [36.5, "hours since 2024-02-28", "2024-02-29 12:30"],
    [1, "days since 1999-12-31", "2000-01-01"],
    [90, "minutes since 2024-03-01T06:00:00Z", "2024-03-01 07:30"],
    [86400, "seconds since 1970-1-1", "1970-01-02"],
    [2, "weeks since 1970-1-1", "1970-01-15"],
    [0, "days since 1999-12-31 12", "1999-12-31 12:00"],
    [10, "seconds since 2001-01-01", "2001-01-01 00:00:10"],
    [0.25, "seconds since 2001-01-01 00:00:00.5", "2001-01-01 00:00:00.750"],
    [1, "milliseconds since 2001-01-01", "2001-01-01 00:00:00.001"],
    [3, "microseconds since 2001-01-01", "2001-01-01 00:00:00.000003"],
    [-1, "us since 2001-01-01", "2000-12-31 23:59:59.999999"],
    [7, "nanoseconds since 2001-01-01", "2001-01-01 00:00:00.000000007"],
    [45000.1, "days since 1900-01-01", "2023-03-17 02:24"],
    [0, "hours since 2000-01-02 00:00:00 -05:30", "2000-01-02 05:30"],
    [0, "hours since 2000-01-02T00:00:00+0200", "2000-01-01 22:00"],
    [0, "hours since 2000-01-02 12:00 UTC", "2000-01-02 12:00"],
  ])("%d %s is %s", (value, units, expected) => {
    expect(cfDate(value, units)).toBe(expected);
  });

  it("are not made where they would be wrong", () => {
    expect(cfDate(1, "months since 2000-01-01")).toBeNull();
    expect(cfDate(1, "days since 0001-01-01")).toBeNull();
    expect(cfDate(3_000_000, "days since 2000-01-01")).toBeNull();
    expect(cfDate(1, "days since 2000-13-01")).toBeNull();
    expect(cfDate(1, "mm")).toBeNull();
    expect(cfDate(1, "constructor since 2000-01-01")).toBeNull();
    expect(cfDate(1, "days since 2000-01-01 00:00 EST")).toBeNull();
    expect(cfDate(Number.NaN, "days since 2000-01-01")).toBeNull();
    const axis = {
      name: "t",
      kind: "time",
      units: "days since 2000-01-01",
      coordinates: { kind: "explicit", values: [59] },
    } as const;
    expect(positionLabel(axis, 0)).toBe("2000-02-29");
    expect(positionLabel(axis, 0, "noleap")).toBe("2000-03-01");
    expect(positionLabel(axis, 5)).toBe("");
  });

  it("have as many parts as the step needs", () => {
    const axis = { name: "t", kind: "time", units: "hours since 2001-01-01" } as const;
    // A tenth of an hour in single precision is 1.4 ms late.
    const late = { kind: "explicit", values: [24, Math.fround(24.1), 24.2] } as const;
    expect(positionLabel({ ...axis, coordinates: late }, 1)).toBe("2001-01-02 00:06");
    const coordinates = { kind: "regular", origin: 0, step: 10 } as const;
    const seconds = { ...axis, units: "seconds since 2001-01-01", coordinates };
    expect([0, 1, 6].map((index) => positionLabel(seconds, index))).toEqual([
      "2001-01-01",
      "2001-01-01 00:00:10",
      "2001-01-01 00:01",
    ]);
  });
});

describe("words", () => {
  it("are short", () => {
    expect(formatShape([161, 94, 103])).toBe("161 × 94 × 103");
    expect([0, 1234.5678, 1e-7, 2.5e9, -0.25].map(formatNumber)).toEqual([
      "0",
      "1234.6",
      "1.00e-7",
      "2.50e9",
      "-0.25",
    ]);
    expect([101_325, 5_412_345.5, 1e-7, 0.1 + 0.2, -0, Math.fround(45.1)].map((n) => formatPlace(n))).toEqual(
      ["101325", "5412345.5", "1e-7", "0.3", "0", "45.1"],
    );
    expect(["<f4", ">u2", "i8", "bool"].map(formatType)).toEqual(["float32", "uint16", "int64", "bool"]);
    expect(["kg m-3", "m^2", "m**-1 s", "CO2"].map(formatUnits)).toEqual(["kg m⁻³", "m²", "m⁻¹ s", "CO2"]);
    expect(["micrometer", "degrees_north", "degree_east", "micrometers per pixel"].map(formatUnits)).toEqual([
      "µm",
      "°N",
      "°E",
      "micrometers per pixel",
    ]);
  });
});

describe("statistics", () => {
  it("are requested at a level that is cheap to read, at one time", () => {
    expect(statsLevel(rho, 0)).toBe(0);
    const huge = {
      ...rho,
      fileLevels: rho.levels.map((level, i) => ({ ...level, shape: level.shape.map((n) => n << (4 - i)) })),
    };
    expect(statsLevel(huge, 0)).toBeGreaterThan(0);
    expect(statsRanges(rho, 1, 7, {})).toEqual([
      { start: 7, count: 1, step: 1 },
      { start: 0, count: 64, step: 1 },
      { start: 0, count: 80, step: 1 },
      { start: 0, count: 96, step: 1 },
    ]);
    expect(statsRanges(rho, 0, 9999, {})[0]).toEqual({ start: 23, count: 1, step: 1 });
  });

  it("cover everything that is drawn, also a series in time", () => {
    const axes = [{ name: "time", kind: "time" }];
    const line = parseDataset({ arrays: [{ name: "time", axes, levels: [{ shape: [12] }] }] }).arrays[0];
    if (!line) throw new Error("expected an array");
    expect(statsRanges(line, 0, 7, {})).toEqual([{ start: 0, count: 12, step: 1 }]);
    expect(positionKey(line, { time: 3, at: {} })).toBe(positionKey(line, { time: 4, at: {} }));
  });

  it("belong to one time step and one channel", () => {
    const key = (time: number, at: Record<string, number>) => positionKey(rho, { time, at });
    expect(key(3, {})).not.toBe(key(4, {}));
    expect(key(3, {})).toBe(key(3, { x: 5 }));
    const channels = {
      ...rho,
      axes: rho.axes.map((axis, i) => (i === 0 ? { ...axis, name: "c", kind: "channel" as const } : axis)),
    };
    expect(positionKey(channels, { time: 0, at: { c: 1 } })).not.toBe(
      positionKey(channels, { time: 0, at: { c: 2 } }),
    );
    expect(positionKey(channels, { time: 0, at: {} })).toBe(positionKey(channels, { time: 9, at: { c: 0 } }));
  });

  it("that are malformed are rejected", () => {
    expect(() => parseStats({ histogram: { low: 0, high: 1, counts: [1.5] } })).toThrow("whole counts");
    expect(() => parseStats({})).toThrow("histogram");
  });
});
