//! Views: parsing of JSON by other programs, and links that contain views.

import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Json, JsonObject } from "../json.ts";
import { formatFragment, formatView, parseFragment } from "./fragment.ts";
import { parseView, viewToJson } from "./parse.ts";
import { EMPTY_VIEW, wholeView, type View } from "./schema.ts";

/** Test vectors, which the Rust tests read too. */
const VECTORS = JSON.parse(
  readFileSync(new URL("../../../lab/vectors/views.json", import.meta.url), "utf8"),
) as {
  readonly legal: readonly JsonObject[];
  readonly former: readonly (readonly [JsonObject, JsonObject])[];
  readonly refused: readonly JsonObject[];
};

const DOCUMENTED: Json = {
  v: 1,
  array: "rho",
  time: 3,
  at: { channel: 2 },
  level: null,
  camera: {
    eye: [1, 2, 3],
    target: [0, 0, 0],
    up: [0, 0, 1],
    projection: { perspective: { fov_y_rad: 0.6 } },
  },
  transfer: {
    range: [0, 1],
    map: "viridis",
    opacity: [
      [0, 0],
      [1, 0.5],
    ],
  },
  color_by: { array: "temperature", at: { channel: 1 }, range: [270, 300], map: "magma" },
  surfaces: [{ value: 0.5, color: [230, 190, 150], opacity: 0.75 }],
  slices: [{ axis: "z", at: 12.5 }],
  mode: "composite",
  shading: true,
  grids: true,
  stereo: 0.04,
  clip: null,
  background: [0, 0, 0],
  layout: "planes",
  grid: { rows: 1, columns: 2, tied: true, cells: [{ time: 4 }] },
};

describe("parse", () => {
  it("reads the documented view and writes it unchanged", () => {
    const { patch, warnings } = parseView(DOCUMENTED);
    expect(warnings).toEqual([]);
    expect(viewToJson(patch)).toEqual(DOCUMENTED);
  });

  it("keeps fields it does not know, at the top and inside", () => {
    const newer = {
      ...DOCUMENTED,
      cursor: [1],
      transfer: { ...(DOCUMENTED.transfer as object), gamma: "x" },
      color_by: { ...(DOCUMENTED.color_by as object), gamma: "x" },
    } as Json;
    expect(viewToJson(parseView(newer).patch)).toEqual(newer);
  });

  it("reads automatic colors by another array", () => {
    const { patch, warnings } = parseView({ color_by: { array: "temperature" } });
    expect(warnings).toEqual([]);
    expect(patch.color_by).toEqual({ array: "temperature", at: {}, range: null, map: null });
    expect(parseView({ color_by: null })).toEqual({ patch: { color_by: null }, warnings: [] });
  });

  it.each(VECTORS.legal)("reads and writes the golden view %j unchanged", (view) => {
    const { patch, warnings } = parseView(view);
    expect(warnings).toEqual([]);
    expect(viewToJson(patch)).toEqual({ v: 1, ...view });
  });

  it.each(VECTORS.former)("reads the former spelling %j and writes the present one", (former, present) => {
    const { patch, warnings } = parseView(former);
    expect(warnings).toEqual([]);
    expect(viewToJson(patch)).toEqual({ v: 1, ...present });
  });

  it.each(VECTORS.refused)("refuses the golden %j", (view) => {
    const { patch, warnings } = parseView(view);
    expect(warnings).toHaveLength(1);
    expect(patch).toEqual({});
  });

  it.each<[string, Json]>([
    ["time", -1],
    ["time", 0.5],
    ["level", 400],
    ["array", 7],
    ["at", { channel: "two" }],
    [
      "camera",
      { eye: [0, 0, 0], target: [0, 0, 0], up: [0, 0, 1], projection: { perspective: { fov_y_rad: 1 } } },
    ],
    ["camera", { eye: [1, 0], target: [0, 0, 0], up: [0, 0, 1], projection: {} }],
    ["transfer", { range: [1, 1], map: "gray", opacity: [[0, 0]] }],
    ["transfer", { range: [0, 1], map: "gray", opacity: [[0, 2]] }],
    ["transfer", { range: [0, 1], map: "gray", opacity: [] }],
    ["transfer", { range: [0, 1], map: "gray", opacity: Array.from({ length: 300 }, () => [0, 0]) }],
    ["transfer", { range: [0, 1, 2], map: "gray", opacity: [[0, 0]] }],
    ["color_by", "temperature"],
    ["color_by", { map: "magma" }],
    ["color_by", { array: "temperature", at: { channel: "two" } }],
    ["color_by", { array: "temperature", at: null }],
    ["color_by", { array: "temperature", range: [300, 270] }],
    ["color_by", { array: "temperature", range: [270] }],
    ["color_by", { array: "temperature", map: 7 }],
    ["color_by", { array: "temperature", map: "" }],
    [
      "clip",
      [
        [0, 0, 0],
        [1, 0, 1],
      ],
    ],
    ["background", [0, 0, 300]],
    ["surfaces", [{ value: 1, color: [0, 0, 0], opacity: 2 }]],
    ["surfaces", Array.from({ length: 21 }, () => ({ value: 1, color: [0, 0, 0], opacity: 1 }))],
    ["mode", "sideways"],
    ["slices", [{ axis: "t", at: 1 }]],
    ["slices", [{ axis: "x", at: "middle" }]],
    ["slices", Array.from({ length: 17 }, () => ({ axis: "x", at: 1 }))],
    ["shading", 1],
    ["grids", "yes"],
    ["stereo", 0],
    ["stereo", 0.75],
  ])("leaves out a %s that does not fit, with a warning, and keeps the rest", (field, value) => {
    const { patch, warnings } = parseView({ array: "rho", time: 1, [field]: value });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(field);
    expect(Object.keys(patch)).toEqual(["array", "time"].filter((name) => name !== field));
  });
});

