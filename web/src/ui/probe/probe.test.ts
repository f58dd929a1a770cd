//! Logic of values in the picture: rest and clicks of the pointer, answers, texts, Python lines, crosses and plots.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Calls, MAX_CALLS } from "../../app/calls.ts";
import type { Camera } from "../../view/schema.ts";
import type { ToWorker } from "../../worker/messages.ts";
import { parseMeasured, type Profile, type Series } from "./measured.ts";
import { parsePicks, type PickedPlace } from "./place.ts";
import { plotGeometry, plotOf } from "./plot.ts";
import { positionsOf } from "./project.ts";
import { ClickDetector, PointerRest, REST_MILLIS, type Position } from "./rest.ts";
import {
  measuredCsv,
  measuredPython,
  pinPython,
  pinsCsv,
  placeLines,
  shortNumber,
  spokenText,
} from "./text.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe("the pointer at rest", () => {
  function rest() {
    const requested: Position[] = [];
    const answers: (() => void)[] = [];
    const pointer = new PointerRest({
      request: (position, done) => {
        requested.push(position);
        answers.push(done);
      },
      hide: () => undefined,
    });
    return { requested, pointer, answer: () => answers.shift()?.() };
  }

  it("requests once it has rested, and never twice at the same time", () => {
    const { requested, pointer, answer } = rest();
    for (let x = 0; x < 10; x++) {
      pointer.moved({ x, y: 0 });
      vi.advanceTimersByTime(REST_MILLIS - 1);
    }
    expect(requested).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(requested).toEqual([{ x: 9, y: 0 }]);
    for (const x of [20, 30]) {
      pointer.moved({ x, y: 0 });
      vi.advanceTimersByTime(REST_MILLIS);
    }
    expect(requested).toHaveLength(1);
    answer();
    expect(requested.at(-1)).toEqual({ x: 30, y: 0 });
    answer();
    vi.advanceTimersByTime(1000);
    expect(requested).toHaveLength(2);
  });

  it("requests again when the picture changes under it, and not after it has left", () => {
    const { requested, pointer, answer } = rest();
    pointer.changed();
    pointer.moved({ x: 1, y: 1 });
    vi.advanceTimersByTime(REST_MILLIS);
    pointer.changed();
    vi.advanceTimersByTime(REST_MILLIS);
    answer();
    expect(requested).toHaveLength(2);
    pointer.left();
    answer();
    pointer.changed();
    vi.advanceTimersByTime(1000);
    expect(requested).toHaveLength(2);
  });
});

it("clicks and taps are told from drags, long presses and pinches", () => {
  const clicks = new ClickDetector();
  const press = (move: number, millis: number, isTouch = false, isPlain = true) => {
    clicks.down(1, { x: 0, y: 0 }, isPlain, 0);
    return clicks.up(1, { x: move, y: 0 }, isTouch, millis);
  };
  expect([press(0, 80), press(3, 80), press(8, 80), press(8, 80, true), press(0, 900)]).toEqual([
    true,
    true,
    false,
    true,
    false,
  ]);
  expect(press(0, 80, false, false)).toBe(false);
  clicks.down(1, { x: 0, y: 0 }, true, 0);
  clicks.down(2, { x: 9, y: 0 }, true, 10);
  expect([clicks.up(2, { x: 9, y: 0 }, true, 50), clicks.up(1, { x: 0, y: 0 }, true, 60)]).toEqual([
    false,
    false,
  ]);
  expect(press(0, 80)).toBe(true);
  // A drag that comes back has turned the camera, so it pins nothing.
  clicks.down(1, { x: 0, y: 0 }, true, 0);
  clicks.moved(1, { x: 40, y: 0 }, false);
  expect(clicks.up(1, { x: 1, y: 0 }, false, 90)).toBe(false);
});

it("calls are bounded, cancelled, and end with the connection", () => {
  const sent: ToWorker[] = [];
  const ends: (string | null)[] = [];
  const items: unknown[] = [];
  const calls = new Calls((message) => sent.push(message));
  const receiver = { item: (item: unknown) => items.push(item), ended: (r: string | null) => ends.push(r) };
  const cancels = Array.from({ length: MAX_CALLS }, () => calls.call("pick", {}, receiver));
  calls.call("measure", {}, receiver);
  expect(ends).toEqual(["too many measurements are under way; wait for one, or cancel it"]);
  calls.called(1, { picks: [] }, new Uint8Array(0));
  calls.ended(1, null);
  calls.called(1, { picks: [] }, new Uint8Array(0));
  cancels[0]?.();
  cancels[1]?.();
  expect(items).toHaveLength(1);
  expect(sent.at(-1)).toEqual({ kind: "cancelCall", id: 2 });
  calls.disconnected();
  expect(ends.slice(1)).toEqual([
    null,
    "cancelled",
    ...Array.from({ length: MAX_CALLS - 2 }, () => "the connection was lost"),
  ]);
});

