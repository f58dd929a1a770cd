//! Scales, percentiles, presets by kind of data and files of transfer functions.

import { describe, expect, it } from "vitest";

import { clipRanges } from "../dataset/clip-ranges.ts";
import { parseDataset } from "../dataset/dataset.ts";
import { statsKey, statsRanges } from "../dataset/stats.ts";
import { parseJson } from "../json.ts";
import { parseView } from "../view/parse.ts";
import { VALUE_SCALES, type Transfer } from "../view/schema.ts";
import { findColormap, mapDirection, type Colormap } from "./colormap.ts";
import { applyDataPreset, backgroundBorder, DATA_PRESETS, presetsFor } from "./data-presets.ts";
import {
  binned,
  outside,
  outsideText,
  quantile,
  quantilesOf,
  rangeBetween,
  symmetricRange,
} from "./distribution.ts";
import { addBeside, moveRange, opacityAt, setPoint, spreadOver } from "./edit.ts";
import { fileName, fromFile, toFile } from "./file.ts";
import { InFlight, LONGEST_WAIT_MILLIS } from "./in-flight.ts";
import { nextIsovalue } from "./isovalue.ts";
import { domainOf, fractionOf, valueAt } from "./scale.ts";
import { between, position, rescaled, scaleOf, scaleOver, shareBetween, valueOf } from "./value-scale.ts";

const LINEAR: Transfer = {
  range: [0, 100],
  map: "gray",
  opacity: [
    [0, 0],
    [50, 0.5],
    [100, 1],
  ],
};
const LOG: Transfer = {
  range: [1e-28, 1e-20],
  map: "gray",
  scale: "log",
  opacity: [
    [1e-28, 0],
    [1e-20, 1],
  ],
};

describe("scales", () => {
  it("have an inverse and rise", () => {
    for (const scale of VALUE_SCALES) {
      for (const range of [[1e-28, 1e-20] as const, [0.5, 2] as const]) {
        const own = scaleOver(scale, range);
        let last = -Infinity;
        for (let i = 0; i <= 100; i++) {
          const value = between(own, range[0], range[1], i / 100);
          expect(shareBetween(own, range[0], range[1], value)).toBeCloseTo(i / 100, 8);
          expect(valueOf(own, position(own, value)) / value).toBeCloseTo(1, 9);
          expect(value).toBeGreaterThan(last);
          last = value;
        }
      }
    }
  });

  it("place zero in the middle of a symmetric one, and nothing without a logarithm", () => {
    const symmetric = scaleOver("symlog", [-1000, 1000]);
    expect(shareBetween(symmetric, -1000, 1000, 0)).toBeCloseTo(0.5, 12);
    expect(position(symmetric, 1000)).toBeCloseTo(Math.log2(1001), 12);
    expect(position(scaleOver("log", [1, 10]), 0)).toBe(-Infinity);
  });

  it("are those of the editor's plot", () => {
    const domain = domainOf(LOG.range, { low: -5, high: 1e-18 }, scaleOf(LOG));
    expect([domain.low, domain.high]).toEqual([1e-28, 1e-18]);
    expect(fractionOf(domain, 1e-23)).toBeCloseTo(0.5, 9);
    expect(valueAt(domain, 0.5) / 1e-23).toBeCloseTo(1, 9);
  });

  it("determine the opacity between points and new points", () => {
    const own = scaleOf(LOG);
    expect(opacityAt(LOG.opacity, 1e-24, own)).toBeCloseTo(0.5, 9);
    expect(opacityAt(LOG.opacity, 0, own)).toBe(0);
    expect((addBeside(LOG, 0).transfer.opacity[1]?.[0] ?? 0) / 1e-24).toBeCloseTo(1, 9);
    expect(moveRange(LOG, "low", -1, 0)).toBe(LOG);
  });

  it("keep the places of points when they change", () => {
    const log = rescaled({ ...LINEAR, range: [0, 100] }, "log", 0.01);
    expect(log.range).toEqual([0.01, 100]);
    expect(log.opacity[1]?.[0]).toBeCloseTo(1, 9);
    expect(rescaled(log, "linear", null).opacity[1]?.[0]).toBeCloseTo(50.005, 9);
    expect(rescaled({ ...LINEAR, range: [-5, 0] }, "log", null).scale).toBeUndefined();
    expect(spreadOver(log, [1, 10000]).opacity[1]?.[0]).toBeCloseTo(100, 6);
    expect(spreadOver(log, [-1, 1]).scale).toBe("linear");
  });

  it("of a view are read, and refused where they do not fit", () => {
    const read = (transfer: object) => parseView(parseJson(JSON.stringify({ transfer }))).patch.transfer;
    expect(read({ ...LOG, reversed: true })).toEqual({ ...LOG, reversed: true });
    expect(read(LINEAR)).toEqual(LINEAR);
    expect(read({ ...LINEAR, scale: "log" })).toBeUndefined();
    expect(read({ ...LINEAR, scale: "ln" })).toBeUndefined();
  });
});

