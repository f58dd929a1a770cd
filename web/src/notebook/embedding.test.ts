//! Reports of a page in a frame; the surrounding page is played by hand.

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { INITIAL_STATE, type State } from "../app/state.ts";
import type { PickedPlace } from "../ui/probe/place.ts";
import type { Camera } from "../view/schema.ts";
import { Embedding, parseSettings, placeToJson, rayAt } from "./embedding.ts";

const CAMERA: Camera = {
  eye: [0, -10, 0],
  target: [0, 0, 0],
  up: [0, 0, 1],
  projection: { perspective: { fov_y_rad: Math.PI / 2 } },
};
let reports: { kind: string; view?: { time?: number } }[];

beforeEach(() => {
  vi.useFakeTimers();
  reports = [];
  vi.stubGlobal("window", {
    parent: { postMessage: (message: (typeof reports)[number]) => reports.push(message) },
    addEventListener: () => undefined,
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function at(time: number): State {
  const view = { ...INITIAL_STATE.view, camera: CAMERA, time };
  return { ...INITIAL_STATE, connection: { kind: "open", isSilent: false }, view };
}

it("reports the newest view of many, and an unchanged one once", () => {
  const embedding = new Embedding(parseSettings({}));
  for (let time = 0; time < 1000; time++) embedding.update(at(time));
  vi.advanceTimersByTime(1000);
  embedding.update(at(999));
  vi.advanceTimersByTime(1000);
  expect(reports.map((r) => r.view?.time)).toEqual([999]);
});

it("rays pass through the place of the click", () => {
  const size = { width: 200, height: 100 };
  const middle = rayAt(CAMERA, size, [0.5, 0.5]);
  expect(middle.origin).toEqual([0, -10, 0]);
  expect(middle.direction[1]).toBeCloseTo(1);
  // At the target the picture is 20 high and 40 wide.
  const corner = rayAt(CAMERA, size, [1, 0]).direction;
  expect(corner[0] / corner[1]).toBeCloseTo(2);
  expect(corner[2] / corner[1]).toBeCloseTo(1);
  const flat: Camera = { ...CAMERA, projection: { orthographic: { height_world: 4 } } };
  const ray = rayAt(flat, size, [0, 1]);
  expect(ray.origin[0]).toBeCloseTo(-4);
  expect(ray.origin[2]).toBeCloseTo(-2);
  expect(ray.direction[1]).toBeCloseTo(1);
});

const PLACE: PickedPlace = {
  hit: "volume",
  layers: [],
  number: null,
  world: [1, 2, 3],
  worldUnits: "mm",
  colorBy: null,
  value: {
    array: "rho",
    dtype: "<i2",
    units: "kg m-3",
    axes: [
      { name: "z", kind: "space", index: 4, size: 9, coordinate: 8, units: "mm", text: null },
      { name: "y", kind: "space", index: 5, size: 9, coordinate: null, units: "", text: null },
    ],
    coordinates: [{ name: "lat", coordinate: Number.NaN, units: "degrees_north" }],
    level: 0,
    elements: [
      { channel: null, index: [4, 5], stored: "57", decoded: 5.7, text: "5.7", missing: null, label: null },
    ],
    drawn: null,
    note: null,
  },
};

it("reports a click with the element that is seen there", () => {
  const embedding = new Embedding(parseSettings({}));
  const listeners = new Map<string, (event: object) => void>();
  const canvas = {
    addEventListener: (name: string, listener: (event: object) => void) => listeners.set(name, listener),
    getBoundingClientRect: () => ({ left: 10, top: 20, width: 200, height: 100 }),
  } as unknown as HTMLElement;
  const asked: object[] = [];
  embedding.watchClicks(
    canvas,
    () => at(3).view,
    (place, done) => {
      asked.push(place);
      done(PLACE);
    },
  );
  const event = { pointerId: 1, isPrimary: true, button: 0, shiftKey: false, clientX: 60, clientY: 70 };
  listeners.get("pointerdown")?.(event);
  listeners.get("pointerup")?.(event);
  listeners.get("pointerdown")?.(event);
  listeners.get("pointerup")?.({ ...event, clientX: 90 });
  expect(asked).toEqual([{ x: 50, y: 50 }]);
  expect(reports).toMatchObject([
    {
      kind: "pick",
      at: [0.25, 0.5],
      view: { time: 3 },
      place: {
        hit: "volume",
        position: [1, 2, 3],
        index: [4, 5],
        stored: "57",
        value: 5.7,
        units: "kg m-3",
        coordinates: { z: 8, y: null, lat: null },
      },
    },
  ]);
});

it("a place without an element has no index and no value", () => {
  expect(placeToJson({ ...PLACE, hit: "nothing", world: null, value: null })).toEqual({
    hit: "nothing",
    position: null,
    index: null,
    stored: null,
    value: null,
    units: "",
    coordinates: {},
  });
});
