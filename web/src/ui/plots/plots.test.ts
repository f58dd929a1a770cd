import { describe, expect, it } from "vitest";

import { Calls } from "../../app/calls.ts";
import { parseDataset, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import type { Json } from "../../json.ts";
import type { ToWorker } from "../../worker/messages.ts";
import { ticksAlong } from "./chart.ts";
import { areOfOnePart, columnsCsv, parseColumns, type PlotColumns } from "./columns.ts";
import { byUnits, linesBeside, placesIn } from "./lines.ts";
import { LineRequests } from "./requests.ts";
import {
  across,
  columnAt,
  indicesIn,
  lineAxis,
  panned,
  pathOf,
  valueRange,
  wholeWindow,
  zoomed,
} from "./scale.ts";

const TIMES = [0, 31, 59, 90, 120, 151];

function dataset(): Dataset {
  const time = {
    name: "time",
    kind: "time",
    units: "days since 2001-01-01",
    coordinates: { explicit: TIMES },
  };
  const line = (name: string, units: string): Json => ({
    name,
    dtype: "<f4",
    axes: [time],
    levels: [{ shape: [6] }],
    units,
  });
  const field = {
    name: "map",
    dtype: "<f4",
    axes: [
      { name: "y", kind: "y" },
      { name: "x", kind: "x" },
    ],
    levels: [{ shape: [6, 6] }],
  };
  const member = {
    name: "runs",
    dtype: "<f4",
    axes: [
      { name: "member", kind: "other" },
      { name: "x", kind: "x" },
    ],
    levels: [{ shape: [3, 6] }],
  };
  const arrays = [
    line("time", "days since 2001-01-01"),
    line("level", "m"),
    line("tide", "m"),
    line("heat", "K"),
    field,
    member,
  ];
  return parseDataset({ name: "gauge", arrays });
}

function named(data: Dataset, name: string): ArrayInfo {
  const found = data.arrays.find((array) => array.name === name);
  if (!found) throw new Error(`expected ${name}`);
  return found;
}

function line(data: Dataset, name: string) {
  const found = lineAxis(named(data, name));
  if (!found) throw new Error("expected a line");
  return found;
}

function columns(low: readonly (number | null)[], fields: Partial<PlotColumns> = {}): PlotColumns {
  return {
    array: "level",
    units: "m",
    axis: "time",
    axisUnits: "days since 2001-01-01",
    axisNumber: 0,
    index: [0],
    size: 6,
    count: low.length,
    perColumn: 1,
    coordinate: TIMES.slice(0, low.length),
    text: low.map(() => null),
    low,
    high: low,
    missing: low.map((value) => (value === null ? 1 : 0)),
    stored: low.map(String),
    ...fields,
  };
}

describe("lines of a data set", () => {
  it("are those along the same axis, without its coordinates, in groups of a unit", () => {
    const data = dataset();
    const beside = linesBeside(data, named(data, "level"));
    expect(beside.map(({ name }) => name)).toEqual(["level", "tide", "heat"]);
    expect(byUnits(beside).map(({ units, lines }) => [units, lines.length])).toEqual([
      ["m", 2],
      ["K", 1],
    ]);
    expect(linesBeside(data, named(data, "map"))).toEqual([]);
    expect(placesIn(named(data, "runs"), { time: 9, at: { member: 7, other: 1 } })).toEqual({
      time: 0,
      at: { member: 2 },
    });
  });
});

describe("scales of plots", () => {
  it("zoom about a place, pan, and stay within the axis", () => {
    const own = line(dataset(), "level");
    const whole = wholeWindow(own);
    expect(whole).toEqual([0, 151]);
    const half = zoomed(own, whole, 0.8, 1);
    expect(half[1]).toBeCloseTo(151, 9);
    expect(half[0]).toBeCloseTo(0.2 * 151, 9);
    expect(zoomed(own, half, 9, 0.5)).toEqual(whole);
    // Never fewer than four of the five steps here.
    expect(zoomed(own, whole, 1e-6, 0.5)[1] - zoomed(own, whole, 1e-6, 0.5)[0]).toBeCloseTo(0.8 * 151, 9);
    expect(panned(own, half, 5)[1]).toBeCloseTo(151, 9);
    expect(panned(own, half, -5)[0]).toBe(0);
    expect(indicesIn(own, [60, 100])).toEqual({ from: 1, count: 5 });
  });

  it("draw values at their coordinates, with gaps, and extremes of shared columns", () => {
    const own = line(dataset(), "level");
    const box = { left: 0, top: 0, right: 151, bottom: 100 };
    const path = (data: PlotColumns) => pathOf(own, data, box, [0, 151], [0, 10]);
    expect(path(columns([0, 10, null, 5]))).toBe("M0.00 100.00L31.00 0.00M90.00 50.00h0.01");
    const shared = columns([1, 2], { high: [9, 3], perColumn: 3, index: [0] });
    expect(path(shared)).toBe("M31.00 90.00V10.00L120.00 80.00V70.00");
    expect(valueRange(own, [0, 151], [shared])).toEqual([1 - 0.32, 9 + 0.32]);
    expect(valueRange(own, [0, 151], [columns([null])])).toBeNull();
    expect(valueRange(own, [0, 151], [columns([4, 4])])).toEqual([3.5, 4.5]);
    expect([
      columnAt(own, columns([1, 2, 3]), 40),
      columnAt(own, shared, 100),
      columnAt(own, shared, 999),
    ]).toEqual([1, 1, null]);
    expect(across(box, [0, 302], 151)).toBe(75.5);
  });

  it("have dates of the calendar as ticks", () => {
    const own = line(dataset(), "level");
    const texts = ticksAlong(own, [0, 151], "360_day", 6).map(({ text }) => text);
    expect(texts).toContain("2001-02");
    expect(ticksAlong(own, [0, 151], "360_day", 6).find(({ text }) => text === "2001-02")?.value).toBe(30);
    const plain = lineAxis(named(dataset(), "runs"));
    if (!plain) throw new Error("expected a line");
    expect(ticksAlong(plain, [0, 5], "standard", 3).map(({ text }) => text)).toEqual(["0", "2", "4"]);
  });
});

describe("values of lines", () => {
  it("are read from JSON, and saved as CSV", () => {
    const answer: Json = {
      ...{
        array: "level",
        units: "m",
        axis: "time",
        axis_units: "days",
        axis_number: 0,
        index: [2],
        size: 6,
        count: 2,
        per_column: 1,
      },
      ...{
        coordinate: [59, 90],
        text: ["2001-03-01", null],
        low: [1.5, null],
        high: [1.5, "NaN"],
        missing: [0, 1],
        stored: [1.5, "NaN"],
      },
    };
    const read = parseColumns(answer);
    expect([read.low, read.high]).toEqual([
      [1.5, null],
      [1.5, null],
    ]);
    expect(columnsCsv([read])).toBe(
      "time index,time [days],time date,level [m]\n2,59,2001-03-01,1.5\n3,90,,\n",
    );
    expect(columnsCsv([{ ...read, perColumn: 2, text: [null, null] }]).split("\n")[0]).toBe(
      "time index,time [days],level [m] least,level [m] largest",
    );
    expect(() => parseColumns({ ...(answer as object), low: [1] })).toThrow("same length");
    expect(() => parseColumns("no")).toThrow("values of a line");
  });

  it("share rows of CSV only with those of the same indices", () => {
    const level = columns([1, 2]);
    const tide = columns([3, 4], { array: "tide" });
    expect(columnsCsv([level, tide]).split("\n")[1]).toBe("0,0,1,3");
    const others: Partial<PlotColumns>[] = [{ index: [2] }, { perColumn: 2 }, { axis: "x" }, { low: [3] }];
    for (const other of others) {
      const moved = { ...tide, ...other };
      expect(areOfOnePart([level, moved])).toBe(false);
      expect(columnsCsv([level, moved])).toBe(columnsCsv([level]));
    }
    expect(areOfOnePart([level, tide])).toBe(true);
  });

  it("are requested a few at a time, and again only for another part", () => {
    const sent: ToWorker[] = [];
    const calls = new Calls((message) => sent.push(message));
    let changes = 0;
    const requests = new LineRequests(calls, () => {
      changes += 1;
    });
    const part = { time: 0, at: {}, from: 0, count: 2, columns: 128 };
    const wanted = ["a", "b", "c", "d", "e"].map((array) => ({ array, ...part }));
    requests.want(wanted);
    const begun = () => sent.filter(({ kind }) => kind === "call").length;
    expect(begun()).toBe(4);
    const answer = {
      ...{ array: "a", axis_number: 0, index: [0], size: 2, count: 2, per_column: 1, coordinate: [0, 1] },
      ...{ text: [null, null], low: [1, 2], high: [1, 2], missing: [0, 0], stored: [1, 2] },
    };
    calls.called(1, { result: answer }, new Uint8Array());
    calls.ended(1, null);
    expect([begun(), changes, requests.columnsOf("a")?.low.length]).toEqual([5, 1, 2]);
    calls.ended(2, "the file is gone");
    expect(requests.reasonOf("b")).toBe("the file is gone");
    requests.want(wanted);
    expect(begun()).toBe(5);
    // Another part cancels what is under way.
    requests.want(wanted.map((one) => ({ ...one, from: 1, count: 1 })));
    expect(sent.filter(({ kind }) => kind === "cancelCall").length).toBe(3);
    expect(requests.columnsOf("a")).not.toBeNull();
  });
});
