//! Axes: ticks and names along edges of the volume's box. In 3-D they lie along edges of its outline, below and at the left where
//! possible, with the text outside, so that it does not cover data. Pictures taken straight at a side have them below and at
//! the left; if the box is larger than the picture, at its borders. Pure.

import { dot, length, normalize, sub } from "../../camera/vec.ts";
import type { Vec3 } from "../../view/schema.ts";
import type { Layout } from "./layout.ts";
import type { Lens } from "./lens.ts";
import {
  GAP,
  LINE,
  meets,
  textBox,
  type Anchor,
  type Box,
  type Measure,
  type Point,
  type Shape,
} from "./shapes.ts";
import { axisTicks, axisTitle, cornerIndex, indexOf, worldPoint, type Volume } from "./volume.ts";

/** Shortest edge with an axis, pixels. */
const SHORTEST = 36;
/** Distance of ticks, pixels; a short axis has them closer together. */
const APART = 60;
const LEAST_TICKS = 1.5;
const TICK = 5;
/** Cosine of the angle between two directions that count as the same. */
const STRAIGHT = 0.9998;

export type Part = readonly [low: Vec3, high: Vec3] | null;

interface Edge {
  /** Ends in voxel indices. */
  readonly from: readonly [number, number, number];
  readonly to: readonly [number, number, number];
  readonly a: Point;
  readonly b: Point;
  readonly isOutline: boolean;
}

/** Corners of the box in the picture; null if one lies behind the eye. */
export function boxOutline(volume: Volume, lens: Lens, part: Part): Point[] | null {
  const corners = Array.from({ length: 8 }, (_, n) =>
    lens.place(worldPoint(volume, cornerIndex(volume, n, part))),
  );
  const seen = corners.filter((point) => point !== null);
  return seen.length === 8 ? seen : null;
}

/** True if the camera looks straight along an axis of voxels, with the other two along the picture's sides. */
export function isHeadOn(volume: Volume, lens: Lens): boolean {
  const along = (direction: Vec3) =>
    volume.axes.some(({ step }) => Math.abs(dot(normalize(step), direction)) > STRAIGHT);
  return along(lens.forward) && along(lens.right) && along(lens.up);
}

export function axisMarks(volume: Volume, lens: Lens, part: Part, layout: Layout, measure: Measure): Shape[] {
  const outline = boxOutline(volume, lens, part);
  if (!outline) return [];
  const center = {
    x: outline.reduce((sum, p) => sum + p.x, 0) / 8,
    y: outline.reduce((sum, p) => sum + p.y, 0) / 8,
  };
  const headOn = isHeadOn(volume, lens);
  const shapes: Shape[] = [];
  for (const axis of [0, 1, 2] as const) {
    if (volume.axes[axis].count < 2) continue;
    const edges = edgesOf(volume, lens, part, axis).filter((edge) => edge.isOutline);
    const edge = headOn ? straightEdge(edges) : chosenEdge(edges, layout);
    if (edge)
      shapes.push(...(headOn ? straight : slanted)({ volume, lens, layout, measure }, axis, edge, center));
  }
  return shapes;
}

interface Drawing {
  readonly volume: Volume;
  readonly lens: Lens;
  readonly layout: Layout;
  readonly measure: Measure;
}

function edgesOf(volume: Volume, lens: Lens, part: Part, axis: 0 | 1 | 2): Edge[] {
  const low = cornerIndex(volume, 0, part);
  const high = cornerIndex(volume, 7, part);
  const middle = worldPoint(volume, [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2]);
  const isSeen = (face: 0 | 1 | 2, isHigh: boolean): boolean => {
    const [u, v] = ([0, 1, 2] as const).filter((other) => other !== face);
    if (u === undefined || v === undefined) return false;
    const [a, b] = [volume.axes[u].step, volume.axes[v].step];
    const normal: Vec3 = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const index: [number, number, number] = [...low];
    if (isHigh) index[face] = high[face];
    const point = worldPoint(volume, index);
    const outward = dot(normal, sub(point, middle)) < 0 ? -1 : 1;
    const toEye = lens.isParallel ? sub([0, 0, 0], lens.forward) : sub(lens.camera.eye, point);
    return outward * dot(normal, toEye) > 1e-9 * length(normal) * length(toEye);
  };
  return [0, 1, 2, 3, 4, 5, 6, 7].flatMap((number) => {
    if (((number >> axis) & 1) === 1) return [];
    const [from, to] = [cornerIndex(volume, number, part), cornerIndex(volume, number | (1 << axis), part)];
    const [a, b] = [lens.place(worldPoint(volume, from)), lens.place(worldPoint(volume, to))];
    if (!a || !b || Math.hypot(b.x - a.x, b.y - a.y) < SHORTEST) return [];
    const faces = ([0, 1, 2] as const).filter((other) => other !== axis);
    const seen = faces.filter((face) => isSeen(face, ((number >> face) & 1) === 1)).length;
    return [{ from, to, a, b, isOutline: seen === 1 }];
  });
}

