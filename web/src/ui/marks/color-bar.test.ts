//! Color bars and legends.

import { describe, expect, it } from "vitest";

import { parseDataset, type Dataset } from "../../dataset/dataset.ts";
import type { JsonObject } from "../../json.ts";
import { EMPTY_VIEW, type Layer, type View } from "../../view/schema.ts";
import {
  barTicks,
  colorKey,
  colorMarks,
  labelCounts,
  layerKey,
  shareOf,
  type ColorKey,
} from "./color-bar.ts";
import { Layout } from "./layout.ts";
import { labelColor } from "./label-color.ts";

function dataset(attributes: object, rest: object = {}): Dataset {
  const axes = ["z", "y", "x"].map((kind) => ({ name: kind, kind }));
  const array = { name: "a", dtype: "|u1", axes, levels: [{ shape: [4, 5, 6] }], attributes, ...rest };
  return parseDataset({ name: "d", arrays: [JSON.parse(JSON.stringify(array))] });
}

function keyOf(data: Dataset, view: Partial<View> = {}, counts: readonly number[] = []): ColorKey | null {
  const [array] = data.arrays;
  if (!array) throw new Error("expected an array");
  const histogram = { low: 0, high: counts.length - 1, counts };
  const stats =
    counts.length > 0 ? { count: 9, missing: 0, min: 0, max: counts.length - 1, mean: 1, histogram } : null;
  const table = Uint8Array.from({ length: 768 }, (_, i) => i % 256);
  return colorKey(data, array, { ...EMPTY_VIEW, ...view }, stats, new Map([["labels", table]]));
}

const SIZE = { width: 800, height: 600 };
const TRANSFER = { range: [1, 1000], map: "viridis", opacity: [] } as const;

describe("the key of layers", () => {
  const axes = ["z", "y", "x"].map((kind) => ({ name: kind, kind }));
  const array = (name: string, more: JsonObject = {}) => ({
    name,
    axes,
    levels: [{ shape: [4, 5, 6] }],
    ...more,
  });
  const flags = { flag_values: [1, 2], flag_meanings: "land sea" };
  const arrays = [
    array("temp", { units: "K" }),
    array("mask", { meaning: "labels", attributes: flags }),
    array("plain"),
  ];
  const data = parseDataset({ name: "d", arrays });
  const maps = new Map([["labels", new Uint8Array(768)]]);
  const titles = (layers: readonly Layer[]) => layerKey(data, layers, maps)?.title ?? null;
  const temp: Layer = { array: "temp", transfer: { ...TRANSFER, map: "magma" } };

  it("is that of the topmost visible one with colors for values", () => {
    expect(layerKey(data, [temp], maps)).toMatchObject({ kind: "bar", title: "temp (K)", map: "magma" });
    expect(layerKey(data, [temp, { array: "mask" }], maps)).toMatchObject({
      kind: "legend",
      rows: [{ text: "land" }, { text: "sea" }],
    });
    expect(titles([temp, { array: "mask", visible: false }])).toBe("temp (K)");
    expect(titles([temp, { array: "mask", opacity: 0 }])).toBe("temp (K)");
    expect(titles([temp, { geometry: "a.ply" }])).toBe("temp (K)");
    expect(titles([temp, { geometry: "a.ply", by: "radius", transfer: TRANSFER }])).toBe("radius");
    expect(titles([{ array: "plain" }])).toBeNull();
    expect(titles([])).toBeNull();
  });
});

