//! Keys of the arrangements: they switch them, step through slices and move an image.

import type { Actions, State } from "../app/state.ts";
import { pan, type Size } from "../camera/camera.ts";
import { resizedGrid } from "../panes/pane-views.ts";
import type { Camera, Layout } from "../view/schema.ts";
import type { Layouts } from "./layouts.ts";
import type { AxisNumber } from "./space.ts";

/** Pixels by which an arrow key moves an image. */
const STEP_PIXELS = 48;
const ZOOM_STEP = 1.12;

export interface LayoutKeysPage {
  readonly actions: Actions;
  readonly layouts: Layouts;
  readonly state: () => State;
  readonly size: () => Size;
  /** Axis of the plane that PageUp and PageDown move. */
  readonly activeAxis: () => AxisNumber;
  readonly move: (camera: Camera) => void;
}

const LAYOUT_KEYS: Readonly<Record<string, Layout>> = { v: "space", i: "image", m: "planes" };
/** Sizes of the grid that the key runs through. */
const GRID_SIZES: readonly (readonly [rows: number, columns: number])[] = [
  [1, 1],
  [1, 2],
  [2, 2],
  [3, 3],
];
const ARROWS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [1, 0],
  ArrowRight: [-1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

/** Returns a function that handles a key, and whether it did. */
export function layoutKeys({
  layouts,
  state,
  size,
  activeAxis,
  move,
}: LayoutKeysPage): (key: string) => boolean {
  return (key) => {
    const layout = LAYOUT_KEYS[key.toLowerCase()];
    if (layout) {
      layouts.set(layout);
      return true;
    }
    if (key.toLowerCase() === "g") {
      cycleGrid(layouts, state());
      return true;
    }
    if (key === "PageUp" || key === "PageDown") {
      layouts.step(key === "PageUp" ? 1 : -1, activeAxis(), false);
      return true;
    }
    const { camera } = state().view;
    if (!layouts.isImage || !camera) return false;
    const arrow = ARROWS[key];
    if (arrow) move(pan(camera, arrow[0] * STEP_PIXELS, arrow[1] * STEP_PIXELS, size()));
    else if (key === "+" || key === "=") move(layouts.zoomed(camera, 1 / ZOOM_STEP, 0, 0));
    else if (key === "-" || key === "_") move(layouts.zoomed(camera, ZOOM_STEP, 0, 0));
    else if (key.toLowerCase() === "r") layouts.fit();
    else return false;
    return true;
  };
}

function cycleGrid(layouts: Layouts, { dataset, array, view }: State): void {
  if (!dataset || !array || layouts.layout === "planes") return;
  const now = GRID_SIZES.findIndex(
    ([r, c]) => r === (view.grid?.rows ?? 1) && c === (view.grid?.columns ?? 1),
  );
  const [rows, columns] = GRID_SIZES[(now + 1) % GRID_SIZES.length] ?? [1, 1];
  layouts.setGrid(resizedGrid(view.grid, rows, columns, dataset, array, view));
}
