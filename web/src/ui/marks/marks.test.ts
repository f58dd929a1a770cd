//! Marks of whole views: what is written, and that nothing covers anything else.

import { describe, expect, it } from "vitest";

import { INITIAL_STATE, type State } from "../../app/state.ts";
import { AXIS_VIEWS, fit } from "../../camera/camera.ts";
import { parseDataset } from "../../dataset/dataset.ts";
import { worldBox } from "../../dataset/world.ts";
import type { Json } from "../../json.ts";
import { EMPTY_VIEW, type Camera, type Vec3 } from "../../view/schema.ts";
import { positionTexts } from "./caption.ts";
import { composeMarks } from "./compose.ts";
import { lensOf } from "./lens.ts";
import { lettersOf } from "./orientation.ts";
import { lengthText, scaleBar } from "./scale-bar.ts";
import { DEFAULT_MARKS, formatMarks, parseMarks, storedMarks, storeMarks } from "./settings.ts";
import { estimate, meets, textBox, type Box } from "./shapes.ts";
import { volumeOf } from "./volume.ts";

const SIZE = { width: 1200, height: 700 };
const regular = (origin: number, step: number) => ({ regular: { origin, step } });
const axis = (name: string, units: string, coordinates: Json = "index", kind = name) => ({
  name,
  kind,
  units,
  coordinates,
});
const spacing = (steps: Vec3, origin: Vec3 = [0, 0, 0]) =>
  [0, 1, 2].map((row) =>
    [0, 1, 2, 3].map((c) => (c === 3 ? (origin[row] ?? 0) : c === row ? (steps[row] ?? 0) : 0)),
  );

function stateOf(array: object, camera: (box: NonNullable<ReturnType<typeof worldBox>>) => Camera): State {
  const dataset = parseDataset(
    JSON.parse(JSON.stringify({ name: "d.nc", arrays: [{ name: "a", ...array }] })) as Json,
  );
  const [first] = dataset.arrays;
  const box = first && worldBox(first);
  if (!box) throw new Error("expected an array");
  const transfer = { range: [0, 10], map: "viridis", opacity: [] } as const;
  const view = { ...EMPTY_VIEW, array: "a", camera: camera(box), transfer };
  return { ...INITIAL_STATE, dataset, array: first, view };
}

const from = (index: number) => (box: Parameters<typeof fit>[0]) => {
  const { forward, up } = AXIS_VIEWS[index] ?? { forward: [0, 1, 0] as const, up: [0, 0, 1] as const };
  return fit(box, forward, up, SIZE);
};
const MAP = {
  axes: [
    axis("time", "days since 2001-01-01", regular(31, 1)),
    axis("lat", "degrees_north", regular(-90, 2), "y"),
    axis("lon", "degrees_east", regular(0, 2), "x"),
  ],
  levels: [{ shape: [9, 91, 180], world_from_voxel: spacing([2, 2, 1], [0, -90, 0]) }],
  world_units: "degrees",
  units: "K",
  attributes: { calendar: "noleap" },
};
const CUBE = {
  axes: [axis("z", "um", regular(0, 2)), axis("y", "um", regular(0, 0.5)), axis("x", "um", regular(0, 0.5))],
  levels: [{ shape: [40, 200, 200], world_from_voxel: spacing([0.5, 0.5, 2]) }],
  world_units: "um",
};
const ALL = { ...DEFAULT_MARKS, time: true, title: true };

function textsOf(state: State, panels: readonly Box[] = [], size = SIZE): string[] {
  return composeMarks(state, ALL, size, panels, estimate).flatMap((shape) =>
    shape.kind === "text" ? [shape.text] : [],
  );
}