describe("color bar", () => {
  it("has the long name and units, and the ticks of its scale", () => {
    const data = dataset({ long_name: "density" }, { units: "kg m-3" });
    const linear = keyOf(data, { transfer: TRANSFER });
    expect(linear).toMatchObject({ kind: "bar", title: "density (kg m⁻³)", scale: "linear" });
    if (linear?.kind !== "bar") throw new Error("expected a bar");
    expect(barTicks(linear, 200, 40).map(({ text }) => text)).toEqual(["200", "400", "600", "800", "1000"]);
    expect(shareOf(linear, 500.5)).toBeCloseTo(0.5, 9);
    const scaled = { ...TRANSFER, scale: "log" } as const;
    const log = keyOf(data, { transfer: scaled });
    if (log?.kind !== "bar") throw new Error("expected a bar");
    expect(barTicks(log, 130, 40).map(({ text }) => text)).toEqual(["1", "10", "100", "1000"]);
    expect(shareOf(log, 10)).toBeCloseTo(1 / 3, 9);
    const both = { ...TRANSFER, range: [-1000, 1000] as const, scale: "symlog" } as const;
    const symlog = keyOf(data, { transfer: both });
    if (symlog?.kind !== "bar") throw new Error("expected a bar");
    expect(barTicks(symlog, 200, 40).map(({ text }) => text)).toEqual(["−100", "−1", "0", "1", "100"]);
    expect(shareOf(symlog, 0)).toBeCloseTo(0.5, 9);
    expect(shareOf(symlog, 10)).toBeCloseTo(0.5 + 0.5 * (Math.log1p(10) / Math.log1p(1000)), 9);
  });

  it("has the colors of a map in the direction of use", () => {
    const gray = Uint8Array.from({ length: 768 }, (_, i) => Math.floor(i / 3));
    const first = (map: string, reversed: boolean) => {
      const key = keyOf(dataset({}), { transfer: { ...TRANSFER, map, reversed } });
      const shapes = key
        ? colorMarks(key, new Map([["gray", gray]]), new Layout(SIZE, [], []), (text) => 6 * text.length)
        : [];
      return shapes.flatMap((shape) => (shape.kind === "ramp" ? [shape.colors[0]] : []));
    };
    expect(first("gray", false)).toEqual(["rgb(0 0 0)"]);
    expect(first("gray", true)).toEqual(["rgb(255 255 255)"]);
    expect(first("gray_r", false)).toEqual(["rgb(255 255 255)"]);
  });

  it("is missing where colors have no values, and tells surfaces instead", () => {
    const surfaces = [{ value: 0.5, color: [1, 2, 3], opacity: 1 }] as const;
    expect(keyOf(dataset({}), { transfer: TRANSFER, mode: "surfaces" })).toBeNull();
    expect(
      keyOf(dataset({}, { units: "K" }), { transfer: TRANSFER, mode: "surfaces", surfaces }),
    ).toMatchObject({
      rows: [{ color: "rgb(1 2 3)", text: "0.5 K" }],
    });
  });
});

describe("legend", () => {
  it("has the names of labels, most common first, and leaves out those that do not occur", () => {
    const flags = {
      flag_values: { type: "int8", value: [1, 2, 3] },
      flag_meanings: "sea_ice open_water land",
    };
    const data = dataset(flags, { meaning: "labels" });
    const key = keyOf(data, {}, [50, 3, 0, 9]);
    expect(key).toMatchObject({ kind: "legend", rows: [{ text: "land" }, { text: "sea ice" }], left: 0 });
    expect(keyOf(data)).toMatchObject({
      rows: [{ text: "sea ice" }, { text: "open water" }, { text: "land" }],
    });
  });

  it("has at most twelve entries and counts the others", () => {
    const many = Array.from({ length: 40 }, (_, i) => i + 1);
    const data = dataset(
      { flag_values: many, flag_meanings: many.map((n) => `l${n}`).join(" ") },
      { meaning: "labels" },
    );
    const key = keyOf(data);
    expect(key?.kind === "legend" && [key.rows.length, key.left]).toEqual([12, 28]);
  });

  it("without names lists the labels that occur", () => {
    expect(keyOf(dataset({}, { meaning: "labels" }), {}, [9, 1, 0, 4])).toMatchObject({
      rows: [{ text: "3" }, { text: "1" }],
    });
    const coarse = {
      count: 1,
      missing: 0,
      min: 0,
      max: 5000,
      mean: 1,
      histogram: { low: 0, high: 5000, counts: [1, 2] },
    };
    expect(labelCounts(coarse)).toBeNull();
  });

  it("has the channels of an image with their colors", () => {
    const omero = {
      channels: [
        { label: "DAPI", color: "0000FF" },
        { label: "GFP", color: "00FF00", active: false },
        { label: "", color: "FF0000" },
      ],
    };
    const source = dataset({ omero: { type: "json", value: omero } });
    const colors = { ...dataset({}, { name: "a (color)", meaning: "colors" }).arrays[0] };
    const [array] = source.arrays;
    if (!array || colors.name === undefined) throw new Error("expected arrays");
    const drawn = { ...array, ...colors };
    const data = { ...source, arrays: [array, drawn] };
    expect(colorKey(data, drawn, EMPTY_VIEW, null, new Map())).toMatchObject({
      rows: [
        { color: "rgb(0 0 255)", text: "DAPI" },
        { color: "rgb(255 0 0)", text: "channel 2" },
      ],
    });
  });

  it("has the node's colors of labels beyond the table", () => {
    // render::label_color(300), label_color(65_536), signed_label_color(-1).
    expect([300, 65_536, -1].map((label) => labelColor(label, undefined))).toEqual(NODE_COLORS);
    expect(labelColor(2 ** 40, undefined)).toBeNull();
  });
});

const NODE_COLORS = ["rgb(98 145 204)", "rgb(55 40 235)", "rgb(86 210 217)"];
