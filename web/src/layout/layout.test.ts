//! Arrangements of pictures: chosen from shapes, cameras of planes, the crosshair and the slices of the view.

import { describe, expect, it } from "vitest";

import { basis, heightAtTarget } from "../camera/camera.ts";
import { parseDataset, type ArrayInfo, type Dataset } from "../dataset/dataset.ts";
import type { Json } from "../json.ts";
import { scaleOf, shareBetween } from "../transfer/value-scale.ts";
import { EMPTY_VIEW, type Camera, type Transfer, type View } from "../view/schema.ts";
import { imageAxis, isPossible, layoutOf } from "./choose.ts";
import {
  crosshairLines,
  crosshairOf,
  isHidden,
  movedIn,
  stepped,
  withCrosshair,
  withShown,
} from "./crosshair.ts";
import { atOffset, obliqueFacing, offsetOf, reach, withOblique } from "./oblique.ts";
import { dragKind, WheelSteps } from "./image-gestures.ts";
import { facesPlane, fitPlane, onScreen, pixelsPerVoxel, voxelAt, zoomPlane } from "./plane-camera.ts";
import { planeName, stanceOn, worldOf, type AxisNumber } from "./space.ts";
import { arranged, completed, NO_MEMORY, squared } from "./view-patches.ts";
import { moved, withSlice } from "../ui/places/slices.ts";
import { withEnd } from "../ui/places/range-slider.ts";
import { windowed } from "./window.ts";

const SIZE = { width: 800, height: 600 };

interface Made {
  readonly shape: readonly number[];
  readonly names?: readonly string[];
  readonly map?: readonly (readonly number[])[];
  readonly format?: string;
  readonly isPlaced?: boolean;
  /** The file states that the space of the world is that of a person. */
  readonly isAnatomical?: boolean;
}

/** A data set with one array on axes z, y, x. */
function made({
  shape,
  names = ["z", "y", "x"],
  map,
  format = "NumPy",
  isPlaced = false,
  isAnatomical = false,
}: Made): {
  dataset: Dataset;
  array: ArrayInfo;
} {
  const attributes: Json = isAnatomical ? { space: "right-anterior-superior" } : {};
  const kinds = ["z", "y", "x"];
  const coordinates: Json = isPlaced ? { regular: { origin: 0, step: 1 } } : "index";
  const axes = names.map((name, i) => ({ name, kind: kinds[i] ?? "other", units: "", coordinates }));
  const level = { shape, origin: "stored", ...(map ? { world_from_voxel: map } : {}) };
  const array = { name: "a", dtype: "<f4", axes, levels: [level], attributes, meaning: "intensity" };
  const dataset = parseDataset({
    id: "0".repeat(32),
    generation: 0,
    name: "d",
    format,
    arrays: [array],
    warnings: [],
  });
  const [first] = dataset.arrays;
  if (!first) throw new Error("expected an array");
  return { dataset, array: first };
}

const view = (change: Partial<View> = {}): View => ({ ...EMPTY_VIEW, array: "a", ...change });
/** Patients' space, turned: x of the voxels runs to the left, slices are sagittal, and voxels are not cubes. */
const TURNED = [
  [0, 0, -2, 40],
  [-1, 0, 0, 50],
  [0, 1.5, 0, -30],
];

describe("the arrangement", () => {
  const one = made({ shape: [1, 90, 180] });
  const volume = made({ shape: [30, 40, 50] });
  const line = made({ shape: [1, 1, 70] });

  it("is chosen from the shape", () => {
    expect(layoutOf(view(), one.array)).toBe("image");
    expect(layoutOf(view(), volume.array)).toBe("space");
    expect(layoutOf(view(), line.array)).toBe("plot");
    expect(layoutOf(view({ layout: "planes" }), volume.array)).toBe("planes");
    expect(layoutOf(view({ layout: "space" }), one.array)).toBe("space");
  });

  it("that an array cannot have is replaced", () => {
    expect(isPossible("planes", one.array)).toBe(false);
    expect(layoutOf(view({ layout: "planes" }), one.array)).toBe("image");
    expect(layoutOf(view({ layout: "image" }), line.array)).toBe("plot");
  });

  it("of a layer that an older link shows from aside is not an image", () => {
    const camera = fitPlane(one.dataset, one.array, 2, SIZE);
    expect(layoutOf(view({ camera }), one.array)).toBe("image");
    const aside = { ...camera, eye: [300, 100, 200] as const };
    expect(layoutOf(view({ camera: aside }), one.array)).toBe("space");
  });

  it("lies across the flat axis, or that of the visible slice", () => {
    expect(imageAxis(view(), made({ shape: [40, 1, 50] }).array)).toBe(1);
    expect(imageAxis(view({ slices: [{ axis: "x", at: 3 }] }), volume.array)).toBe(0);
  });
});

