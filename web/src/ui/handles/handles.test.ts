import { describe, expect, it } from "vitest";

import { basis, fit, HOME, turn } from "../../camera/camera.ts";
import { dot, length, normalize, sub } from "../../camera/vec.ts";
import { parseDataset, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import { worldBox } from "../../dataset/world.ts";
import { isOblique, obliqueThrough, offsetOf } from "../../layout/oblique.ts";
import { centerOf } from "../../layout/space.ts";
import { project } from "../../session/together/space.ts";
import { EMPTY_VIEW, type Camera, type Vec3, type View } from "../../view/schema.ts";
import { canCut, cutClip } from "./cutaway.ts";
import { draggedValue, handlesOf, moveHandle, obliqueOutline, outlineOf, type Handle } from "./geometry.ts";
import { keyValue } from "./handles.ts";

const SIZE = { width: 900, height: 600 };

/** A volume of 40 x 30 x 20 voxels (x, y, z) of 2 x 1 x 3 units. */
function volume(
  map = [
    [2, 0, 0, 5],
    [0, 1, 0, -7],
    [0, 0, 3, 11],
  ],
): { dataset: Dataset; array: ArrayInfo } {
  const dataset = parseDataset({
    name: "d",
    arrays: [
      {
        name: "rho",
        dtype: "<f4",
        axes: ["z", "y", "x"].map((kind) => ({ name: kind, kind })),
        levels: [{ shape: [20, 30, 40], world_from_voxel: map }],
        world_units: "mm",
      },
    ],
  });
  const [array] = dataset.arrays;
  if (!array) throw new Error("expected an array");
  return { dataset, array };
}

function cameras(array: ArrayInfo): Camera[] {
  const box = worldBox(array);
  if (!box) throw new Error("expected a box");
  const first = fit(box, HOME.forward, HOME.up, SIZE);
  const parallel = fit(box, HOME.forward, HOME.up, SIZE, {
    ...first,
    projection: { orthographic: { height_world: 1 } },
  });
  return [first, turn(first, 0.7, -0.4), turn(parallel, -0.9, 0.3)];
}

const view = (fields: Partial<View>): View => ({ ...EMPTY_VIEW, ...fields });

function handle(handles: readonly Handle[], key: string): Handle {
  const found = handles.find((one) => one.key === key);
  if (!found) throw new Error(`expected the handle ${key}`);
  return found;
}

/** Drags a handle to where its place will be on the screen when its value is `value`. */
function draggedTo(own: Handle, moved: Handle, camera: Camera): number {
  const from = project(camera, SIZE, own.place);
  const to = project(camera, SIZE, moved.place);
  if (!from || !to) throw new Error("expected a handle in front of the camera");
  return draggedValue(own, camera, SIZE, from, to);
}

describe("drags of handles", () => {
  it("move slices and ends of the clip box under the pointer, for any camera", () => {
    const { dataset, array } = volume();
    const before = view({
      slices: [
        { axis: "z", at: 6 },
        { axis: "x", at: 20 },
      ],
      clip: [
        [0.1, 0, 0],
        [1, 1, 0.9],
      ],
    });
    const handles = handlesOf(dataset, array, before, true);
    expect(handles.map(({ key }) => key)).toEqual([
      ...["clip 0 0", "clip 0 1", "clip 1 0", "clip 1 1", "clip 2 0", "clip 2 1"],
      ...["slice 0", "slice 1"],
    ]);
    const wanted: [string, number][] = [
      ["slice 0", 13],
      ["slice 1", 3],
      ["clip 0 0", 0.4],
      ["clip 2 1", 0.35],
    ];
    for (const camera of cameras(array))
      for (const [key, value] of wanted) {
        const own = handle(handles, key);
        const after = view({ ...before, ...moveHandle(own, value, array, before) });
        const moved = handle(handlesOf(dataset, array, after, true), key);
        expect(moved.value).toBeCloseTo(value, 9);
        // The middles of other faces move with an end of the box: only along the handle's own axis it is the same place.
        expect(draggedTo(own, moved, camera), key).toBeCloseTo(value, 6);
      }
  });

  it("stay within the volume, and keep a part of the box", () => {
    const { dataset, array } = volume();
    const before = view({ slices: [{ axis: "y", at: 3 }] });
    const handles = handlesOf(dataset, array, before, true);
    expect(moveHandle(handle(handles, "slice 0"), 99, array, before)).toEqual({
      slices: [{ axis: "y", at: 29 }],
    });
    expect(moveHandle(handle(handles, "slice 0"), -4, array, before)).toEqual({
      slices: [{ axis: "y", at: 0 }],
    });
    const clip = moveHandle(handle(handles, "clip 1 1"), -1, array, before).clip;
    expect(clip?.[1][1]).toBeGreaterThan(0);
    expect(moveHandle(handle(handles, "clip 1 1"), 2, array, before)).toEqual({ clip: null });
  });

  it("move oblique planes along their normal", () => {
    const { dataset, array } = volume();
    const plane = obliqueThrough(array, [1, 2, 3], centerOf(array));
    const before = view({ slices: [plane] });
    for (const camera of cameras(array)) {
      const own = handle(handlesOf(dataset, array, before, false), "offset 0");
      const after = view(moveHandle(own, 9, array, before));
      const moved = handle(handlesOf(dataset, array, after, false), "offset 0");
      expect(moved.value).toBeCloseTo(9, 9);
      expect(draggedTo(own, moved, camera)).toBeCloseTo(9, 6);
      const [slice] = after.slices;
      if (!slice || !isOblique(slice)) throw new Error("expected an oblique slice");
      expect(offsetOf(array, slice)).toBeCloseTo(9, 9);
    }
  });

  it("turn oblique planes so that the handle follows the pointer", () => {
    const { dataset, array } = volume();
    const before = view({ slices: [obliqueThrough(array, [0.3, -0.8, 0.5], centerOf(array))] });
    const handles = handlesOf(dataset, array, before, false);
    let compared = 0;
    for (const key of ["tilt 0", "swing 0"])
      for (const angle of [-0.6, 0.25]) {
        const own = handle(handles, key);
        if (own.target.kind !== "turn") throw new Error("expected a handle that turns");
        const after = view(moveHandle(own, angle, array, before));
        const [slice] = after.slices;
        if (!slice || !isOblique(slice)) throw new Error("expected an oblique slice");
        expect(length(slice.normal)).toBeCloseTo(1, 9);
        // The handle moves on a circle about the middle, and stays in the plane.
        const middle = centerOf(array);
        const arm = sub(own.place, middle);
        const turned = ([0, 1, 2] as const).map(
          (a) => middle[a] + Math.cos(angle) * arm[a] + Math.sin(angle) * own.direction[a] * length(arm),
        ) as unknown as Vec3;
        expect(dot(sub(turned, middle), normalize(slice.normal))).toBeCloseTo(0, 6);
        for (const camera of cameras(array)) {
          // Circles that are seen edge on have no place under each pixel.
          if (Math.abs(dot(basis(camera).forward, own.target.about)) < 0.3) continue;
          compared += 1;
          expect(draggedTo(own, { ...own, place: turned }, camera), key).toBeCloseTo(angle, 6);
        }
      }
    expect(compared).toBeGreaterThan(5);
  });

  it("along the viewing direction go by pixels, away from the viewer when up", () => {
    const { dataset, array } = volume();
    const box = worldBox(array);
    if (!box) throw new Error("expected a box");
    const camera = fit(box, [0, 0, -1], [0, 1, 0], SIZE);
    const before = view({ slices: [{ axis: "z", at: 6 }] });
    const own = handle(handlesOf(dataset, array, before, false), "slice 0");
    const at = project(camera, SIZE, own.place);
    if (!at) throw new Error("expected a place");
    expect(draggedValue(own, camera, SIZE, at, { x: at.x, y: at.y - 30 })).toBeLessThan(6);
    expect(draggedValue(own, camera, SIZE, at, at)).toBe(6);
  });
});

describe("keys on handles", () => {
  it("move by steps, further with Shift, and to the ends", () => {
    const { dataset, array } = volume();
    const own = handle(handlesOf(dataset, array, view({ slices: [{ axis: "z", at: 6 }] }), false), "slice 0");
    const key = (name: string, shiftKey = false) => keyValue({ key: name, shiftKey }, own);
    expect([key("ArrowUp"), key("ArrowLeft"), key("ArrowRight", true), key("PageDown")]).toEqual([
      7, 5, 16, -4,
    ]);
    expect([key("Home"), key("End"), key("a")]).toEqual([0, 19, null]);
    expect(own.text).toBe("6 · 29 mm");
  });
});

describe("outlines", () => {
  it("of slices and faces are rectangles, of oblique planes polygons in the plane", () => {
    const { dataset, array } = volume();
    const plane = obliqueThrough(array, [1, 1, 1], centerOf(array));
    const own = view({ slices: [{ axis: "x", at: 10 }, plane] });
    const handles = handlesOf(dataset, array, own, true);
    const slice = outlineOf(handle(handles, "slice 0"), array, own);
    expect(slice.map(([x]) => x)).toEqual([25, 25, 25, 25]);
    expect(outlineOf(handle(handles, "clip 0 1"), array, own).map(([x]) => x)).toEqual([84, 84, 84, 84]);
    const polygon = obliqueOutline(array, plane);
    expect(polygon.length).toBeGreaterThanOrEqual(3);
    for (const corner of polygon) expect(dot(sub(corner, plane.point), plane.normal)).toBeCloseTo(0, 9);
  });
});

describe("cutting the volume away", () => {
  it("ends just before the slice on the side of the camera", () => {
    const { array } = volume();
    const above: Camera = {
      eye: [45, 7, 500],
      target: [45, 7, 40],
      up: [0, 1, 0],
      projection: { perspective: { fov_y_rad: 0.5 } },
    };
    const below: Camera = { ...above, eye: [45, 7, -500] };
    const slices = [{ axis: "z", at: 6 } as const];
    expect(canCut(array)).toBe(true);
    const [low, high] = cutClip(array, slices, above) ?? [];
    expect(low).toEqual([0, 0, 0]);
    expect(high?.[2]).toBeCloseTo(6.501 / 20, 9);
    expect(cutClip(array, slices, below)?.[0][2]).toBeCloseTo(6.499 / 20, 9);
    // Between two slices across one axis nothing could stay.
    expect(cutClip(array, [...slices, { axis: "z", at: 9 }], above)).toBeNull();
    expect(cutClip(array, [{ axis: "z", at: 6, hidden: true }], above)).toBeNull();
  });

  it("knows axes that run against the world, and refuses turned ones", () => {
    const { array } = volume([
      [2, 0, 0, 5],
      [0, 1, 0, -7],
      [0, 0, -3, 11],
    ]);
    const camera: Camera = {
      eye: [45, 7, 500],
      target: [45, 7, 0],
      up: [0, 1, 0],
      projection: { perspective: { fov_y_rad: 0.5 } },
    };
    // Index 6 of 20 lies at the share 1 - 6.5 / 20 of the height; the camera is above it.
    expect(cutClip(array, [{ axis: "z", at: 6 }], camera)?.[1][2]).toBeCloseTo(1 - 6.499 / 20, 9);
    const turned = volume([
      [2, 1, 0, 5],
      [-1, 1, 0, -7],
      [0, 0, 3, 11],
    ]);
    expect(canCut(turned.array)).toBe(false);
  });
});
