//! Which pins and measurements belong to what the picture shows, and the lines of measurements on it.

import { describe, expect, it } from "vitest";

import { parseDataset, type ArrayInfo } from "../../dataset/dataset.ts";
import { DATASET } from "../../dataset/sample.ts";
import type { Json } from "../../json.ts";
import { EMPTY_VIEW, type Camera, type Vec3, type View } from "../../view/schema.ts";
import type { PickedPlace } from "./place.ts";
import { isOnSlice, otherAxes, positionsShown, presenceOf, shownSlice } from "./presence.ts";
import { lineOf } from "./project.ts";
import { shapeOf } from "./shapes.ts";

/** Array `rho`: 24 steps of time, 192 × 160 × 128 voxels of 1 km, voxel 0 in the origin. */
const [rho, speed] = parseDataset(DATASET as Json).arrays as [ArrayInfo, ArrayInfo];

const image = (at: number, more: Partial<View> = {}): View => ({
  ...EMPTY_VIEW,
  layout: "image",
  slices: [{ axis: "z", at }],
  ...more,
});

const axis = (name: string, kind: string, index: number) => ({
  ...{ name, kind, index, size: 200, coordinate: null, units: "", text: null },
});

function pin(world: Vec3, time: number): PickedPlace {
  const axes = [axis("time", "time", time), axis("z", "z", world[2]), axis("y", "y", world[1])];
  const value = {
    ...{
      array: "rho",
      dtype: "<f4",
      units: "",
      coordinates: [],
      level: 0,
      elements: [],
      drawn: null,
      note: null,
    },
    axes: [...axes, axis("x", "x", world[0])],
  };
  return { hit: "slice", number: 0, world, worldUnits: "km", value, colorBy: null, layers: [] };
}

describe("a pin", () => {
  it("is drawn in images of its own slice only, and says where it lies otherwise", () => {
    const place = pin([10, 20, 79], 0);
    expect(presenceOf(place, rho, image(79))).toEqual({ isOnSlice: true, isFaded: false, note: "" });
    expect(presenceOf(place, rho, image(79.4)).isOnSlice).toBe(true);
    expect(presenceOf(place, rho, image(80))).toEqual({
      isOnSlice: false,
      isFaded: false,
      note: "Not on the slice shown: it lies at z 79.",
    });
    // In space it has its place, whatever slices there are.
    expect(presenceOf(place, rho, { ...image(80), layout: "space" }).isOnSlice).toBe(true);
  });

  it("is faded at other times, at other positions and on other arrays", () => {
    const place = pin([10, 20, 79], 3);
    const note = "Drawn faded: pinned at time 3.";
    expect(presenceOf(place, rho, image(79))).toEqual({ isOnSlice: true, isFaded: true, note });
    expect(presenceOf(place, rho, image(79, { time: 3 })).isFaded).toBe(false);
    const other = presenceOf(place, speed, image(79, { time: 3 }));
    expect(other).toEqual({ isOnSlice: true, isFaded: true, note: "Drawn faded: pinned on rho." });
    const shown = positionsShown(speed, { ...EMPTY_VIEW, at: { member: 2 } });
    expect(shown).toEqual([{ name: "member", kind: "other", index: 2 }]);
    expect(otherAxes(shown, speed, EMPTY_VIEW)).toEqual(shown);
  });

  it("of an array of one layer lies on it", () => {
    const flat: ArrayInfo = {
      ...rho,
      levels: rho.levels.map((level) => ({ ...level, shape: [24, 1, 160, 192] })),
    };
    expect(shownSlice(image(0), flat)).toBeNull();
    expect(shownSlice(image(5), rho)).toEqual({ axis: 2, at: 5 });
    expect(isOnSlice({ axis: 0, at: 11 }, [10, 0, 0], rho)).toBe(false);
  });
});

describe("lines of a measurement", () => {
  const [a, b]: readonly [Vec3, Vec3] = [
    [10, 10, 10],
    [30, 50, 30],
  ];

  it("are all of it in space, and what lies on the slice in an image", () => {
    const profile = { kind: "profile", from: a, to: b } as const;
    expect(shapeOf(profile, rho, null)).toEqual([[a, b]]);
    const [cut] = shapeOf(profile, rho, { axis: 2, at: 20 });
    expect(cut?.map((point) => point[2])).toEqual([19.5, 20.5].map((z) => expect.closeTo(z, 4) as number));
    expect(shapeOf(profile, rho, { axis: 2, at: 31 })).toEqual([]);
    const flat = { kind: "profile", from: a, to: [30, 50, 10] } as const;
    expect(shapeOf(flat, rho, { axis: 2, at: 10 })).toHaveLength(1);
    expect(shapeOf(flat, rho, { axis: 2, at: 11 })).toEqual([]);
    const polygon = { kind: "polygon", corners: [a, [30, 10, 10], [30, 50, 10]], axis: "z" } as const;
    expect(shapeOf(polygon, rho, { axis: 2, at: 10 }).at(-1)).toEqual([[30, 50, 10], a]);
    expect(shapeOf({ kind: "clip" }, rho, null)).toEqual([]);
  });

  it("of a box are edges around its voxels, in an image a rectangle", () => {
    const box = { kind: "box", corners: [b, a] } as const;
    const edges = shapeOf(box, rho, null);
    expect(edges).toHaveLength(12);
    const along = (i: 0 | 1 | 2) => edges.flat().map((point) => point[i]);
    expect([Math.min(...along(1)), Math.max(...along(1))]).toEqual([9.5, 50.5]);
    const sides = shapeOf(box, rho, { axis: 2, at: 25 });
    expect(sides).toHaveLength(4);
    expect(new Set(sides.flat().map(([, , z]) => z))).toEqual(new Set([25]));
    expect(shapeOf(box, rho, { axis: 2, at: 40 })).toEqual([]);
  });

  it("that begin behind the eye are drawn from where they are seen", () => {
    const camera: Camera = {
      eye: [0, -10, 0],
      target: [0, 0, 0],
      up: [0, 0, 1],
      projection: { perspective: { fov_y_rad: 1 } },
    };
    const size = { width: 200, height: 100 };
    expect(
      lineOf(
        [
          [0, 0, 0],
          [0, 5, 0],
        ],
        camera,
        size,
      )?.map(({ x }) => x),
    ).toEqual([100, 100]);
    expect(
      lineOf(
        [
          [1, -20, 0],
          [1, 10, 0],
        ],
        camera,
        size,
      )?.[1].x,
    ).toBeCloseTo(104.6, 1);
    expect(
      lineOf(
        [
          [1, -20, 0],
          [1, -30, 0],
        ],
        camera,
        size,
      ),
    ).toBeNull();
  });
});
