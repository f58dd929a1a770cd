//! Editing transfer functions.

import { describe, expect, it } from "vitest";

import { INITIAL_STATE, fullRange, type ArrayStats } from "../app/state.ts";
import { parseDataset } from "../dataset/dataset.ts";
import type { Transfer } from "../view/schema.ts";
import { cssColor, cssGradient, parseColormaps } from "./colormap.ts";
import {
  addBeside,
  addPoint,
  applyPreset,
  movePoint,
  moveRange,
  nudgePoint,
  OPAQUE,
  opacityAt,
  PRESETS,
  removePoint,
  isAnythingVisible,
} from "./edit.ts";
import { typedEnd } from "../ui/transfer/range.ts";
import { alphaAt, domainOf, fractionOf, heightOf, logHeights, valueAt } from "./scale.ts";

const TRANSFER: Transfer = {
  range: [0, 100],
  map: "gray",
  opacity: [
    [0, 0],
    [50, 0.5],
    [100, 1],
  ],
};

describe("opacity", () => {
  it("is linear between points, constant beyond them, and continuous from the right at a step", () => {
    expect([-5, 0, 25, 75, 100, 500].map((v) => opacityAt(TRANSFER.opacity, v))).toEqual([
      0, 0, 0.25, 0.75, 1, 1,
    ]);
    expect(
      opacityAt(
        [
          [0, 0],
          [10, 0],
          [10, 1],
          [20, 1],
        ],
        10,
      ),
    ).toBe(1);
    expect(opacityAt([[3, 0.4]], -100)).toBe(0.4);
    expect(opacityAt([], 1)).toBe(0);
  });
});

describe("points", () => {
  it("stay sorted and within bounds when moved", () => {
    expect(movePoint(TRANSFER, 1, 900, 3).opacity[1]).toEqual([100, 1]);
    expect(movePoint(TRANSFER, 1, -900, -3).opacity[1]).toEqual([0, 0]);
    expect(movePoint(TRANSFER, 9, 1, 1)).toBe(TRANSFER);
  });

  it("are moved by steps on the scale of the editor", () => {
    expect(nudgePoint(TRANSFER, 2, -10, -0.5).opacity[2]).toEqual([90, 0.25]);
    expect(nudgePoint(TRANSFER, 1, 0, -5).opacity[1]).toEqual([50, 0]);
    expect(nudgePoint(TRANSFER, 7, 0, 1)).toBe(TRANSFER);
  });

  it("are inserted in order, up to a limit", () => {
    const { transfer, index } = addPoint(TRANSFER, 70, 0.1);
    expect(index).toBe(2);
    expect(transfer.opacity.map((point) => point[0])).toEqual([0, 50, 70, 100]);
    let full = TRANSFER;
    for (let i = 0; i < 400; i++) full = addPoint(full, i % 100, 0.5).transfer;
    expect(full.opacity).toHaveLength(256);
    expect(addPoint(full, 1, 1).index).toBe(-1);
  });

  it("are added halfway to the next one, from the last one to the one before", () => {
    expect(addBeside(TRANSFER, 0).transfer.opacity[1]).toEqual([25, 0.25]);
    expect(addBeside(TRANSFER, 2)).toMatchObject({ index: 2 });
    expect(addBeside(TRANSFER, 2).transfer.opacity[2]).toEqual([75, 0.75]);
    expect(addBeside(TRANSFER, 7)).toEqual({ transfer: TRANSFER, index: -1 });
  });

  it("are removed down to two", () => {
    const two = removePoint(TRANSFER, 1);
    expect(two.opacity).toEqual([
      [0, 0],
      [100, 1],
    ]);
    expect(removePoint(two, 0)).toBe(two);
  });
});

describe("range", () => {
  it("always has its minimum below its maximum", () => {
    expect(moveRange(TRANSFER, "low", 500, 100).range).toEqual([99.9, 100]);
    expect(moveRange(TRANSFER, "high", -500, 100).range).toEqual([0, 0.1]);
    expect(moveRange(TRANSFER, "low", -20, 100).range).toEqual([-20, 100]);
  });
});