describe("distributions", () => {
  const pairs = quantilesOf({ low: 0, high: 100, counts: [90, 0, 0, 0, 0, 0, 0, 0, 0, 10] });
  it("give percentiles and what lies outside of a range", () => {
    expect(quantile(pairs, 0.45)).toBeCloseTo(5, 9);
    expect(quantile(pairs, 0.95)).toBeCloseTo(95, 9);
    expect(rangeBetween(pairs, [0, 1])).toEqual([0, 100]);
    expect(rangeBetween([], [0, 1])).toBeNull();
    const [below, above] = outside(pairs, [5, 95]);
    expect(below).toBeCloseTo(0.45, 9);
    expect(above).toBeCloseTo(0.05, 9);
    expect(outsideText([below, above])).toBe("Outside the range: 45 % below, 5.0 % above.");
    expect(outsideText([0, 0])).toBe("");
  });

  it("have a range that is symmetric about zero", () => {
    const signed = quantilesOf({ low: -20, high: 80, counts: [1, 1, 1, 1, 1] });
    const [low, high] = symmetricRange(signed, 0) ?? [0, 0];
    expect([low, high]).toEqual([-80, 80]);
    expect(symmetricRange([])).toBeNull();
  });

  it("are counted in bins of any scale", () => {
    const own = scaleOver("log", [1, 1e6]);
    const powers = Array.from({ length: 7 }, (_, i): [number, number] => [i / 6, 10 ** i]);
    const counts = binned(powers, own, 1, 1e6);
    expect(counts.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
    expect(Math.max(...counts) / Math.min(...counts)).toBeLessThan(1.01);
    expect(binned(powers, own, 0, 1)).toEqual([]);
  });
});

describe("presets by kind of data", () => {
  const pairs = quantilesOf({ low: 0, high: 1000, counts: [800, 0, 0, 0, 50, 50, 50, 50, 0, 0] });
  it.each(DATA_PRESETS.map((preset) => [preset.name, preset] as const))(
    "%s is a legal function",
    (_, preset) => {
      for (const known of [pairs, []]) {
        const transfer = applyDataPreset(LINEAR, preset, known, 256);
        const values = transfer.opacity.map((point) => point[0]);
        expect(values).toEqual([...values].sort((a, b) => a - b));
        expect(transfer.opacity.every((point) => point[1] >= 0 && point[1] <= 1)).toBe(true);
        expect(transfer.range[0]).toBeLessThan(transfer.range[1]);
      }
    },
  );

  it("are offered first for their kind, and hide the background", () => {
    expect(presetsFor("mr")[0]?.name).toBe("mr");
    expect(presetsFor("").length).toBe(DATA_PRESETS.length);
    const border = backgroundBorder(pairs) ?? 0;
    expect(border).toBeGreaterThan(90);
    expect(border).toBeLessThan(410);
    expect(backgroundBorder([])).toBeNull();
  });
});

describe("files", () => {
  it("hold what was saved", () => {
    expect(fromFile(toFile(LOG))).toEqual(LOG);
    expect(fromFile(JSON.stringify({ v: 1, transfer: LINEAR }))).toEqual(LINEAR);
    expect(fileName("grid/rho 1")).toBe("grid-rho-1.tf.json");
    expect(fileName("")).toBe("transfer.tf.json");
  });

  it("are refused with what is missing", () => {
    expect(() => fromFile("{")).toThrow("not JSON");
    expect(() => fromFile('{"range": [0, 1]}')).toThrow("`opacity`");
  });
});

describe("points as numbers", () => {
  it("are sorted again", () => {
    const { transfer, index } = setPoint(LINEAR, 0, 70, 0.2);
    expect(index).toBe(1);
    expect(transfer.opacity).toEqual([
      [50, 0.5],
      [70, 0.2],
      [100, 1],
    ]);
    expect(setPoint(LINEAR, 9, 1, 1).transfer).toBe(LINEAR);
    expect(setPoint(LINEAR, 0, Number.NaN, 1).transfer).toBe(LINEAR);
  });
});

describe("new isosurfaces", () => {
  it("have values that differ, in the widest gap", () => {
    const values: number[] = [];
    for (let i = 0; i < 20; i++) values.push(nextIsovalue(LINEAR, values));
    expect(values.slice(0, 3)).toEqual([50, 75, 25]);
    expect(new Set(values).size).toBe(20);
    expect(nextIsovalue(LOG, []) / 1e-24).toBeCloseTo(1, 9);
  });
});

describe("changes in flight", () => {
  it("are sent one at a time, the newest last", () => {
    const flight = new InFlight<number>();
    expect(flight.offer(1, 0)).toBe(1);
    expect(flight.offer(2, 10)).toBeNull();
    expect(flight.offer(3, 20)).toBeNull();
    expect(flight.shown(30)).toBe(3);
    expect(flight.offer(4, 40)).toBeNull();
    expect(flight.offer(5, 30 + LONGEST_WAIT_MILLIS)).toBe(5);
    expect(flight.shown(200)).toBeNull();
    expect(flight.offer(6, 201)).toBe(6);
    expect(flight.offer(7, 202)).toBeNull();
    expect(flight.take()).toBe(7);
    expect(flight.take()).toBeNull();
  });
});

describe("color maps", () => {
  it("are reversed by name, by member, and not by both", () => {
    const table: Colormap = Uint8Array.from({ length: 768 }, (_, i) => Math.floor(i / 3));
    const maps = new Map([["gray", table]]);
    const first = (map: string, reversed?: boolean) =>
      findColormap(maps, reversed === undefined ? { map } : { map, reversed })?.[0];
    expect([first("gray"), first("gray_r"), first("gray", true), first("gray_r", true)]).toEqual([
      0, 255, 255, 0,
    ]);
    expect(first("jet")).toBeUndefined();
    expect(mapDirection("a_r")).toEqual({ base: "a", isReversed: true });
  });
});

describe("statistics of a clip box", () => {
  const array = (worldFromVoxel: number[][]) => {
    const axes = ["t", "z", "y", "x"].map((name) => ({ name, kind: name === "t" ? "time" : name }));
    const level = { shape: [5, 10, 20, 40], world_from_voxel: worldFromVoxel };
    const found = parseDataset({ arrays: [{ name: "a", axes, levels: [level] }] }).arrays[0];
    if (!found) throw new Error("an array");
    return found;
  };
  const clip = [
    [0.25, 0, 0.5],
    [0.5, 1, 1],
  ] as const;
  const straight = [
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
  ];

  it("are those of the voxels in the box", () => {
    const own = array(straight);
    const ranges = clipRanges(own, statsRanges(own, 0, 2, {}), clip);
    expect(ranges.map(({ start, count }) => [start, count])).toEqual([
      [2, 1],
      [5, 5],
      [0, 20],
      [10, 10],
    ]);
    const turned = array([[-1, 0, 0, 0], straight[1] ?? [], straight[2] ?? []]);
    expect(clipRanges(turned, statsRanges(turned, 0, 0, {}), clip)[3]).toMatchObject({
      start: 20,
      count: 10,
    });
  });

  it("are told apart by the box, and are of all where voxels are rotated", () => {
    const own = array(straight);
    const view = { time: 0, at: {}, clip };
    expect(statsKey(own, view)).not.toBe(statsKey(own, { ...view, clip: null }));
    const rotated = array([[0.8, -0.6, 0, 0], [0.6, 0.8, 0, 0], straight[2] ?? []]);
    expect(statsKey(rotated, view)).toBe(statsKey(rotated, { ...view, clip: null }));
    const ranges = statsRanges(rotated, 0, 0, {});
    expect(clipRanges(rotated, ranges, clip)).toEqual(ranges);
  });
});