/** Below, or at the left: such an axis is moved into the free area. */
function straightEdge(edges: readonly Edge[]): Edge | null {
  const rank = ({ a, b }: Edge) => a.y + b.y - (a.x + b.x) / 2;
  return edges.reduce<Edge | null>((best, edge) => (best && rank(best) >= rank(edge) ? best : edge), null);
}

/** Half of the side of the square around the middle of an edge that must be free. */
const NEIGHBORHOOD = 10;

/** The lowest edge, of equally low ones the leftmost; one that is hidden by a panel or lies outside only if there is no other. */
function chosenEdge(edges: readonly Edge[], layout: Layout): Edge | null {
  const rank = ({ a, b }: Edge) => {
    const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
    const around = {
      left: x - NEIGHBORHOOD,
      right: x + NEIGHBORHOOD,
      top: y - NEIGHBORHOOD,
      bottom: y + NEIGHBORHOOD,
    };
    const isHidden = !layout.isFree(around);
    return y - x / 2 - (isHidden ? 2 * (layout.area.right + layout.area.bottom) : 0);
  };
  return edges.reduce<Edge | null>((best, edge) => (best && rank(best) >= rank(edge) ? best : edge), null);
}

/** An axis of a picture taken in any direction: its text lies outside of the box, upright. */
function slanted(
  { volume, lens, layout, measure }: Drawing,
  axis: 0 | 1 | 2,
  edge: Edge,
  center: Point,
): Shape[] {
  const scale = volume.axes[axis];
  const { a, b } = edge;
  const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  const long = Math.hypot(b.x - a.x, b.y - a.y);
  // Across the edge, away from the center.
  let out = { x: -(b.y - a.y) / long, y: (b.x - a.x) / long };
  if (out.x * (middle.x - center.x) + out.y * (middle.y - center.y) < 0) out = { x: -out.x, y: -out.y };
  const anchor: Anchor = out.x > 0.4 ? "start" : out.x < -0.4 ? "end" : "middle";
  const shapes: Shape[] = [];
  if (isInside(layout, a) || isInside(layout, b)) shapes.push({ kind: "line", from: a, to: b });
  const textAt = (point: Point, far: number): Point => ({
    x: point.x + out.x * far,
    y: point.y + out.y * (far + (anchor === "middle" ? LINE / 2 - 2 : 0)),
  });
  let widest = 0;
  for (const { value, text } of axisTicks(
    scale,
    edge.from[axis],
    edge.to[axis],
    Math.max(LEAST_TICKS, long / APART),
  )) {
    const index: [number, number, number] = [...edge.from];
    index[axis] = indexOf(scale, value);
    const point = lens.place(worldPoint(volume, index));
    if (!point || !isInside(layout, point)) continue;
    const tip = { x: point.x + out.x * TICK, y: point.y + out.y * TICK };
    const at = textAt(point, TICK + 4);
    const box = textBox(at, text, anchor, measure);
    shapes.push({ kind: "line", from: point, to: tip });
    if (!layout.isFree(box)) continue;
    layout.take(box);
    widest = Math.max(widest, measure(text));
    shapes.push({ kind: "text", at, text, anchor });
  }
  const title = axisTitle(scale);
  const far = TICK + 8 + (anchor === "middle" ? LINE : widest + 4);
  const at = textAt(middle, far);
  const box = textBox(at, title, anchor, measure);
  if (title !== "" && layout.isFree(box)) {
    layout.take(box);
    shapes.push({ kind: "text", at, text: title, anchor, isBold: true });
  }
  return shapes;
}

function isInside({ area }: Layout, { x, y }: Point): boolean {
  return x >= area.left && x <= area.right && y >= area.top && y <= area.bottom;
}