describe("marks", () => {
  it("of a map are degrees, a date, a color bar, and a length at the center's latitude", () => {
    const texts = textsOf(stateOf(MAP, from(4)));
    for (const text of ["60°S", "0°", "60°N", "90°E", "90°W", "2001-02-01", "a (K)", "d.nc · a"])
      expect(texts).toContain(text);
    expect(texts.some((text) => /^\d+ km at 0°$/.test(text))).toBe(true);
  });

  it("never cover one another or a panel, at any size and from any direction", () => {
    const directions: Vec3[] = [
      [-0.45, 0.8, -0.4],
      [0, 1, 0],
      [0, 0, -1],
      [1, 0.1, -0.05],
      [1, 1, 1],
    ];
    for (const array of [MAP, CUBE])
      for (const direction of directions)
        for (const size of [SIZE, { width: 360, height: 640 }, { width: 700, height: 300 }]) {
          const panels: Box[] =
            size.width < 500
              ? [{ left: 10, top: 10, right: 300, bottom: 90 }]
              : [
                  { left: 14, top: 14, right: 330, bottom: 110 },
                  { left: size.width - 314, top: 14, right: size.width - 14, bottom: size.height - 14 },
                ];
          const up: Vec3 = Math.abs(direction[2]) > 0.9 ? [0, 1, 0] : [0, 0, 1];
          const state = stateOf(array, (box) => fit(box, direction, up, size));
          const boxes = composeMarks(state, ALL, size, panels, estimate).flatMap((shape) =>
            shape.kind === "text" ? [textBox(shape.at, shape.text, shape.anchor, estimate)] : [],
          );
          const shrunk = (box: Box) => ({
            left: box.left + 1,
            right: box.right - 1,
            top: box.top + 2,
            bottom: box.bottom - 2,
          });
          boxes.forEach((box, i) => {
            expect(panels.some((panel) => meets(panel, shrunk(box)))).toBe(false);
            const others = boxes.slice(i + 1).filter((other) => meets(shrunk(other), shrunk(box)));
            expect(others).toEqual([]);
            expect(box.left >= -1 && box.right <= size.width + 1).toBe(true);
          });
          expect(boxes.length).toBeGreaterThan(2);
        }
  });

  it("follow uneven axes, and steps of depth downward", () => {
    const depths = [0, 10, 20, 50, 100, 200, 500, 1000];
    const array = {
      ...CUBE,
      axes: [axis("depth", "m", { explicit: depths }, "z"), axis("y", "", "index"), axis("x", "", "index")],
      levels: [{ shape: [8, 20, 20], world_from_voxel: spacing([1, 1, -1]) }],
      world_units: "",
    };
    const state = stateOf(array, from(0));
    const volume = state.array && volumeOf(state.array, "standard");
    const shapes = composeMarks(
      state,
      { ...ALL, colors: false, time: false, title: false },
      SIZE,
      [],
      estimate,
    );
    const at = (text: string) =>
      shapes.flatMap((s) =>
        s.kind === "text" && s.text === text && s.anchor === "end" ? [s.at.y] : [],
      )[0] ?? Number.NaN;
    expect(volume?.axes[2].isToScale).toBe(false);
    // 0 and 200 are the samples of index 0 and 5; 400 lies at two thirds of the way from there to 500.
    expect((at("200") - at("0")) / (at("400") - at("200"))).toBeCloseTo(7.5, 3);
    expect(at("200")).toBeGreaterThan(at("0"));
    expect(textsOf(state).some((text) => text.endsWith("m") && /^\d/.test(text))).toBe(false);
  });

  it("name the calendar's date, and the positions on other axes", () => {
    const array = {
      ...MAP,
      axes: [axis("member", "", "index", "other"), ...MAP.axes],
      levels: [{ ...MAP.levels[0], shape: [3, 9, 91, 180] }],
    };
    const { dataset, array: info } = stateOf(array, from(4));
    if (!dataset || !info) throw new Error("expected an array");
    const view = { ...EMPTY_VIEW, time: 8, at: { member: 1 } };
    expect(positionTexts(dataset, info, view)).toEqual(["2001-02-09", "member 2 / 3"]);
  });
});

describe("scale bar", () => {
  it("has the prefix that fits", () => {
    const cases: readonly (readonly [number, string, string])[] = [
      [0.002, "mm", "2 µm"],
      [50, "micrometer", "50 µm"],
      [1000, "um", "1 mm"],
      [50, "mm", "50 mm"],
      [200, "mm", "20 cm"],
      [5000, "m", "5 km"],
      [1e-9, "m", "1 nm"],
      [2e21, "m", "2.00e21 m"],
      [5, "Mpc", "5 Mpc"],
      [5, "", "5"],
    ];
    for (const [length, units, text] of cases) expect(lengthText(length, units)).toBe(text);
  });

  it("is as long as the length that it names, at the depth of the target", () => {
    const { array, view } = stateOf(CUBE, (box) => fit(box, [-0.45, 0.8, -0.4], [0, 0, 1], SIZE));
    const volume = array && volumeOf(array, "standard");
    if (!volume || !view.camera) throw new Error("expected a volume");
    const lens = lensOf(view.camera, SIZE);
    const bar = scaleBar(volume, lens, 160);
    if (!bar) throw new Error("expected a bar");
    const micrometers = Number.parseFloat(bar.text);
    const { target } = view.camera;
    const [a, b] = [
      lens.place(target),
      lens.place(
        [0, 1, 2].map((i) => (target[i] ?? 0) + (lens.right[i] ?? 0) * micrometers) as unknown as Vec3,
      ),
    ];
    expect(a && b && b.x - a.x).toBeCloseTo(bar.pixels, 6);
  });

  it("tells kilometers at a latitude on maps, and nothing near poles or from aside", () => {
    const { array, view } = stateOf(MAP, from(4));
    const volume = array && volumeOf(array, "noleap");
    const { camera } = view;
    if (!volume || !camera) throw new Error("expected a volume");
    expect(volume.isMap).toBe(true);
    const at = (latitude: number) => {
      const moved = { ...camera, eye: [180, latitude, 30], target: [180, latitude, 0] } as Camera;
      return scaleBar(volume, lensOf(moved, SIZE), 160);
    };
    const [equator, north] = [at(0), at(60)];
    const perPixel = (bar: typeof north) => Number.parseFloat(bar?.text ?? "") / (bar?.pixels ?? 1);
    expect(north?.text).toMatch(/ km at 60°N$/);
    expect(perPixel(north) / perPixel(equator)).toBeCloseTo(0.5, 6);
    expect(at(80)).toBeNull();
    const aside = { ...camera, eye: [0, -300, 200] } as Camera;
    expect(scaleBar(volume, lensOf(aside, SIZE), 160)).toBeNull();
  });
});