describe("a plane", () => {
  const corner = (camera: Camera, array: ArrayInfo, voxel: readonly [number, number, number]) =>
    onScreen(camera, SIZE, worldOf(array, voxel));

  it("of an image has row 0 on top and column 0 at the left, and fits", () => {
    const { dataset, array } = made({ shape: [1, 90, 180] });
    const camera = fitPlane(dataset, array, 2, SIZE);
    const [first, last] = [corner(camera, array, [-0.5, -0.5, 0]), corner(camera, array, [179.5, 89.5, 0])];
    expect(first.x).toBeLessThan(last.x);
    expect(first.y).toBeLessThan(last.y);
    expect(last.x - first.x).toBeCloseTo(800 / 1.02, 3);
    expect(first.y).toBeGreaterThan(0);
  });

  it.each([1, -1])("of a map has north up and keeps the aspect of coordinates, rows by %d", (step) => {
    const map = [
      [2, 0, 0, 0],
      [0, step, 0, 0],
      [0, 0, 1, 0],
    ];
    const { dataset, array } = made({ shape: [1, 90, 180], names: ["z", "lat", "lon"], map, isPlaced: true });
    const camera = fitPlane(dataset, array, 2, SIZE);
    const [south, north] = step > 0 ? [0, 89] : [89, 0];
    expect(corner(camera, array, [0, north, 0]).y).toBeLessThan(corner(camera, array, [0, south, 0]).y);
    const [a, b] = [corner(camera, array, [0, 0, 0]), corner(camera, array, [10, 10, 0])];
    expect(Math.abs(b.x - a.x)).toBeCloseTo(2 * Math.abs(b.y - a.y), 6);
  });

  it("of a patient is named and seen as radiologists do, however the file is turned", () => {
    const { dataset, array } = made({ shape: [30, 40, 50], map: TURNED, isAnatomical: true });
    expect([0, 1, 2].map((axis) => planeName(array, axis as AxisNumber))).toEqual([
      "Coronal",
      "Axial",
      "Sagittal",
    ]);
    const right = (axis: AxisNumber) => {
      const { right } = basis(fitPlane(dataset, array, axis, SIZE));
      return right.map((x) => Math.round(x));
    };
    // The patient's left at the right of axial and coronal pictures, the back at the right of sagittal ones.
    expect(right(1)).toEqual([-1, 0, 0]);
    expect(right(0)).toEqual([-1, 0, 0]);
    expect(right(2)).toEqual([0, -1, 0]);
    expect(stanceOn(dataset, array, 0).up.map(Math.round)).toEqual([0, 0, 1]);
    const plain = made({ shape: [30, 40, 50], names: ["depth", "y", "x"] });
    expect(planeName(plain.array, 2)).toBe("depth");
  });

  it("of a medical format is that of a patient only if the file says so", () => {
    for (const format of ["NIfTI", "MGH", "NRRD"]) {
      const { array } = made({ shape: [30, 40, 50], map: TURNED, format });
      expect(planeName(array, 2)).toBe("z");
    }
  });

  it("is faced by its camera and by no other", () => {
    const { dataset, array } = made({ shape: [30, 40, 50], map: TURNED, isAnatomical: true });
    for (const axis of [0, 1, 2] as const) {
      const camera = fitPlane(dataset, array, axis, SIZE);
      expect([0, 1, 2].filter((other) => facesPlane(camera, array, other as AxisNumber))).toEqual([axis]);
    }
  });

  it("zooms about the pointer, no nearer than a few voxels", () => {
    const { dataset, array } = made({ shape: [1, 90, 180] });
    const camera = fitPlane(dataset, array, 2, SIZE);
    const pointer = { x: 650, y: 120 };
    const before = voxelAt(camera, SIZE, pointer, array, 2, 0);
    const near = zoomPlane(camera, 0.3, array, 2, SIZE, pointer.x - 400, pointer.y - 300);
    const after = voxelAt(near, SIZE, pointer, array, 2, 0);
    expect(heightAtTarget(near)).toBeCloseTo(0.3 * heightAtTarget(camera), 9);
    expect(after?.[0]).toBeCloseTo(before?.[0] ?? 0, 9);
    expect(after?.[1]).toBeCloseTo(before?.[1] ?? 0, 9);
    expect(heightAtTarget(zoomPlane(camera, 1e-9, array, 2, SIZE))).toBe(2);
  });
});

