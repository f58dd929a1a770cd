//! Arrows: their places, shapes, legend, and the reading of the components.

import { describe, expect, it } from "vitest";

import { Calls } from "../../app/calls.ts";
import { INITIAL_STATE, type State } from "../../app/state.ts";
import { parseDataset, parseDrawn, asDrawn, type ArrayInfo } from "../../dataset/dataset.ts";
import { EMPTY_VIEW, type Camera, type Vec3, type View } from "../../view/schema.ts";
import type { ToWorker } from "../../worker/messages.ts";
import { Layout } from "../marks/layout.ts";
import { lensOf } from "../marks/lens.ts";
import { estimate } from "../marks/shapes.ts";
import {
  arrowShapes,
  chosenVectors,
  lattice,
  longestOf,
  MAX_ARROWS,
  vectorArrays,
  vectorsOf,
  type VectorField,
} from "./field.ts";
import { readVectors } from "./reader.ts";

const SIZE = { width: 400, height: 300 };
const ABOVE: Camera = {
  eye: [50, 40, 200],
  target: [50, 40, 0],
  up: [0, 1, 0],
  projection: { orthographic: { height_world: 60 } },
};
const axis = (name: string, kind: string) => ({ name, kind, units: "", coordinates: "index" });
const level = (shape: number[]) => ({
  shape,
  origin: "stored",
  world_from_voxel: [
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
  ],
});
const grid = { axes: [axis("z", "z"), axis("y", "y"), axis("x", "x")], levels: [level([20, 80, 100])] };
const other = { axes: grid.axes, levels: [level([2, 8, 10])] };
const LENGTHS = "|u,v|";
const DATASET = asDrawn(
  parseDataset({
    id: "d",
    name: "run",
    arrays: [
      { name: "u", dtype: "<f4", ...grid },
      { name: "v", dtype: "<f4", ...grid },
      { name: "heat", dtype: "<f4", ...grid },
      { name: "small", dtype: "<f4", ...other },
    ],
  }),
  parseDrawn([{ name: LENGTHS, dtype: "<f4", units: "m s-1", components: ["u", "v"], ...grid }]),
);
const named = (name: string): ArrayInfo => {
  const found = DATASET.arrays.find((array) => array.name === name);
  if (!found) throw new Error(name);
  return found;
};
const viewOf = (more: Partial<View> = {}): View => ({
  ...EMPTY_VIEW,
  camera: ABOVE,
  slices: [{ axis: "z", at: 7 }],
  ...more,
});

describe("the vectors to draw", () => {
  it("are those of the shown lengths, or chosen for another array of the same grid", () => {
    expect(vectorArrays(DATASET, named("heat")).map(({ name }) => name)).toEqual([LENGTHS]);
    expect(chosenVectors(DATASET, named(LENGTHS), null)?.name).toBe(LENGTHS);
    expect(chosenVectors(DATASET, named("heat"), null)).toBeNull();
    expect(chosenVectors(DATASET, named("heat"), LENGTHS)?.name).toBe(LENGTHS);
    expect(chosenVectors(DATASET, named(LENGTHS), "")).toBeNull();
    expect(chosenVectors(DATASET, named("small"), LENGTHS)).toBeNull();
  });

  it("stand on the slices, at bounded numbers", () => {
    const { points } = lattice(viewOf(), named("u"), SIZE);
    expect(points.length).toBeGreaterThan(50);
    expect(points.every(([, , z]) => Math.abs(z - 7) < 1e-9)).toBe(true);
    expect(lattice(viewOf({ slices: [] }), named("u"), SIZE).points).toEqual([]);
    expect(
      lattice(viewOf({ slices: [{ axis: "z", at: 7, hidden: true }] }), named("u"), SIZE).points,
    ).toEqual([]);
    const large = lattice(viewOf(), named("u"), { width: 4000, height: 3000 });
    expect(large.points.length).toBeLessThanOrEqual(MAX_ARROWS);
    expect(large.points.length).toBeGreaterThan(MAX_ARROWS / 2);
  });
});

