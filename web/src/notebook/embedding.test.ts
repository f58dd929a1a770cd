//! Reports of a page in a frame; the surrounding page is played by hand.

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { INITIAL_STATE, type State } from "../app/state.ts";
import type { Camera } from "../view/schema.ts";
import { Embedding, parseSettings, rayAt } from "./embedding.ts";

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
