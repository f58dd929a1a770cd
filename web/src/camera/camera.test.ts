//! Camera moves: fixed points stay in place, and dragged points follow the pointer.

import { describe, expect, it } from "vitest";

import { isDrag } from "./click.ts";
import type { Camera, Vec3 } from "../view/schema.ts";
import {
  AXIS_VIEWS,
  basis,
  distance,
  fit,
  heightAtTarget,
  orbit,
  pan,
  toggleProjection,
  turn,
  zoom,
} from "./camera.ts";
import { add, dot, length, scale, sub } from "./vec.ts";

const SIZE = { width: 800, height: 600 };
const DIAGONAL = 20;
const CAMERA: Camera = {
  eye: [3, -14, 5],
  target: [1, 2, -1],
  up: [0.1, 0, 1],
  projection: { perspective: { fov_y_rad: 0.6 } },
};
const FLAT: Camera = { ...CAMERA, projection: { orthographic: { height_world: 9 } } };

function expectNear(a: Vec3, b: Vec3): void {
  expect(length(sub(a, b))).toBeLessThan(1e-9 * (1 + length(b)));
}

/** Position of a world point on the screen, pixels from the center, y down. */
function project(camera: Camera, point: Vec3): [number, number] {
  return projectInto(SIZE, camera, point);
}

function projectInto(size: typeof SIZE, camera: Camera, point: Vec3): [number, number] {
  const { forward, right, up } = basis(camera);
  const from = sub(point, camera.eye);
  const isFlat = "orthographic" in camera.projection;
  const perPixel =
    (heightAtTarget(camera) / size.height) * (isFlat ? 1 : dot(from, forward) / distance(camera));
  return [dot(from, right) / perPixel, -dot(from, up) / perPixel];
}

describe("basis", () => {
  it("is orthonormal and right-handed, even if up is parallel to the viewing direction", () => {
    for (const up of [
      [0, 0, 1],
      [0.3, -1, 2],
      [0, 1, 0],
    ] as const) {
      const { forward, right, up: above } = basis({ ...CAMERA, eye: [1, -5, -1], up });
      for (const v of [forward, right, above]) expect(length(v)).toBeCloseTo(1, 12);
      for (const [a, b] of [
        [forward, right],
        [right, above],
        [above, forward],
      ] as const) {
        expect(dot(a, b)).toBeCloseTo(0, 12);
      }
    }
  });
});

describe("orbit", () => {
  it("keeps target and distance", () => {
    const moved = orbit(CAMERA, 130, -75, SIZE);
    expectNear(moved.target, CAMERA.target);
    expect(distance(moved)).toBeCloseTo(distance(CAMERA), 9);
  });

  it("returns after a full turn and after the opposite drag", () => {
    expectNear(turn(CAMERA, 2 * Math.PI, 0).eye, CAMERA.eye);
    expectNear(orbit(orbit(CAMERA, 90, 0, SIZE), -90, 0, SIZE).eye, CAMERA.eye);
    expectNear(orbit(orbit(CAMERA, 0, 90, SIZE), 0, -90, SIZE).eye, CAMERA.eye);
  });

  it("moves points in front with the pointer", () => {
    const { forward } = basis(CAMERA);
    const front = sub(CAMERA.target, scale(forward, 2));
    const [x, y] = project(orbit(CAMERA, 20, 0, SIZE), front);
    expect(x).toBeGreaterThan(0);
    expect(Math.abs(y)).toBeLessThan(1);
    expect(project(orbit(CAMERA, 0, 20, SIZE), front)[1]).toBeGreaterThan(0);
  });

  it("passes over the poles", () => {
    let camera = CAMERA;
    for (let i = 0; i < 36; i++) camera = turn(camera, 0, Math.PI / 18);
    expectNear(camera.eye, CAMERA.eye);
  });
});

describe("pan", () => {
  it.each([
    ["perspective", CAMERA],
    ["orthographic", FLAT],
  ])("keeps the target under the pointer, %s", (_, camera) => {
    const moved = pan(camera, 40, -25, SIZE);
    const [x, y] = project(moved, camera.target);
    expect(x).toBeCloseTo(40, 6);
    expect(y).toBeCloseTo(-25, 6);
  });
});

describe("zoom", () => {
  it.each([
    ["perspective", CAMERA],
    ["orthographic", FLAT],
  ])("holds the point under the pointer, %s", (_, camera) => {
    const { right, up } = basis(camera);
    const perPixel = heightAtTarget(camera) / SIZE.height;
    const held = add(camera.target, add(scale(right, 120 * perPixel), scale(up, 80 * perPixel)));
    const moved = zoom(camera, 0.5, DIAGONAL, SIZE, 120, -80);
    expect(heightAtTarget(moved)).toBeCloseTo(heightAtTarget(camera) / 2, 9);
    const [x, y] = project(moved, held);
    expect(x).toBeCloseTo(120, 6);
    expect(y).toBeCloseTo(-80, 6);
  });

  it("stays within bounds after any number of wheel events", () => {
    let [near, far] = [CAMERA, CAMERA];
    for (let i = 0; i < 500; i++)
      [near, far] = [zoom(near, 0.8, DIAGONAL, SIZE), zoom(far, 1.25, DIAGONAL, SIZE)];
    expect(heightAtTarget(near)).toBeCloseTo(0.005 * DIAGONAL, 6);
    expect(heightAtTarget(far)).toBeCloseTo(50 * DIAGONAL, 6);
  });
});

describe("projection", () => {
  it("changes kind without changing the size at the target", () => {
    const flat = toggleProjection(CAMERA);
    expect("orthographic" in flat.projection).toBe(true);
    expect(heightAtTarget(flat)).toBeCloseTo(heightAtTarget(CAMERA), 9);
    expect(heightAtTarget(toggleProjection(flat))).toBeCloseTo(heightAtTarget(CAMERA), 9);
  });
});

describe("fit", () => {
  const box = { center: [10, 20, 30] as const, extent: [12, 4, 7] as const };
  const signs = [-1, 1].flatMap((x) => [-1, 1].flatMap((y) => [-1, 1].map((z): Vec3 => [x, y, z])));
  const corners = signs.map(
    (sign) =>
      box.extent.map(
        (side, axis) => (box.center[axis] ?? 0) + ((sign[axis] ?? 0) * side) / 2,
      ) as unknown as Vec3,
  );
  it.each([
    [800, 600],
    [390, 844],
  ])("sees all corners of the box, and one at the border, at %d by %d", (width, height) => {
    for (const like of [CAMERA, FLAT]) {
      for (const { forward, up } of [
        ...AXIS_VIEWS,
        { forward: [-0.45, 0.8, -0.4] as const, up: [0, 0, 1] as const },
      ]) {
        const camera = fit(box, forward, up, { width, height }, like);
        const places = corners.map((corner) => projectInto({ width, height }, camera, corner));
        const reach = Math.max(
          ...places.map(([x, y]) => Math.max(Math.abs(x) / (width / 2), Math.abs(y) / (height / 2))),
        );
        expect(reach).toBeLessThan(1);
        expect(reach).toBeGreaterThan(0.9);
      }
    }
  });
});

it("a press is a click or a drag, by how far it moves", () => {
  expect([isDrag(3, 0, false), isDrag(3, 1, false), isDrag(8, 8, true), isDrag(9, 9, true)]).toEqual([
    false,
    true,
    false,
    true,
  ]);
});
