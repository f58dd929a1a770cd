import { describe, expect, it } from "vitest";

import { asDrawn, parseDataset, parseDrawn, type ArrayInfo, type Dataset } from "../dataset/dataset.ts";
import type { Json, JsonObject } from "../json.ts";
import {
  clipAxis,
  fileIndex,
  indexText,
  placeAxis,
  placeText,
  typedVoxel,
  voxelOfFileIndex,
} from "./place.ts";

function described(z: Json, map: readonly (readonly number[])[], more: JsonObject = {}): JsonObject {
  return {
    name: "rho",
    dtype: "<f4",
    axes: [
      { name: "depth", kind: "z", units: "m", coordinates: z },
      { name: "y", kind: "y" },
      { name: "x", kind: "x" },
    ],
    levels: [{ shape: [4, 5, 6], world_from_voxel: map as unknown as Json }],
    ...more,
  };
}

const MAP = [
  [1, 0, 0, 0],
  [0, 2, 0, 10],
  [0, 0, 1, 0],
];

function only(dataset: Dataset): ArrayInfo {
  const [array] = dataset.arrays;
  if (!array) throw new Error("expected an array");
  return array;
}

describe("places across an axis", () => {
  it("are those of the file, or of the world where it has units", () => {
    const regular = { regular: { origin: 100, step: -10 } };
    const dataset = parseDataset({ name: "d", arrays: [described(regular, MAP, { world_units: "mm" })] });
    const array = only(dataset);
    const depth = placeAxis(dataset, array, 2);
    expect(placeText(depth, 2)).toBe("80 m");
    expect(placeText(placeAxis(dataset, array, 1), 3)).toBe("16 mm");
    if (!depth) throw new Error("expected coordinates");
    expect(typedVoxel("75 m", depth, 4)).toEqual({ place: 2.5 });
    expect(typedVoxel("40", depth, 4)).toEqual({ problem: "Enter a position from 100 m to 70 m" });
    const plain = parseDataset({ name: "d", arrays: [described("index", MAP)] });
    expect(placeAxis(plain, only(plain), 2)).toBeNull();
  });

  it("of uneven axes have the index of the file and the coordinate of the even grid", () => {
    const uneven = { explicit: [0, 10, 50, 250] };
    const stored = parseDataset({ name: "d", arrays: [described(uneven, MAP)] });
    const even = {
      ...described({ regular: { origin: 0, step: 10 } }, MAP),
      levels: [{ shape: [26, 5, 6], world_from_voxel: MAP }],
      dtype: "",
    };
    const array = only(asDrawn(stored, parseDrawn([even])));
    expect(fileIndex(array, 2, 5)).toEqual({ index: 2, size: 4 });
    expect(fileIndex(array, 2, 24)).toEqual({ index: 3, size: 4 });
    expect(voxelOfFileIndex(array, 2, 3)).toBe(25);
    expect(fileIndex(array, 1, 3)).toEqual({ index: 3, size: 5 });
    expect([indexText(array, 2, 24), indexText(array, 1, 0)]).toEqual(["3 / 3", "0 / 4"]);
  });

  it("of the clip box are read and typed by coordinate, or by index", () => {
    const regular = { regular: { origin: 100, step: -10 } };
    const down = [MAP[0] ?? [], MAP[1] ?? [], [0, 0, -1, 0]];
    const dataset = parseDataset({ name: "d", arrays: [described(regular, down)] });
    const depth = clipAxis(dataset, only(dataset), 2);
    // The highest end of the box is the first voxel's outer side.
    expect(depth.text(1)).toBe("105 m");
    expect(depth.parse("85")).toEqual({ place: 0.5 });
    expect(depth.parse("500")).toEqual({ place: 1 });
    const x = clipAxis(dataset, only(dataset), 0);
    expect(x.text(0)).toBe("-0.5");
    expect(x.parse("2.5")).toEqual({ place: 0.5 });
    expect(x.parse("here")).toEqual({ problem: "Enter an index, counted from 0" });
  });
});