describe("the crosshair", () => {
  const { dataset, array } = made({ shape: [30, 40, 50], map: TURNED, isAnatomical: true });
  const slices = withCrosshair([], crosshairOf([], array), array);

  it("is in the middle at first, and is kept as slices", () => {
    expect(slices).toEqual([
      { axis: "x", at: 24 },
      { axis: "y", at: 19 },
      { axis: "z", at: 14 },
    ]);
    expect(crosshairOf(slices, array)).toEqual([24, 19, 14]);
  });

  it.each([0, 1, 2] as const)("moves to the voxel under the pointer in the plane across axis %d", (axis) => {
    const camera = fitPlane(dataset, array, axis, SIZE);
    const wanted: [number, number, number] = [7, 31, 22];
    const place = onScreen(camera, SIZE, worldOf(array, wanted));
    const to = voxelAt(camera, SIZE, place, array, axis, crosshairOf(slices, array)[axis]);
    if (!to) throw new Error("expected a place on the plane");
    const moved = withCrosshair(slices, movedIn(axis, crosshairOf(slices, array), to), array);
    const expected = [...wanted];
    expected[axis] = crosshairOf(slices, array)[axis];
    expect(crosshairOf(moved, array)).toEqual(expected);
  });

  it("stays within the volume", () => {
    expect(crosshairOf(withCrosshair(slices, [-5, 100, 14.4], array), array)).toEqual([0, 39, 14]);
    expect(crosshairOf(stepped(slices, array, 2, 99), array)).toEqual([24, 19, 29]);
  });

  it("moves along one axis only, and changes nothing without a slice or beyond the end", () => {
    const between = [
      { axis: "x", at: 3.25 },
      { axis: "y", at: 7.5 },
    ] as const;
    expect(stepped(between, array, 0, 1)).toEqual([{ axis: "x", at: 4 }, between[1]]);
    expect(withCrosshair(between, [3.25, 9.2, 14], array)).toEqual([
      between[0],
      { axis: "y", at: 9 },
      { axis: "z", at: 14 },
    ]);
    expect(stepped(between, array, 2, 1)).toBe(between);
    const end = [{ axis: "z", at: 29 }] as const;
    expect(stepped(end, array, 2, 1)).toBe(end);
  });

  it("leaves other slices as they are", () => {
    const oblique = { axis: "z", at: 3, normal: [1, 1, 1], point: [0, 0, 0] } as const;
    const all = [oblique, ...slices, { axis: "x", at: 2 } as const];
    const moved = withCrosshair(all, [1, 2, 3], array);
    expect(moved[0]).toEqual(oblique);
    expect(moved.at(-1)).toEqual({ axis: "x", at: 2 });
    expect(crosshairOf(moved, array)).toEqual([1, 2, 3]);
    expect(isHidden(withShown(all, false))).toBe(true);
    expect(withShown(withShown(all, false), true)).toEqual(all);
  });

  it("is drawn as a line for each other plane, through the crosshair", () => {
    const camera = fitPlane(dataset, array, 1, SIZE);
    const center = onScreen(camera, SIZE, worldOf(array, [24, 19, 14]));
    for (const { from, to, axis } of crosshairLines(camera, SIZE, array, 1, [24, 19, 14])) {
      const cross = (to.x - from.x) * (center.y - from.y) - (to.y - from.y) * (center.x - from.x);
      expect(Math.abs(cross)).toBeLessThan(1e-6);
      // The plane across z (left to right of the patient) is a vertical line in the axial picture.
      expect(Math.abs(to.x - from.x) < 1e-6).toBe(axis === 2);
    }
  });
});

