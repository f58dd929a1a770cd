//! Places for marks: where no panel, no other mark and, if there is room, no data lie. Pure.

import { GAP, grown, isWithin, meets, type Box, type Point } from "./shapes.ts";

/** Largest number of panels that are avoided: the page has about six. */
const MAX_OBSTACLES = 16;
/** Step of the search along a border, pixels. */
const STEP = 12;

export class Layout {
  /** All of the picture, without a margin. */
  readonly area: Box;
  /** Largest rectangle without panels. */
  readonly free: Box;
  /** Outline of the data in the picture, convex; empty if it fills the picture or is unknown. */
  readonly outline: readonly Point[];
  readonly #taken: Box[];

  constructor(
    size: { readonly width: number; readonly height: number },
    panels: readonly Box[],
    outline: readonly Point[],
  ) {
    this.area = { left: 0, top: 0, right: size.width, bottom: size.height };
    const shown = panels.filter((panel) => meets(panel, this.area)).slice(0, MAX_OBSTACLES);
    this.free = largestFree(
      this.area,
      shown.map((panel) => grown(panel, GAP)),
    );
    this.outline = outline;
    this.#taken = shown.map((panel) => grown(panel, GAP / 2));
  }

  isFree(box: Box): boolean {
    return isWithin(box, this.area) && !this.#taken.some((taken) => meets(taken, box));
  }

  take(box: Box): void {
    this.#taken.push(box);
  }

  /** True if a box lies over data. */
  isOverData(box: Box): boolean {
    return touchesOutline(this.outline, box);
  }

  /**
   * Returns a free place of a size along a border, as near to `share` of it as possible (0: left or top, 1: right or bottom); null if
   * there is none.
   */
  along(
    side: "left" | "right" | "top" | "bottom",
    size: readonly [width: number, height: number],
    share: number,
    isAllowed: (box: Box) => boolean = () => true,
    inset = 0,
  ): Box | null {
    const [wide, high] = size;
    const { area } = this;
    const isUpright = side === "left" || side === "right";
    const [from, to] = isUpright
      ? [area.top + GAP, area.bottom - GAP - high]
      : [area.left + GAP, area.right - GAP - wide];
    if (to < from) return null;
    const start = from + (to - from) * share;
    for (let away = 0; away <= to - from; away += STEP) {
      for (const at of away === 0 ? [start] : [start - away, start + away]) {
        if (at < from || at > to) continue;
        const left = isUpright
          ? side === "left"
            ? area.left + GAP + inset
            : area.right - GAP - inset - wide
          : at;
        const top = isUpright
          ? at
          : side === "top"
            ? area.top + GAP + inset
            : area.bottom - GAP - inset - high;
        const box = { left, top, right: left + wide, bottom: top + high };
        if (this.isFree(box) && isAllowed(box)) return box;
      }
    }
    return null;
  }

  /** Returns a free place near a corner of the free area, searched away from it in rows; null if there is none. */
  corner(
    [across, down]: readonly [across: "left" | "right", down: "top" | "bottom"],
    [wide, high]: readonly [width: number, height: number],
    isAllowed: (box: Box) => boolean = () => true,
  ): Box | null {
    const { free } = this;
    const columns = Math.floor((free.right - free.left - wide) / STEP);
    const rows = Math.floor((free.bottom - free.top - high) / STEP);
    for (let sum = 0; sum <= rows + columns; sum += 1) {
      for (let row = Math.max(0, sum - columns); row <= Math.min(sum, rows); row += 1) {
        const column = sum - row;
        const left = across === "left" ? free.left + column * STEP : free.right - wide - column * STEP;
        const top = down === "top" ? free.top + row * STEP : free.bottom - high - row * STEP;
        const box = { left, top, right: left + wide, bottom: top + high };
        if (this.isFree(box) && isAllowed(box)) return box;
      }
    }
    return null;
  }
}

/** Largest rectangle in `area` that meets no obstacle. */
export function largestFree(area: Box, obstacles: readonly Box[]): Box {
  const lefts = [area.left + GAP, ...obstacles.map((box) => box.right)];
  const rights = [area.right - GAP, ...obstacles.map((box) => box.left)];
  const tops = [area.top + GAP, ...obstacles.map((box) => box.bottom)];
  let [best, most]: [Box, number] = [area, 0];
  for (const left of lefts)
    for (const right of rights)
      for (const top of tops) {
        const column = { left, right, top, bottom: area.bottom - GAP };
        if (right <= left || column.bottom <= top) continue;
        const below = obstacles.filter((box) => meets(box, column));
        if (below.some((box) => box.top <= top)) continue;
        const bottom = Math.min(column.bottom, ...below.map((box) => box.top));
        const size = (right - left) * (bottom - top);
        if (size > most) [best, most] = [{ left, right, top, bottom }, size];
      }
  return best;
}

/** Convex hull of points, counter-clockwise (Andrew 1979). */
export function convexHull(points: readonly Point[]): Point[] {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  const half = (list: readonly Point[]) => {
    const chain: Point[] = [];
    for (const point of list) {
      for (;;) {
        const [before, last] = chain.slice(-2);
        if (!before || !last || turn(before, last, point) > 0) break;
        chain.pop();
      }
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.toReversed())];
}

function turn(a: Point, b: Point, c: Point): number {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/** True if a rectangle and a convex polygon have common points (separating axes). */
export function touchesOutline(outline: readonly Point[], box: Box): boolean {
  if (outline.length < 3) return false;
  const corners: Point[] = [
    { x: box.left, y: box.top },
    { x: box.right, y: box.top },
    { x: box.right, y: box.bottom },
    { x: box.left, y: box.bottom },
  ];
  const sides = (polygon: readonly Point[]) =>
    polygon.map((point, i) => {
      const next = polygon[(i + 1) % polygon.length] ?? point;
      return { x: point.y - next.y, y: next.x - point.x };
    });
  return [...sides(outline), ...sides(corners)].every((axis) => {
    const span = (polygon: readonly Point[]) => {
      const along = polygon.map((point) => point.x * axis.x + point.y * axis.y);
      return [Math.min(...along), Math.max(...along)] as const;
    };
    const [[low, high], [from, to]] = [span(outline), span(corners)];
    return low < to && from < high;
  });
}