const ANSWER = {
  picks: [
    {
      hit: "slice",
      number: 1,
      world: [1.5, 2, -3],
      world_units: "km",
      value: {
        array: "rho",
        dtype: "<i2",
        units: "kg m-3",
        axes: [
          {
            name: "time",
            kind: "time",
            index: 3,
            size: 24,
            coordinate: 24,
            units: "hours since 2024",
            text: "2024-03-02",
          },
          { name: "z", kind: "z", index: 10, size: 32, coordinate: null, units: "", text: null },
        ],
        coordinates: [],
        level: 0,
        elements: [
          { channel: null, index: [3, 10], stored: 7, decoded: 5.7, text: "5.7", missing: null, label: null },
        ],
        drawn: { level: 2, value: 5.5 },
        note: null,
      },
      color_by: null,
    },
    { hit: "nothing", number: null, world: null, world_units: "km", value: null, color_by: null },
  ],
};

describe("texts of a place", () => {
  const [place, nothing] = parsePicks(ANSWER) as [PickedPlace, PickedPlace];
  const with_ = (change: object): PickedPlace => {
    const { value } = place;
    if (!value) throw new Error("expected a value");
    return { ...place, value: { ...value, ...change } };
  };

  it("begin with the value and its units, and end with the place", () => {
    expect(placeLines(place)).toEqual([
      "rho: 5.7 kg m⁻³",
      "Along the axes: time 3: 2024-03-02 · z 10",
      "Slice 2 · In world space: 1.5, 2, -3 km",
    ]);
    expect(placeLines(nothing)).toEqual(["Nothing here"]);
    expect(spokenText({ id: 4, place })).toBe("Pin 4: rho 5.7 kg m⁻³ at time 3: 2024-03-02, z 10");
  });

  it("have at most seven digits to be read, and all of them in tooltips and copies", () => {
    const element = { ...place.value?.elements[0], text: "375.46668887138367" };
    const long = with_({ elements: [element], units: "" });
    expect([placeLines(long)[0], placeLines(long, "whole")[0]]).toEqual([
      "rho: 375.4667",
      "rho: 375.46668887138367",
    ]);
    expect(pinsCsv([{ id: 1, place: long }])).toContain(",375.46668887138367,");
    const texts = ["1.23456789e-12", "123456789012", "-0.1", "nan", "12, 30", "16777216.5"];
    expect(texts.map(shortNumber)).toEqual([
      "1.234568e-12",
      "123456789012",
      "-0.1",
      "nan",
      "12, 30",
      "16777220",
    ]);
    const [time] = place.value?.axes ?? [];
    const axes = [{ ...time, coordinate: 366, units: "hour since 0000-01-01", text: null }];
    expect([placeLines(with_({ axes }))[1], placeLines(with_({ axes }), "whole")[1]]).toEqual([
      "Along the axes: time 3: 366 h",
      "Along the axes: time 3: 366 hour since 0000-01-01",
    ]);
  });

  it("say what is missing, which label it is, and which level was read", () => {
    const element = place.value?.elements[0];
    const [fill] = placeLines(with_({ elements: [{ ...element, missing: "fill value", stored: "-999" }] }));
    expect(fill).toBe("rho: fill value (stored -999)");
    const [label] = placeLines(with_({ elements: [{ ...element, label: "sea ice", text: "3" }], units: "" }));
    expect(label).toBe("rho: sea ice (3)");
    const coarse = placeLines(with_({ elements: [], level: 2, note: "the value cannot be read" }));
    expect([coarse[0], coarse.at(-1)]).toEqual(["rho: 5.5 kg m⁻³ (level 2)", "the value cannot be read"]);
  });

  it("give a table, and the Python line of the same element", () => {
    const [head, row] = pinsCsv([{ id: 1, place }]).split("\r\n");
    expect(head).toBe(
      "pin,array,channel,time index,time,z index,z,stored,decoded,units,missing,label,x world,y world,z world,hit",
    );
    expect(row).toBe("1,rho,,3,2024-03-02,10,,7,5.7,kg m-3,,,1.5,2,-3,slice");
    expect(pinPython("corridor://host:1/a.nc", place)).toBe(
      'corridor.open("corridor://host:1/a.nc")["rho"][3, 10]',
    );
  });

  it("of other answers are errors", () => {
    expect(() => parsePicks({ picks: [{ hit: "what" }] })).toThrow("expected a place");
    expect(() => parsePicks([])).toThrow("expected what the picture shows");
  });
});

const PROFILE = {
  array: "rho",
  dtype: "<f4",
  units: "K",
  axes: ["t", "y", "x"],
  channel_axis: null,
  world_units: "km",
  distance: [0, 1, 2, 3],
  index: [[2, 5, 1], [2, 5, 2], null, [2, 6, 4]],
  channels: [
    {
      channel: null,
      name: null,
      stored: [1, "NaN", null, 4],
      decoded: [1, "NaN", null, 4],
      missing: [false, true, true, false],
    },
  ],
};

