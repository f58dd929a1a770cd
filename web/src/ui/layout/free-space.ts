//! The part of the page that panels leave free, in which the pictures lie: side panels and the bar of time stand beside the pictures, not
//! on them. Small panels in the corners lie over a volume, which does not reach the corners; not over an image, several pictures or a plot.

import { el } from "../dom.ts";
import type { Component } from "../../app/state.ts";

/** Width of a page below which panels are sheets, whose place is fixed by the style. */
const NARROW_PIXELS = 720;
/** Least side of the free part; below it panels lie over the pictures. */
const LEAST_PIXELS = 120;
const GAP_PIXELS = 8;

export interface Panels {
  /** At the left side. */
  readonly left: readonly HTMLElement[];
  /** At the lower edge. */
  readonly bottom: readonly HTMLElement[];
  /** At the upper edge; not over a volume alone. */
  readonly top: readonly HTMLElement[];
  /** At the lower edge; not over a volume alone. */
  readonly corner: readonly HTMLElement[];
}

export interface Insets {
  readonly left: number;
  readonly top: number;
  readonly bottom: number;
}

type Rect = Pick<DOMRect, "left" | "top" | "right" | "bottom">;

/** Returns what panels take from the sides of a page; nothing where too little would be left. */
export function insetsOf(
  page: { readonly width: number; readonly height: number },
  rects: { readonly left: readonly Rect[]; readonly top: readonly Rect[]; readonly bottom: readonly Rect[] },
): Insets {
  if (page.width < NARROW_PIXELS) return { left: 0, top: 0, bottom: 0 };
  const most = (values: readonly number[]) =>
    Math.max(0, ...values.map((value) => Math.ceil(value) + GAP_PIXELS));
  const left = most(rects.left.map(({ right }) => right));
  const top = most(rects.top.map(({ bottom }) => bottom));
  const bottom = most(rects.bottom.map(({ top: upper }) => page.height - upper));
  const isTight = page.height - top - bottom < LEAST_PIXELS;
  return {
    left: page.width - left < page.width / 3 ? 0 : left,
    top: isTight ? 0 : top,
    bottom: isTight ? 0 : bottom,
  };
}

/** Keeps the pictures in the free part of the page. */
export function freeSpace(panels: Panels): Component {
  const element = el("div", { hidden: true });
  // A panel that is folded is as small as those in the corners.
  const isUnfolded = (panel: HTMLElement) => !(panel instanceof HTMLDetailsElement) || panel.open;
  const placesOf = (list: readonly HTMLElement[]) =>
    list.map((panel) => panel.getBoundingClientRect()).filter(({ width, height }) => width > 0 && height > 0);
  const visible = (list: readonly HTMLElement[]) => placesOf(list.filter(isUnfolded));
  // Below the header: it would lie on the title of the first of several pictures.
  const folded = (list: readonly HTMLElement[]) => placesOf(list.filter((panel) => !isUnfolded(panel)));
  const measure = () => {
    const { body } = document;
    const { layout } = body.dataset;
    const reachesCorners = body.classList.contains("paned") || layout === "plot" || layout === "image";
    const page = { width: window.innerWidth, height: window.innerHeight };
    const insets = insetsOf(page, {
      left: visible(panels.left),
      top: reachesCorners ? [...visible(panels.top), ...folded(panels.left)] : [],
      bottom: visible(reachesCorners ? [...panels.bottom, ...panels.corner] : panels.bottom),
    });
    const { style } = body;
    for (const [side, pixels] of Object.entries(insets)) {
      const name = `--free-${side}`;
      const text = pixels > 0 ? `${pixels}px` : "";
      // Without an own value that of the style sheet counts.
      if (style.getPropertyValue(name) !== text) style.setProperty(name, text);
    }
  };
  const observer = new ResizeObserver(measure);
  for (const panel of [...panels.left, ...panels.bottom, ...panels.top, ...panels.corner])
    observer.observe(panel);
  return { element, update: measure };
}
