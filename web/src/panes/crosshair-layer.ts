//! Drawing of the crosshair, and of the letters of directions, over the picture of a plane.

import { basis, type Size } from "../camera/camera.ts";
import { cross, dot } from "../camera/vec.ts";
import type { ArrayInfo } from "../dataset/dataset.ts";
import { crosshairLines, type CrosshairLine } from "../layout/crosshair.ts";
import type { ScreenPoint } from "../layout/plane-camera.ts";
import type { AxisNumber } from "../layout/space.ts";
import { setAttributes, svg } from "../ui/dom.ts";
import type { Camera, Vec3 } from "../view/schema.ts";

/** Colors of the planes across x, y, z. */
export const PLANE_COLORS: readonly string[] = ["#f4bf5c", "#6fdc9b", "#ff8a80"];
/** Distance from a line within which it can be grabbed. */
const GRAB_PIXELS = 7;
/** Radius around the crosshair's center that its lines leave free. */
const GAP_PIXELS = 9;

export class CrosshairLayer {
  readonly element = svg("svg", { class: "pane-overlay", "aria-hidden": "true" });
  readonly #lines = [0, 1, 2, 3].map(() => svg("line", { class: "crosshair-line" }));
  readonly #letters = [0, 1, 2, 3].map(() => svg("text", { class: "direction-letter" }));
  #shown: readonly CrosshairLine[] = [];

  constructor() {
    this.element.append(...this.#lines, ...this.#letters);
  }

  draw(camera: Camera, size: Size, array: ArrayInfo, axis: AxisNumber, position: Vec3): void {
    this.#shown = crosshairLines(camera, size, array, axis, position);
    const center = crossing(this.#shown);
    this.#shown.forEach((line, i) => {
      [line.from, line.to].forEach((end, j) => {
        const away = Math.hypot(end.x - center.x, end.y - center.y);
        const gap = Math.min(1, GAP_PIXELS / Math.max(1e-9, away));
        const element = this.#lines[2 * i + j];
        if (!element) return;
        setAttributes(element, {
          x1: center.x + (end.x - center.x) * gap,
          y1: center.y + (end.y - center.y) * gap,
          x2: end.x,
          y2: end.y,
          stroke: PLANE_COLORS[line.axis] ?? "#fff",
          "data-axis": "xyz"[line.axis] ?? "",
        });
      });
    });
    this.#drawLetters(camera, size, array.legend.isAnatomical);
  }

  /** True if a line passes near a place. */
  isNear(at: ScreenPoint): boolean {
    return this.#shown.some((line) => distanceTo(line, at) <= GRAB_PIXELS);
  }

  /** Letters of a patient's directions at the edges: right, left, anterior, posterior, superior, inferior. */
  #drawLetters(camera: Camera, size: Size, isShown: boolean): void {
    const { forward, up } = basis(camera);
    const right = cross(forward, up);
    const [middle, center] = [size.width / 2, size.height / 2];
    const places: readonly [Vec3, number, number][] = [
      [right, size.width - 12, center],
      [[-right[0], -right[1], -right[2]], 12, center],
      [up, middle, 46],
      [[-up[0], -up[1], -up[2]], middle, size.height - 8],
    ];
    places.forEach(([direction, x, y], i) => {
      const element = this.#letters[i];
      if (!element) return;
      setAttributes(element, { x, y });
      element.textContent = isShown ? letterOf(direction) : "";
    });
  }
}

const LETTERS: readonly (readonly [Vec3, string])[] = [
  [[1, 0, 0], "R"],
  [[-1, 0, 0], "L"],
  [[0, 1, 0], "A"],
  [[0, -1, 0], "P"],
  [[0, 0, 1], "S"],
  [[0, 0, -1], "I"],
];

/** Returns the letter of the direction of a patient that is nearest. */
export function letterOf(direction: Vec3): string {
  const best = LETTERS.reduce((a, b) => (dot(b[0], direction) > dot(a[0], direction) ? b : a));
  return best[1];
}

function crossing([one, other]: readonly CrosshairLine[]): ScreenPoint {
  if (!one || !other) return { x: 0, y: 0 };
  const [d, e] = [
    { x: one.to.x - one.from.x, y: one.to.y - one.from.y },
    { x: other.to.x - other.from.x, y: other.to.y - other.from.y },
  ];
  const denominator = d.x * e.y - d.y * e.x;
  if (Math.abs(denominator) < 1e-9) return one.from;
  const t = ((other.from.x - one.from.x) * e.y - (other.from.y - one.from.y) * e.x) / denominator;
  return { x: one.from.x + t * d.x, y: one.from.y + t * d.y };
}

function distanceTo({ from, to }: CrosshairLine, at: ScreenPoint): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const squared = dx * dx + dy * dy;
  const t =
    squared > 0 ? Math.min(1, Math.max(0, ((at.x - from.x) * dx + (at.y - from.y) * dy) / squared)) : 0;
  return Math.hypot(at.x - from.x - t * dx, at.y - from.y - t * dy);
}