describe("measurements", () => {
  it("are a table, a plot with gaps, and a Python line", () => {
    const profile = parseMeasured("profile", PROFILE) as Profile;
    expect(measuredCsv(profile).split("\r\n").slice(0, 4)).toEqual([
      "distance,t index,y index,x index,stored,decoded",
      "0,2,5,1,1,1",
      "1,2,5,2,NaN,NaN",
      "2,,,,,",
    ]);
    const { paths, low, high } = plotGeometry(plotOf(profile));
    expect([paths[0]?.match(/M/g)?.length, low, high]).toEqual([2, 1, 4]);
    expect(measuredPython("u", profile)).toBe(
      'a = corridor.open("u")["rho"].decoded\na[2, 5:7, 1:5][[0, 0, 1], [0, 1, 3]]',
    );
  });

  it("over time name every step", () => {
    const series = parseMeasured("series", {
      ...PROFILE,
      index: [0, 5, 1],
      time_axis: 0,
      time_units: "days since 2000-01-01",
      step: 2,
      time: [0, 2],
      coordinate: [10, 20],
      text: ["2000-01-11", "2000-01-21"],
      channels: [{ channel: null, name: null, stored: [1, 2], decoded: [1, 2], missing: [false, false] }],
    });
    expect(plotOf(series as Series).xLabels).toEqual(["2000-01-11", "2000-01-21"]);
    const undated = { ...(series as Series), timeUnits: "hour since 0000-01-01", text: [null, null] };
    expect(plotOf(undated).xLabels).toEqual(["10 h", "20 h"]);
    expect(plotOf(undated).xTitles).toEqual(["10 hour since 0000-01-01", "20 hour since 0000-01-01"]);
    expect(plotOf({ ...undated, coordinate: [null, null] }).xLabels).toEqual(["t 0", "t 2"]);
    expect(measuredCsv(series)).toBe(
      "t index,t,date,stored,decoded\r\n0,10,2000-01-11,1,1\r\n2,20,2000-01-21,2,2\r\n",
    );
    expect(measuredPython("u", series)).toBe('a = corridor.open("u")["rho"].decoded\na[::2, 5, 1]');
  });

  it("of regions list the elements that they are of", () => {
    const statistics = { elements: 6, count: 5, missing: 1, min: 1, max: 4, mean: 2.5, std: 1 };
    const answer = {
      ...PROFILE,
      channel_axis: 0,
      selection: [
        [1, 2],
        [5, 7],
        [1, 4],
      ],
      mask: "cells",
      spans: {
        axes: [1, 2],
        rows: [
          [5, 1, 3],
          [6, 2, 4],
        ],
      },
      channels: [{ channel: 1, name: "red", ...statistics }],
    };
    const region = parseMeasured("region", answer);
    expect(measuredPython("u", region)).toBe(
      'a = corridor.open("u")["rho"].decoded\n' +
        "v = np.concatenate([a[1, i, j:k].ravel() for i, j, k in [(5, 1, 3), (6, 2, 4)]]); np.nanmean(v), np.nanstd(v)",
    );
    const box = parseMeasured("region", { ...answer, mask: "all", spans: null, channel_axis: null });
    expect(measuredPython("u", box)).toContain("v = a[1:2, 5:7, 1:4]; np.nanmean(v), np.nanstd(v)");
    expect(measuredCsv(region).split("\r\n")[1]).toBe("rho,red,6,5,1,1,4,2.5,1,K");
  });
});

describe("crosses of pins", () => {
  const camera = (projection: Camera["projection"]): Camera => ({
    eye: [0, -10, 0],
    target: [0, 0, 0],
    up: [0, 0, 1],
    projection,
  });
  const perspective = camera({ perspective: { fov_y_rad: 2 * Math.atan(0.5) } });
  const size = { width: 200, height: 100 };

  it("lie where the node draws their points", () => {
    expect(positionsOf([0, 0, 0], perspective, size, null)).toEqual([{ x: 100, y: 50 }]);
    const [right] = positionsOf([5, 0, 2.5], perspective, size, null);
    expect([right?.x, right?.y]).toEqual([150, 25].map((v) => expect.closeTo(v) as number));
    const flat = camera({ orthographic: { height_world: 20 } });
    const [there] = positionsOf([4, 99, -5], flat, size, null);
    expect([there?.x, there?.y]).toEqual([120, 75].map((v) => expect.closeTo(v) as number));
  });

  it("are none behind the eye or beside the picture, and two in a stereo pair", () => {
    expect(positionsOf([0, -11, 0], perspective, size, null)).toEqual([]);
    expect(positionsOf([99, 0, 0], perspective, size, null)).toEqual([]);
    const pair = positionsOf([0, 0, 0], perspective, size, 0.1);
    expect(pair.map(({ x }) => x)).toEqual([50, 150].map((v) => expect.closeTo(v) as number));
    const near = positionsOf([0, -5, 0], perspective, size, 0.1);
    expect((near[0]?.x ?? 0) - 50).toBeGreaterThan((near[1]?.x ?? 0) - 150);
  });
});
