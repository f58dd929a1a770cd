//! Shapes that marks are made of, in pixels of the page with y down. Marks are computed as lists of shapes, which `draw.ts` turns into SVG
//! on the page and paints into saved pictures. Pure.

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Rectangle, its sides in pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export type Anchor = "start" | "middle" | "end";

export type Shape =
  | {
      readonly kind: "line";
      readonly from: Point;
      readonly to: Point;
      readonly color?: string;
      readonly width?: number;
    }
  /** Lines of one kind, such as those of arrows. */
  | { readonly kind: "segments"; readonly segments: readonly (readonly [Point, Point])[] }
  /** One line of text; `at` is the middle of its height. */
  | {
      readonly kind: "text";
      readonly at: Point;
      readonly text: string;
      readonly anchor: Anchor;
      readonly isBold?: boolean;
      readonly color?: string;
    }
  | { readonly kind: "swatch"; readonly box: Box; readonly color: string }
  /** Half-transparent ground for marks that lie over data. */
  | { readonly kind: "plate"; readonly box: Box }
  /** Colors from left to right, or from bottom to top. */
  | {
      readonly kind: "ramp";
      readonly box: Box;
      readonly colors: readonly string[];
      readonly isUpright: boolean;
    }
  /** Disk with a letter; a click looks along an axis. */
  | {
      readonly kind: "disk";
      readonly at: Point;
      readonly radius: number;
      readonly color: string;
      readonly text: string;
      readonly title: string;
      /** Index of the axis view, from 0. */
      readonly axisView: number;
    };

/** Height of a line of text, and size of its letters. */
export const LINE = 15;
export const FONT_SIZE = 11.5;
/** Distance of marks from borders and from one another. */
export const GAP = 8;

/** Returns the width of a text, pixels. */
export type Measure = (text: string) => number;

/** Estimate of the width of a text in a usual font, for tests and before a canvas is at hand. */
export const estimate: Measure = (text) => Array.from(text).length * FONT_SIZE * 0.58;

export function width(box: Box): number {
  return box.right - box.left;
}

export function height(box: Box): number {
  return box.bottom - box.top;
}

export function meets(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

export function grown(box: Box, by: number): Box {
  return { left: box.left - by, top: box.top - by, right: box.right + by, bottom: box.bottom + by };
}

export function isWithin(inner: Box, outer: Box): boolean {
  return (
    inner.left >= outer.left &&
    inner.right <= outer.right &&
    inner.top >= outer.top &&
    inner.bottom <= outer.bottom
  );
}

/** Area of a line of text. */
export function textBox(at: Point, text: string, anchor: Anchor, measure: Measure): Box {
  const long = measure(text);
  const left = at.x - (anchor === "start" ? 0 : anchor === "middle" ? long / 2 : long);
  return { left, right: left + long, top: at.y - LINE / 2, bottom: at.y + LINE / 2 };
}
