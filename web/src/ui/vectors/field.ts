//! Vectors as arrows on slices and maps: which arrays are vectors, where arrows stand, and their shapes. Pure.

import type { Size } from "../../camera/camera.ts";
import { dot } from "../../camera/vec.ts";
import { isOneLayer, spaceShape, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import { slicePoint, worldPoint } from "../../session/together/space.ts";
import type { Vec3, View } from "../../view/schema.ts";
import type { Layout } from "../marks/layout.ts";
import type { Lens } from "../marks/lens.ts";
import { LINE, type Measure, type Point, type Shape } from "../marks/shapes.ts";
import { roundBelow } from "../marks/ticks.ts";

/** Most arrows: the node reads as many points at once, and more arrows hide one another. */
export const MAX_ARROWS = 600;
/** Least distance of arrows, CSS pixels. */
const SPACING = 38;
/** Length of the longest arrow as a share of the distance. */
const LONGEST = 0.92;
/** Angle between the shaft and a side of the head, and the length of that side as a share of the shaft. */
const HEAD_RADIANS = 0.45;
const HEAD_SHARE = 0.34;
/** Arrows shorter than this are dots. */
const DOT_PIXELS = 1.5;

/** Vectors at points. */
export interface VectorField {
  /** Array of the lengths of the vectors. */
  readonly array: string;
  readonly units: string;
  readonly points: readonly Vec3[];
  /** Vector at each point; null where a component is missing. */
  readonly vectors: readonly (Vec3 | null)[];
  /** Distance of the points on the screen when they were chosen, CSS pixels. */
  readonly spacing: number;
  /** Largest length; 0 without vectors. */
  readonly longest: number;
}

/** Choice of the vectors to draw, and those that were read last. */
export interface ArrowState {
  /** Array of their lengths, empty for none; null: the shown array, if it is one of lengths. */
  readonly choice: string | null;
  readonly field: VectorField | null;
}

export const NO_ARROWS: ArrowState = { choice: null, field: null };

/** Returns the arrays of lengths of vectors on the grid of the shown array. */
export function vectorArrays(dataset: Dataset, shown: ArrayInfo): readonly ArrayInfo[] {
  const place = (array: ArrayInfo) => JSON.stringify([spaceShape(array), array.levels[0]?.worldFromVoxel]);
  const own = place(shown);
  return dataset.arrays
    .filter(({ components = [] }) => components.length > 0)
    .filter((a) => place(a) === own);
}

/** Returns the vectors to draw; null if there are none. */
export function chosenVectors(dataset: Dataset, shown: ArrayInfo, choice: string | null): ArrayInfo | null {
  return vectorArrays(dataset, shown).find(({ name }) => name === (choice ?? shown.name)) ?? null;
}

/** Returns the points of the slices, or of the only layer, at which arrows stand, with their distance on the screen. */
export function lattice(
  view: View,
  array: ArrayInfo,
  size: Size,
): { readonly points: readonly Vec3[]; readonly spacing: number } {
  const area = Math.max(1, size.width) * Math.max(1, size.height);
  const spacing = Math.max(SPACING, Math.sqrt(area / MAX_ARROWS));
  const find = isOneLayer(array) ? worldPoint : slicePoint;
  const points: Vec3[] = [];
  for (let y = spacing / 2; y < size.height; y += spacing)
    for (let x = spacing / 2; x < size.width; x += spacing) {
      const point = find(view, array, size, { x, y });
      if (point && points.length < MAX_ARROWS) points.push(point);
    }
  return { points, spacing };
}

/** Returns the vectors of components along x, y and z; null where one of them has no value. */
export function vectorsOf(
  components: readonly (readonly (number | null)[])[],
  count: number,
): readonly (Vec3 | null)[] {
  return Array.from({ length: count }, (_, i) => {
    const [x, y = 0, z = 0] = components.map((values) => values[i] ?? null);
    return x === null || x === undefined || y === null || z === null ? null : [x, y, z];
  });
}

export function longestOf(vectors: readonly (Vec3 | null)[]): number {
  return vectors.reduce((most, v) => (v ? Math.max(most, Math.hypot(...v)) : most), 0);
}

/** Shapes of the arrows, and of one with its length as a legend. */
export function arrowShapes(field: VectorField, lens: Lens, layout: Layout, measure: Measure): Shape[] {
  if (!(field.longest > 0)) return [];
  const perUnit = (LONGEST * field.spacing) / field.longest;
  const segments = field.points.flatMap((point, i) => {
    const vector = field.vectors[i];
    const at = vector && lens.place(point);
    if (!vector || !at) return [];
    return arrow(at, { x: dot(vector, lens.right) * perUnit, y: -dot(vector, lens.up) * perUnit });
  });
  return [{ kind: "segments", segments }, ...legend(field, perUnit, layout, measure)];
}

/** Lines of an arrow with its middle at a place. */
function arrow(at: Point, along: Point): (readonly [Point, Point])[] {
  const length = Math.hypot(along.x, along.y);
  const half = length < DOT_PIXELS ? { x: DOT_PIXELS / 2, y: 0 } : { x: along.x / 2, y: along.y / 2 };
  const [from, to] = [
    { x: at.x - half.x, y: at.y - half.y },
    { x: at.x + half.x, y: at.y + half.y },
  ];
  if (length < DOT_PIXELS) return [[from, to]];
  const side = (radians: number): readonly [Point, Point] => {
    const [cos, sin] = [Math.cos(radians) * HEAD_SHARE, Math.sin(radians) * HEAD_SHARE];
    const back = { x: along.x * cos - along.y * sin, y: along.x * sin + along.y * cos };
    return [to, { x: to.x - back.x, y: to.y - back.y }];
  };
  return [[from, to], side(HEAD_RADIANS), side(-HEAD_RADIANS)];
}

function legend(field: VectorField, perUnit: number, layout: Layout, measure: Measure): Shape[] {
  const value = roundBelow(field.longest);
  const text = `${formatNumber(value)} ${formatUnits(field.units)}`.trim();
  const long = value * perUnit;
  const box = layout.corner(["left", "bottom"], [long + 8 + measure(text), LINE]);
  if (!box) return [];
  layout.take(box);
  const middle = (box.top + box.bottom) / 2;
  return [
    { kind: "plate", box },
    { kind: "segments", segments: arrow({ x: box.left + long / 2, y: middle }, { x: long, y: 0 }) },
    { kind: "text", at: { x: box.left + long + 8, y: middle }, text, anchor: "start" },
  ];
}
