//! Which changes of the picture's size need another camera.

import { beforeEach, expect, it } from "vitest";

import type { Camera } from "../view/schema.ts";
import { FirstCamera } from "./first-camera.ts";

const camera = (distance: number): Camera => ({
  eye: [0, -distance, 0],
  target: [0, 0, 0],
  up: [0, 0, 1],
  projection: { perspective: { fov_y_rad: 0.5 } },
});
/** Of a volume, for no size; chosen for the first and the last size; of a person. */
const [SHARED, FIRST, LAST, MOVED] = [camera(10), camera(8), camera(7), camera(1)];
const size = { width: 800, height: 600 };
const lower = { width: 800, height: 500 };
let first: FirstCamera;

/** A new page: its view has the camera of all new views of a volume. */
beforeEach(() => {
  first = new FirstCamera();
  first.joined({ camera: SHARED, isNew: true, size });
});

/** The page follows nobody, and has the camera for its first size. */
function begin(): void {
  first.follows(null);
  expect(first.take(size)).toBe(true);
  first.adjusted(null);
  first.incoming(FIRST, false, size);
}

it("a new page wants a camera for its own size, once it knows that it follows nobody", () => {
  expect(first.take(size)).toBe(false);
  first.follows(null);
  expect(first.take(size)).toBe(true);
  expect(first.take(size)).toBe(false);
});

it("a camera that the node chooses for the size of the page is not wanted again", () => {
  first.joined({ camera: null, isNew: true, size });
  first.follows(null);
  first.incoming(FIRST, false, size);
  expect(first.take(size)).toBe(false);
  expect(first.take(lower)).toBe(true);
});

it("each other size wants one, until the person moves the camera", () => {
  begin();
  expect(first.take(lower)).toBe(true);
  first.adjusted(null);
  first.incoming(LAST, false, lower);
  expect(first.isAutomatic).toBe(true);
  first.moved(MOVED, lower);
  first.incoming(MOVED, false, lower);
  expect([first.isAutomatic, first.take(size)]).toEqual([false, false]);
});

it("what else changes in the view, and a camera for an arrangement, is no move", () => {
  begin();
  first.incoming(FIRST, false, size);
  first.adjusted(LAST);
  first.incoming(LAST, false, size);
  expect([first.take(size), first.take(lower)]).toEqual([false, true]);
});

it("after a reset the camera is chosen for each size again", () => {
  begin();
  first.moved(MOVED, size);
  first.moved(null, size);
  first.incoming(FIRST, false, size);
  expect([first.take(size), first.take(lower)]).toEqual([false, true]);
  first.moved(MOVED, lower);
  first.chosen(LAST, lower);
  expect([first.take(lower), first.take(size)]).toEqual([false, true]);
});

it("a page that follows somebody never chooses, also after it has stopped", () => {
  first.follows(2);
  expect(first.take(size)).toBe(false);
  first.incoming(MOVED, false, size);
  first.follows(null);
  expect([first.take(size), first.take(lower)]).toEqual([false, false]);
});

it("a camera of a link, of an earlier step or of somebody else stays", () => {
  first.joined({ camera: MOVED, isNew: false, size });
  first.follows(null);
  expect(first.take(lower)).toBe(false);
  first = new FirstCamera();
  first.joined({ camera: SHARED, isNew: true, size });
  begin();
  first.incoming(MOVED, false, size);
  expect(first.take(lower)).toBe(false);
});

it("a camera that the node chooses for another array is chosen for each size, one that it keeps stays", () => {
  begin();
  first.moved(MOVED, size);
  first.incoming(MOVED, true, size);
  expect(first.take(lower)).toBe(false);
  first.incoming(LAST, true, size);
  expect([first.take(size), first.take(lower)]).toEqual([false, true]);
});

it("a page that comes back goes on, unless the camera has changed meanwhile", () => {
  begin();
  first.joined({ camera: { ...FIRST }, isNew: false, size });
  expect(first.take(lower)).toBe(false);
  first.follows(null);
  expect(first.take(lower)).toBe(true);
  first.joined({ camera: MOVED, isNew: false, size });
  first.follows(null);
  expect(first.take(size)).toBe(false);
});