describe("orientation", () => {
  it("has the letters of a person's sides, in the order of their parts", () => {
    expect(lettersOf([1, 0, 0])).toBe("R");
    expect(lettersOf([-0.6, -0.8, 0.1])).toBe("PL");
    expect(lettersOf([0, 0.2, -0.98])).toBe("I");
  });

  it("is written for anatomical space only: seen from the front the person's right is at the left", () => {
    const person = { ...CUBE, attributes: { space: "right-anterior-superior" } };
    // From the front: looking toward -y.
    const shapes = composeMarks(stateOf(person, from(2)), DEFAULT_MARKS, SIZE, [], estimate);
    const letter = (text: string) =>
      shapes.flatMap((s) => (s.kind === "text" && s.text === text ? [s.at] : []))[0];
    expect(letter("R")?.x).toBeLessThan(200);
    expect(letter("L")?.x).toBeGreaterThan(1000);
    expect(letter("S")?.y).toBeLessThan(100);
    expect(letter("I")?.y).toBeGreaterThan(600);
    const plain = composeMarks(stateOf(CUBE, from(2)), DEFAULT_MARKS, SIZE, [], estimate);
    expect(plain.some((s) => s.kind === "text" && s.text === "S")).toBe(false);
  });

  it("has letters that do not lie on the texts of axes", () => {
    const person = { ...CUBE, attributes: { space: "right-anterior-superior" } };
    for (const width of [300, 320, 360, 420]) {
      const size = { width, height: 640 };
      const shapes = composeMarks(stateOf(person, from(2)), DEFAULT_MARKS, size, [], estimate);
      const texts = shapes.flatMap((s) =>
        s.kind === "text" ? [textBox(s.at, s.text, s.anchor, estimate)] : [],
      );
      const pairs = texts.flatMap((a, i) => texts.slice(i + 1).filter((b) => meets(a, b)));
      expect(pairs, String(width)).toEqual([]);
    }
  });

  it("has arms that look from their end, and from the other side if they point at the eye already", () => {
    const arms = (index: number) =>
      composeMarks(stateOf(CUBE, from(index)), DEFAULT_MARKS, SIZE, [], estimate).flatMap((s) =>
        s.kind === "disk" ? [s.axisView] : [],
      );
    expect(arms(2).toSorted()).toEqual([0, 3, 4]);
    expect(arms(1).toSorted()).toEqual([0, 2, 4]);
  });
});

describe("switches", () => {
  it("are in links only where they differ, and survive a visit", () => {
    expect(formatMarks(DEFAULT_MARKS)).toBeNull();
    const own = { ...DEFAULT_MARKS, axes: false, title: true };
    expect(parseMarks(formatMarks(own))).toEqual(own);
    const none = parseMarks("none");
    expect(none && formatMarks(none)).toBe("none");
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    };
    expect(storedMarks(storage)).toEqual(DEFAULT_MARKS);
    storeMarks(storage, own);
    expect(storedMarks(storage)).toEqual(own);
    const forbidden = {
      getItem: () => {
        throw new Error("denied");
      },
      setItem: () => {
        throw new Error("denied");
      },
    };
    storeMarks(forbidden, own);
    expect(storedMarks(forbidden)).toEqual(DEFAULT_MARKS);
  });
});