describe("the controls of slices and of the clip box", () => {
  it("draw a hidden slice again where it was", () => {
    const slices = [{ axis: "x", at: 3.5, hidden: true }] as const;
    expect(withSlice(slices, "x", 9)).toEqual([{ axis: "x", at: 3.5 }]);
    expect(withSlice(slices, "y", 9)).toEqual([...slices, { axis: "y", at: 9 }]);
    expect(moved(slices, "x", 4)).toEqual([{ ...slices[0], at: 4 }]);
  });

  it("move one end of a range and keep the other one exactly", () => {
    expect(withEnd([0.1234, 0.5678], "low", 0.3)).toEqual([0.3, 0.5678]);
    expect(withEnd([0.1234, 0.5678], "high", 0)).toEqual([0.1234, 0.1334]);
    expect(withEnd([0, 0.005], "low", 0.3)).toEqual([0, 0.005]);
  });
});

describe("an oblique plane", () => {
  const { dataset, array } = made({ shape: [30, 40, 50], map: TURNED, isAnatomical: true });
  const camera: Camera = { ...fitPlane(dataset, array, 1, SIZE), eye: [10, -200, 90] };

  it("faces the viewer through the center, and names a similar plane across an axis", () => {
    const plane = obliqueFacing(array, camera);
    expect(Math.hypot(...plane.normal)).toBeCloseTo(1, 9);
    expect(basis(camera).forward.reduce((sum, x, i) => sum + x * (plane.normal[i] ?? 0), 0)).toBeCloseTo(
      -1,
      9,
    );
    // Mostly along the patient's y, which the columns of the file are.
    expect(plane).toMatchObject({ axis: "x", at: 25 });
    expect(offsetOf(array, plane)).toBeCloseTo(0, 9);
  });

  it("moves along its normal from one end of the volume to the other", () => {
    const plane = obliqueFacing(array, camera);
    const end = reach(array, plane.normal);
    expect(offsetOf(array, atOffset(array, plane, 0.7 * end))).toBeCloseTo(0.7 * end, 9);
    expect(atOffset(array, plane, end).at).toBe(49);
    const slices = withOblique([{ axis: "x", at: 3 }], plane);
    expect(withOblique(slices, null)).toEqual([{ axis: "x", at: 3 }]);
    expect(crosshairOf(slices, array)[0]).toBe(3);
  });
});

describe("changes of the view", () => {
  const volume = made({ shape: [30, 40, 50] });
  const one = made({ shape: [1, 90, 180] });
  const opaque = { range: [0, 1], map: "viridis", opacity: [[0, 1]] } as const;

  it("show one slice of a volume as an image, and the volume again", () => {
    const before = view({ camera: { ...fitPlane(volume.dataset, volume.array, 0, SIZE), up: [0, 0, 1] } });
    const image = arranged("image", volume.dataset, volume.array, before, NO_MEMORY, SIZE, 1);
    expect(image).toMatchObject({ mode: "surfaces", slices: [{ axis: "y", at: 19 }] });
    const memory = { camera: before.camera, mode: "maximum", slices: [] } as const;
    const back = arranged("space", volume.dataset, volume.array, { ...before, ...image }, memory, SIZE);
    expect(back).toMatchObject({ mode: "maximum", slices: [], camera: before.camera });
  });

  it("add the missing planes of a link, and keep its own", () => {
    const given = view({ layout: "planes", slices: [{ axis: "y", at: 3 }] });
    expect(completed(volume.dataset, volume.array, given, SIZE)?.slices).toHaveLength(3);
    const whole = { ...given, slices: withCrosshair([], [1, 2, 3], volume.array) };
    expect(completed(volume.dataset, volume.array, whole, SIZE)).toBeNull();
  });

  it("make the camera of a layer parallel, without moving it", () => {
    const camera = {
      ...fitPlane(one.dataset, one.array, 2, SIZE),
      projection: { perspective: { fov_y_rad: 0.5 } },
    };
    const patch = completed(one.dataset, one.array, view({ camera }), SIZE);
    expect(patch?.camera?.target).toEqual(camera.target);
    expect(heightAtTarget(patch?.camera ?? camera)).toBeCloseTo(heightAtTarget(camera), 9);
  });

  it("fit a layer whose camera nobody has moved", () => {
    const far = zoomPlane(fitPlane(one.dataset, one.array, 2, SIZE), 2, one.array, 2, SIZE);
    const patch = completed(one.dataset, one.array, view({ camera: far }), SIZE, true);
    expect(patch?.camera).toEqual(fitPlane(one.dataset, one.array, 2, SIZE));
    expect(completed(one.dataset, one.array, view({ camera: far }), SIZE)).toBeNull();
  });

  it("show voxels as squares where they are large, and interpolated elsewhere", () => {
    const far = fitPlane(one.dataset, one.array, 2, SIZE);
    const near = zoomPlane(far, 0.2, one.array, 2, SIZE);
    expect(pixelsPerVoxel(far, one.array, 2, SIZE)).toBeLessThan(8);
    expect(pixelsPerVoxel(near, one.array, 2, SIZE)).toBeGreaterThan(8);
    const start = view({ camera: near, transfer: opaque });
    const squares = squared(one.array, start, SIZE);
    expect(squares).toEqual({ mode: "surfaces", slices: [{ axis: "z", at: 0, nearest: true }] });
    const shown = { ...start, ...squares };
    expect(squared(one.array, shown, SIZE)).toBeNull();
    expect(squared(one.array, { ...shown, camera: far }, SIZE)).toEqual({ mode: "composite", slices: [] });
    const clear = { ...opaque, opacity: [[0, 0.2] as const] };
    expect(squared(one.array, { ...start, transfer: clear }, SIZE)).toBeNull();
  });
});