describe("fragment", () => {
  const view: View = { ...EMPTY_VIEW, ...parseView(DOCUMENTED).patch };

  it("encodes and decodes the whole view", () => {
    const { view: read, token } = parseFragment(formatFragment(view, null));
    expect(token).toBeNull();
    expect({ ...EMPTY_VIEW, ...read?.patch }).toEqual(view);
  });

  it("keeps all digits of coordinates, such as half a millimeter of a northing", () => {
    const eye = [412_345.678_25, 5_412_345.000_5, 12.3] as const;
    const far = { ...view, camera: view.camera && { ...view.camera, eye } };
    expect(parseFragment(formatFragment(far, null)).view?.patch.camera?.eye).toEqual(eye);
    const slices = [{ axis: "z", at: 123_456.062_5 }] as const;
    const read = parseFragment(formatFragment({ ...view, slices }, null)).view;
    expect(read?.patch.slices).toEqual(slices);
  });

  it("encodes any text", () => {
    const odd: View = { ...view, array: "größe/日本 &=#" };
    expect(parseFragment(formatFragment(odd, "a&b=c")).view?.patch.array).toBe(odd.array);
    expect(parseFragment(formatFragment(odd, "a&b=c")).token).toBe("a&b=c");
  });

  it("is compact, and consists of characters that messages do not change", () => {
    const text = formatView({
      ...view,
      camera: view.camera && { ...view.camera, eye: [1 / 3, 2 / 3, 1e9 / 7] },
    });
    expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(text.length).toBeLessThan(820);
    expect(formatView(EMPTY_VIEW).length).toBeLessThan(20);
  });

  it("reads plain and percent-encoded JSON too, and parts in any order", () => {
    const json = JSON.stringify(DOCUMENTED);
    for (const text of [json, encodeURIComponent(json)]) {
      const { view: read, token } = parseFragment(`#view=${text}&token=abc`);
      expect(read?.patch.time).toBe(3);
      expect(token).toBe("abc");
    }
  });

  it("with a damaged view warns instead of failing", () => {
    for (const text of ["%%%", "AAAA", "{", "bnVsbA", "x".repeat(100_000)]) {
      expect(parseFragment(`#view=${text}`).view?.warnings).toHaveLength(1);
    }
    expect(parseFragment("")).toEqual({ token: null, view: null, marks: null, panes: {} });
  });

  it("has the cameras of further pictures, and leaves out what does not fit", () => {
    const camera = (x: number) => ({
      eye: [x, 2, 3] as const,
      target: [4, 5, 6] as const,
      up: [0, 0, 1] as const,
      projection: { orthographic: { height_world: 7 } },
    });
    const panes = { "plane-x": camera(1), "cell-3": camera(-5412345.25) };
    expect(parseFragment(formatFragment(EMPTY_VIEW, null, "off", panes)).panes).toEqual(panes);
    expect(formatFragment(EMPTY_VIEW, null, null, {})).not.toContain("panes");
    const bad = { "plane-w": camera(1), "plane-y": { eye: [1, 2] }, "plane-z": camera(9) };
    const text = btoa(JSON.stringify(bad)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
    expect(Object.keys(parseFragment(`#panes=${text}`).panes)).toEqual(["plane-z"]);
    expect(parseFragment("#panes=%%%").panes).toEqual({});
  });
});

describe("the view of another link", () => {
  it("has defaults for what it leaves out, and the array that is shown", () => {
    expect(wholeView({ time: 3 }, "rho")).toEqual({ ...EMPTY_VIEW, array: "rho", time: 3 });
    expect(wholeView({ array: "u" }, "rho").array).toBe("u");
  });
});