describe("arrows", () => {
  it("point where the vectors do, and the longest is as long as the distance allows", () => {
    const vectors: (Vec3 | null)[] = [[3, 0, 0], [0, 1.5, 0], null, [0, 0, 0]];
    const points: Vec3[] = [
      [45, 40, 7],
      [50, 40, 7],
      [55, 40, 7],
      [60, 40, 7],
    ];
    const field: VectorField = {
      array: LENGTHS,
      units: "m s-1",
      points,
      vectors,
      spacing: 40,
      longest: longestOf(vectors),
    };
    const layout = new Layout(SIZE, [], []);
    const [arrows, , legend, text] = arrowShapes(field, lensOf(ABOVE, SIZE), layout, estimate);
    if (arrows?.kind !== "segments" || legend?.kind !== "segments") throw new Error("expected arrows");
    // Two arrows of a shaft and a head, and a dot.
    expect(arrows.segments).toHaveLength(7);
    const along = (i: number) => {
      const [from, to] = arrows.segments[i] ?? [];
      return from && to ? { x: to.x - from.x, y: to.y - from.y } : null;
    };
    expect(along(0)?.x).toBeCloseTo(0.92 * 40);
    expect(along(0)?.y).toBeCloseTo(0);
    expect(along(3)?.y).toBeCloseTo(-0.46 * 40);
    const [from, to] = legend.segments[0] ?? [];
    expect((to?.x ?? 0) - (from?.x ?? 0)).toBeCloseTo((0.92 * 40 * 2) / 3);
    expect(text).toMatchObject({ kind: "text", text: "2 m s⁻¹" });
    expect(arrowShapes({ ...field, longest: 0 }, lensOf(ABOVE, SIZE), layout, estimate)).toEqual([]);
  });

  it("are missing where a component is", () => {
    expect(
      vectorsOf(
        [
          [1, 2, null],
          [3, null, 4],
        ],
        3,
      ),
    ).toEqual([[1, 3, 0], null, null]);
  });
});

describe("components", () => {
  const state: State = { ...INITIAL_STATE, dataset: DATASET, array: named(LENGTHS), view: viewOf(), you: 3 };
  const answer = (decoded: (number | null)[]) => ({
    result: {
      array: "u",
      channels: [{ decoded, stored: decoded, missing: decoded.map((v) => v === null) }],
      index: [],
    },
  });

  it("are read at all points, in one request each", () => {
    const sent: ToWorker[] = [];
    const calls = new Calls((message) => sent.push(message));
    let found: readonly (Vec3 | null)[] | null = null;
    readVectors(
      calls,
      state,
      named(LENGTHS),
      [
        [1, 2, 7],
        [3, 4, 7],
      ],
      (vectors) => {
        found = vectors;
      },
    );
    expect(sent.map((message) => message.kind === "call" && message.parameters)).toMatchObject([
      {
        kind: "points",
        points: [
          [1, 2, 7],
          [3, 4, 7],
        ],
        view: { array: "u" },
      },
      { kind: "points", view: { array: "v" } },
    ]);
    calls.called(1, answer([1, 2]), new Uint8Array());
    calls.ended(1, null);
    expect(found).toBeNull();
    calls.called(2, answer([5, null]), new Uint8Array());
    calls.ended(2, null);
    expect(found).toEqual([[1, 5, 0], null]);
  });

  it("that cannot be read leave the arrows as they are", () => {
    const calls = new Calls(() => undefined);
    const ends: unknown[] = [];
    readVectors(calls, state, named(LENGTHS), [[1, 2, 7]], (vectors) => ends.push(vectors));
    calls.called(1, answer([1]), new Uint8Array());
    calls.ended(1, null);
    calls.ended(2, "the connection was lost");
    expect(ends).toEqual([null]);
  });
});