describe("gestures on an image", () => {
  it("depend on button, key and crosshair", () => {
    expect(dragKind({ button: 0, altKey: false }, false)).toBe("pan");
    expect(dragKind({ button: 0, altKey: false }, true)).toBe("crosshair");
    expect(dragKind({ button: 1, altKey: false }, true)).toBe("pan");
    expect(dragKind({ button: 2, altKey: false }, true)).toBe("window");
    expect(dragKind({ button: 0, altKey: true }, false)).toBe("window");
  });

  it("step one slice per notch, and collect the parts of a track pad", () => {
    const steps = new WheelSteps();
    expect([100, 120, -100].map((pixels) => steps.add(pixels))).toEqual([1, 1, -1]);
    const parts = new WheelSteps();
    const sum = Array.from({ length: 25 }, () => parts.add(8)).reduce((a, b) => a + b, 0);
    expect(sum).toBe(4);
  });

  it("change center and width of the range, and the curve with it", () => {
    const transfer = {
      range: [100, 300],
      map: "gray",
      opacity: [
        [100, 0],
        [200, 0.5],
        [300, 1],
      ],
    } as const;
    const up = windowed(transfer, 0, 0.25);
    expect(up.range).toEqual([150, 350]);
    expect(up.opacity).toEqual([
      [150, 0],
      [250, 0.5],
      [350, 1],
    ]);
    const wide = windowed(transfer, 0.1, 0);
    expect((wide.range[0] + wide.range[1]) / 2).toBeCloseTo(200, 9);
    expect(wide.range[1] - wide.range[0]).toBeGreaterThan(200);
    const undone = windowed(wide, -0.1, 0);
    expect(undone.range[0]).toBeCloseTo(100, 9);
  });

  it.each(["log", "symlog"] as const)("change the range on its own scale: %s", (scale) => {
    const low = scale === "log" ? 1 : -1000;
    const transfer: Transfer = {
      range: [low, 1000],
      map: "gray",
      scale,
      opacity: [
        [low, 0],
        [10, 0.5],
        [1000, 1],
      ],
    };
    const share = ({ range, opacity, ...rest }: Transfer) =>
      shareBetween(scaleOf({ range, opacity, ...rest }), ...range, opacity[1]?.[0] ?? Number.NaN);
    for (const [right, down] of [
      [0.4, 0],
      [0, -0.9],
      [0.3, 0.2],
    ] as const) {
      const next = windowed(transfer, right, down);
      expect(next.range).not.toEqual(transfer.range);
      if (scale === "log") expect(next.range[0]).toBeGreaterThan(0);
      expect(share(next)).toBeCloseTo(share(transfer), 9);
    }
    if (scale === "log") expect(windowed(transfer, 0, 1 / 3).range[0]).toBeCloseTo(10, 9);
  });
});
