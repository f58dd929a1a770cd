//! Changes of the list of layers, and which arrays it offers.

import { describe, expect, it } from "vitest";

import { parseDataset, type Dataset } from "../../dataset/dataset.ts";
import type { Json } from "../../json.ts";
import { parseView } from "../../view/parse.ts";
import type { Actions } from "../../app/state.ts";
import { MAX_LAYERS, type Layer, type Transfer } from "../../view/schema.ts";
import { layerActions } from "./colors.ts";
import {
  addArray,
  fittingArrays,
  layerTitle,
  moveLayer,
  removeLayer,
  setLayer,
  withoutColor,
  type Layers,
} from "./edit.ts";

interface Made {
  readonly name: string;
  readonly shape: readonly number[];
  readonly spacing?: number;
  readonly at?: number;
  readonly meaning?: string;
  readonly units?: string;
}

function dataset(arrays: readonly Made[]): Dataset {
  const described = arrays.map(
    ({ name, shape, spacing = 1, at = 0, meaning = "intensity", units = "mm" }) => ({
      name,
      dtype: "<f4",
      meaning,
      world_units: units,
      axes: ["z", "y", "x"].slice(3 - shape.length).map((axis) => ({ name: axis, kind: axis })),
      levels: [
        {
          shape: [...shape],
          origin: "stored",
          factor: shape.map(() => 1),
          world_from_voxel: [
            [spacing, 0, 0, at],
            [0, spacing, 0, at],
            [0, 0, spacing, at],
          ],
        },
      ],
    }),
  );
  return parseDataset({ name: "d", format: "NIfTI", arrays: described });
}

function names(layers: Layers): string[] {
  return layers.map(layerTitle);
}

describe("the list of layers", () => {
  const data = dataset([
    { name: "ct", shape: [20, 20, 20] },
    { name: "seg", shape: [10, 10, 10], spacing: 2, meaning: "labels" },
    { name: "pet", shape: [5, 5, 5], spacing: 4 },
    { name: "far", shape: [5, 5, 5], at: 100 },
    { name: "map", shape: [5, 5, 5], units: "degrees" },
    { name: "line", shape: [9] },
  ]);
  const [ct, seg, pet] = data.arrays;

  it("offers the arrays that lie in the space of the one shown", () => {
    expect(ct && fittingArrays(data, ct).map((array) => array.name)).toEqual(["seg", "pet"]);
    expect(seg && fittingArrays(data, seg).map((array) => array.name)).toEqual(["ct", "pet"]);
  });

  it("offers no tables beside a field, and fields of a file without places only with the same shape", () => {
    const index = (name: string, shape: readonly number[], coordinates: Json = "index") => ({
      name,
      dtype: "<f4",
      axes: ["z", "y", "x"]
        .slice(3 - shape.length)
        .map((kind) => ({ name: `dim ${kind}`, kind, coordinates })),
      levels: [{ shape: [...shape] }],
    });
    const step = { regular: { origin: 0, step: 1 } };
    const file = parseDataset({
      name: "flash",
      arrays: [
        index("amr/pres", [1, 256, 256], step),
        index("amr/temp", [1, 256, 256], step),
        index("block size", [64, 3]),
        index("bounding box", [64, 3, 2]),
        index("gid", [64, 9]),
        index("pres", [1, 32, 32]),
        index("temp", [1, 32, 32]),
        index("fcx1", [1, 32, 33]),
      ],
    });
    const offered = (name: string) => {
      const shown = file.arrays.find((array) => array.name === name);
      return shown && fittingArrays(file, shown).map((array) => array.name);
    };
    expect(offered("amr/pres")).toEqual(["amr/temp"]);
    expect(offered("pres")).toEqual(["temp"]);
  });

  it("lets the file choose the color of geometry again", () => {
    const layers: Layers = [{ geometry: "a.ply", color: [1, 2, 3], opacity: 0.5 }];
    expect(withoutColor(layers, 0)).toEqual([{ geometry: "a.ply", opacity: 0.5 }]);
    expect(withoutColor(layers, 1)).toEqual(layers);
  });

  it("adds labels filled and values without, half transparent, over the others", () => {
    if (!seg || !pet) throw new Error("the arrays were read");
    const layers = addArray(addArray([], seg), pet);
    expect(layers).toEqual([
      { array: "seg", visible: true, opacity: 0.5, labels: "filled" },
      { array: "pet", visible: true, opacity: 0.5 },
    ]);
    const full: Layers = Array.from({ length: MAX_LAYERS }, () => ({ array: "seg" }));
    expect(addArray(full, pet)).toBe(full);
  });

  it("moves, changes and removes one layer", () => {
    const layers: Layers = [{ array: "a" }, { array: "b", name: "B" }, { geometry: "c.ply" }];
    expect(names(moveLayer(layers, 0, 1))).toEqual(["B", "a", "c.ply"]);
    expect(names(moveLayer(layers, 2, -1))).toEqual(["a", "c.ply", "B"]);
    expect(moveLayer(layers, 2, 1)).toBe(layers);
    expect(moveLayer(layers, 0, -1)).toBe(layers);
    expect(setLayer(layers, 1, { visible: false })[1]).toEqual({ array: "b", name: "B", visible: false });
    expect(names(removeLayer(layers, 1))).toEqual(["a", "c.ply"]);
  });
});

describe("colors of a layer", () => {
  it("are changed instead of those of the view, and reset by null", () => {
    const transfer: Transfer = { range: [0, 1], map: "gray", opacity: [[0, 1]] };
    const sets: Partial<Layer>[] = [];
    const none = {} as Actions;
    const own = layerActions(
      none,
      () => ({ array: "a", transfer }),
      (fields) => sets.push(fields),
    );
    own.edit((now) => ({ ...now, map: "viridis" }));
    own.change({ transfer: null });
    own.change({ time: 3 });
    expect(sets).toEqual([{ transfer: { ...transfer, map: "viridis" } }, { transfer: null }]);
  });
});

describe("layers of a link", () => {
  const read = (layers: Json) => parseView({ layers });

  it("are read with what they leave out", () => {
    const { patch, warnings } = read([
      { array: "seg", labels: "outlined", from_the_future: 1 },
      { geometry: "a.ply", opacity: 0.25, color: [1, 2, 3], transfer: null },
    ]);
    expect(warnings).toEqual([]);
    expect(patch.layers).toEqual([
      { array: "seg", labels: "outlined", visible: true, opacity: 1, from_the_future: 1 },
      { geometry: "a.ply", visible: true, opacity: 0.25, color: [1, 2, 3] },
    ]);
  });

  it.each([
    [[{ name: "neither" }]],
    [[{ array: "a", geometry: "b" }]],
    [[{ array: "a", opacity: 2 }]],
    [[{ array: "a", labels: "dotted" }]],
    [[{ array: "a", size: 0 }]],
    [[{ array: "a", at: { c: -1 } }]],
    [[{ array: "a", transfer: { range: [0, 1] } }]],
    [Array.from({ length: MAX_LAYERS + 1 }, () => ({ array: "a" }))],
    ["a"],
  ])("are left out with a warning if they do not fit: %j", (layers) => {
    const { patch, warnings } = read(layers);
    expect(patch.layers).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });
});