describe("the full range", () => {
  const array = (meaning: string) => {
    const axes = ["y", "x"].map((kind) => ({ name: kind, kind }));
    return (
      parseDataset({ arrays: [{ name: "a", meaning, axes, levels: [{ shape: [5, 6] }] }] }).arrays[0] ?? null
    );
  };
  const histogram = { low: 0, high: 9, counts: [1] };
  const known = (min: number, max: number): ArrayStats => ({
    array: "a",
    level: 0,
    position: "",
    stats: { count: 9, missing: 0, min, max, mean: 5, histogram },
  });

  it("is that of the values, and of colors from nothing to full strength", () => {
    const amounts = { ...INITIAL_STATE, array: array("intensity") };
    expect(fullRange(amounts)).toBeNull();
    expect(fullRange({ ...amounts, stats: known(-3, 8) })).toEqual([-3, 8]);
    expect(fullRange({ ...amounts, stats: known(4, 4) })).toBeNull();
    expect(fullRange({ ...INITIAL_STATE, array: array("colors") })).toEqual([0, 255]);
  });
});

describe("presets", () => {
  it.each([...PRESETS, { name: "Opaque", shape: OPAQUE }].map((preset) => [preset.name, preset] as const))(
    "%s is a legal curve over the range",
    (_, { shape }) => {
      const { opacity } = applyPreset({ ...TRANSFER, range: [-7, 3] }, shape);
      const values = opacity.map((point) => point[0]);
      expect(values).toEqual([...values].sort((a, b) => a - b));
      expect([Math.min(...values), Math.max(...values)]).toEqual([-7, 3]);
      expect(opacity.every((point) => point[1] >= 0 && point[1] <= 1)).toBe(true);
    },
  );
});

describe("visible values", () => {
  const histogram = { low: 0, high: 100, counts: [5, 0, 0, 0, 0, 0, 0, 0, 0, 0] };
  it("depend on the values that occur", () => {
    const high: Transfer = {
      ...TRANSFER,
      opacity: [
        [0, 0],
        [60, 0],
        [100, 1],
      ],
    };
    expect(isAnythingVisible(high, null)).toBe(true);
    expect(isAnythingVisible(high, histogram)).toBe(false);
    expect(
      isAnythingVisible(
        {
          ...high,
          opacity: [
            [0, 0],
            [5, 1],
            [9, 0],
          ],
        },
        histogram,
      ),
    ).toBe(true);
    expect(
      isAnythingVisible(
        {
          ...high,
          opacity: [
            [0, 0],
            [100, 0],
          ],
        },
        null,
      ),
    ).toBe(false);
  });
});

describe("scale", () => {
  it("has an inverse", () => {
    const domain = domainOf([10, 20], { low: -5, high: 12 });
    expect(domain).toMatchObject({ low: -5, high: 20 });
    expect(valueAt(domain, fractionOf(domain, 7))).toBeCloseTo(7, 12);
    expect(alphaAt(heightOf(0.03))).toBeCloseTo(0.03, 12);
    expect(domainOf([3, 3], null).high).toBeGreaterThan(3);
  });

  it("draws rare values too", () => {
    const [rare = 0, none, most] = logHeights([1, 0, 1_000_000]);
    expect(most).toBe(1);
    expect(none).toBe(0);
    expect(rare).toBeGreaterThan(0.04);
    expect(logHeights([0, 0])).toEqual([0, 0]);
  });
});

describe("color maps", () => {
  it("are read from base64, except malformed ones", () => {
    const table = Uint8Array.from({ length: 768 }, (_, i) => i % 256);
    const maps = parseColormaps({
      good: Buffer.from(table).toString("base64"),
      short: "AAAA",
      bad: "%%",
      odd: 3,
    });
    expect([...maps.keys()]).toEqual(["good"]);
    expect(cssColor(maps.get("good"), 1)).toBe(`rgb(${table[765]} ${table[766]} ${table[767]})`);
    expect(cssGradient(undefined, 3).match(/rgb/g)).toHaveLength(3);
    expect(parseColormaps(null).size).toBe(0);
  });
});

describe("typed ends of a range", () => {
  it("stay exact where they were not typed", () => {
    const exact = 0.12345678901;
    expect(typedEnd("0.123456789", exact)).toBe(exact);
    expect(typedEnd("101325", exact)).toBe(101_325);
    expect([typedEnd(" ", 0), typedEnd("x", 0)]).toEqual([Number.NaN, Number.NaN]);
  });
});