/** An axis of a picture taken straight at a side: below, or at the left; at the border of the free area if the box lies beyond it. */
function straight({ volume, lens, layout, measure }: Drawing, axis: 0 | 1 | 2, edge: Edge): Shape[] {
  const scale = volume.axes[axis];
  const { a, b } = edge;
  const isAcross = Math.abs(b.x - a.x) >= Math.abs(b.y - a.y);
  const { free } = layout;
  const ticks = visibleTicks({ volume, lens, layout, measure }, axis, edge, isAcross);
  const texts = ticks.map(({ text }) => measure(text));
  const widest = Math.max(0, ...texts);
  const title = axisTitle(scale);
  const titleRoom = title === "" ? 0 : LINE;
  // The line of the axis; its text needs room below or at the left.
  const line = isAcross
    ? Math.min(Math.max(a.y, free.top + LINE), free.bottom - TICK - LINE - titleRoom)
    : Math.max(Math.min(a.x, free.right - LINE), free.left + TICK + 4 + widest);
  const on = (point: Point): Point => (isAcross ? { x: point.x, y: line } : { x: line, y: point.y });
  const limited = (point: Point): Point => ({
    x: Math.min(Math.max(point.x, free.left), free.right),
    y: Math.min(Math.max(point.y, free.top), free.bottom),
  });
  const shapes: Shape[] = [{ kind: "line", from: on(limited(a)), to: on(limited(b)) }];
  const boxes: Box[] = [];
  for (const { point, text } of ticks) {
    const foot = on(point);
    const at = isAcross ? { x: foot.x, y: foot.y + TICK + LINE / 2 } : { x: foot.x - TICK - 3, y: foot.y };
    const anchor: Anchor = isAcross ? "middle" : "end";
    const box = textBox(at, text, anchor, measure);
    const tip = isAcross ? { x: foot.x, y: foot.y + TICK } : { x: foot.x - TICK, y: foot.y };
    shapes.push({ kind: "line", from: foot, to: tip });
    const padded = isAcross ? { ...box, left: box.left - GAP, right: box.right + GAP } : box;
    if (!layout.isFree(box) || boxes.some((other) => meets(other, padded))) continue;
    boxes.push(box);
    shapes.push({ kind: "text", at, text, anchor });
  }
  boxes.forEach((box) => {
    layout.take(box);
  });
  if (title === "") return shapes;
  const ends = [on(limited(a)), on(limited(b))] as const;
  const at = isAcross
    ? { x: (ends[0].x + ends[1].x) / 2, y: line + TICK + LINE * 1.5 }
    : { x: line, y: Math.min(ends[0].y, ends[1].y) - LINE / 2 - 2 };
  const kept = isAcross
    ? at
    : { x: Math.max(at.x, free.left + measure(title) / 2), y: Math.max(at.y, LINE / 2) };
  const box = textBox(kept, title, "middle", measure);
  if (layout.isFree(box)) {
    layout.take(box);
    shapes.push({ kind: "text", at: kept, text: title, anchor: "middle", isBold: true });
  }
  return shapes;
}

/** Ticks of the part of an edge that lies in the free area, with their positions. */
function visibleTicks(
  { volume, lens, layout, measure }: Drawing,
  axis: 0 | 1 | 2,
  edge: Edge,
  isAcross: boolean,
): { point: Point; text: string }[] {
  const scale = volume.axes[axis];
  const { free } = layout;
  const along = (point: Point) => (isAcross ? point.x : point.y);
  const [low, high] = isAcross ? [free.left, free.right] : [free.top, free.bottom];
  const [from, to] = [along(edge.a), along(edge.b)];
  // Positions along a side that is seen straight are linear.
  const share = (at: number) => Math.min(Math.max((at - from) / (to - from), 0), 1);
  const index = (at: number) => edge.from[axis] + (edge.to[axis] - edge.from[axis]) * share(at);
  const [first, last] = [index(low), index(high)].sort((p, q) => p - q);
  if (first === undefined || last === undefined || last - first < 1e-9) return [];
  const seen = Math.abs(share(high) - share(low)) * Math.abs(to - from);
  const made = (count: number) => axisTicks(scale, first, last, count);
  const usual = made(seen / (isAcross ? APART : APART * 0.75));
  // Wide texts, such as dates, need fewer ticks.
  const widest = Math.max(0, ...usual.map(({ text }) => measure(text)));
  const ticks = isAcross && widest + 2 * GAP > APART ? made(seen / (widest + 2 * GAP)) : usual;
  return ticks.flatMap(({ value, text }) => {
    const place: [number, number, number] = [...edge.from];
    place[axis] = indexOf(scale, value);
    const point = lens.place(worldPoint(volume, place));
    if (!point || along(point) < low - 1 || along(point) > high + 1) return [];
    return [{ point, text }];
  });
}
