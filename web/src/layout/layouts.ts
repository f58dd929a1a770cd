//! The arrangement of the pictures on the page: switches it, and keeps the view in agreement with it.

import { fit, HOME, type Size } from "../camera/camera.ts";
import type { Actions, State } from "../app/state.ts";
import { isContinuous } from "../dataset/dataset.ts";
import { worldBox } from "../dataset/world.ts";
import { MAX_GRID_SIDE, type Camera, type Grid, type Layout } from "../view/schema.ts";
import { imageAxis, isPossible, layoutOf, type ShownLayout } from "./choose.ts";
import { stepped } from "./crosshair.ts";
import { fitPlane, zoomPlane } from "./plane-camera.ts";
import type { AxisNumber } from "./space.ts";
import { arranged, completed, NO_MEMORY, remembered, squared, type SpaceMemory } from "./view-patches.ts";
import { windowed } from "./window.ts";

export interface LayoutsPage {
  readonly actions: Actions;
  /** The newest state. */
  readonly state: () => State;
  /** Size of the first picture. */
  readonly size: () => Size;
}

export class Layouts {
  readonly #page: LayoutsPage;
  #memory: SpaceMemory = NO_MEMORY;
  /** Array and arrangement to which the view was last made to fit. */
  #completedKey = "";
  #memoryOf = "";

  constructor(page: LayoutsPage) {
    this.#page = page;
  }

  /** The arrangement that is shown. */
  get layout(): ShownLayout {
    const { view, array } = this.#page.state();
    return layoutOf(view, array);
  }

  /** The axis across which an image lies. */
  get axis(): AxisNumber {
    const { view, array } = this.#page.state();
    return array ? imageAxis(view, array) : 2;
  }

  /** True while the first picture is a plane seen head on. */
  get isImage(): boolean {
    return this.layout === "image";
  }

  isPossible(layout: Layout): boolean {
    const { array } = this.#page.state();
    return array !== null && isPossible(layout, array);
  }

  set = (layout: Layout, axis?: AxisNumber): void => {
    const { view, array, dataset } = this.#page.state();
    if (!array || !dataset || !isPossible(layout, array)) return;
    const before = this.layout;
    if (before !== "image" && before !== layout) this.#memory = withoutPlanes(remembered(view), before);
    const memory = this.#memoryFor(layout);
    const patch = arranged(layout, dataset, array, view, memory, this.#page.size(), axis);
    this.#completedKey = this.#key(layout);
    this.#page.actions.change(patch);
  };

  /** Shows a grid of pictures, or one. */
  setGrid = (grid: Grid | null): void => {
    const side = (n: number) => Math.min(MAX_GRID_SIDE, Math.max(1, n));
    const { actions } = this.#page;
    actions.change({ grid: grid && { ...grid, rows: side(grid.rows), columns: side(grid.columns) } });
  };

  /** The camera that sees all of an image; null for other arrangements, whose camera the node chooses. */
  get wholeCamera(): Camera | null {
    const { array, dataset } = this.#page.state();
    return this.isImage && array && dataset ? fitPlane(dataset, array, this.axis, this.#page.size()) : null;
  }

  /** Fits the image into its picture. */
  fit = (): void => {
    const camera = this.wholeCamera;
    if (camera) this.#page.actions.change({ camera });
  };

  /** Steps to another slice. */
  step = (by: number, axis: AxisNumber = this.axis, isMoving = true): void => {
    const { array, view } = this.#page.state();
    const slices = array ? stepped(view.slices, array, axis, by) : view.slices;
    if (slices !== view.slices) this.#page.actions.change({ slices }, isMoving);
  };

  /** Changes center and width of the range of values by shares of the picture. */
  window = (right: number, down: number): void => {
    const { array } = this.#page.state();
    if (array && isContinuous(array))
      this.#page.actions.edit((transfer) => windowed(transfer, right, down), true);
  };

  zoomed = (camera: Camera, factor: number, x: number, y: number): Camera => {
    const { array } = this.#page.state();
    return array ? zoomPlane(camera, factor, array, this.axis, this.#page.size(), x, y) : camera;
  };

  /** Makes the view fit the arrangement after either has changed. */
  update(state: State): void {
    const { view, array, dataset } = state;
    if (!array || !dataset || state.connection.kind !== "open") {
      this.#completedKey = "";
      return;
    }
    if (state.isSettling) return;
    if (this.#memoryOf !== array.name) this.#memory = NO_MEMORY;
    this.#memoryOf = array.name;
    const key = this.#key(layoutOf(view, array));
    if (key !== this.#completedKey) {
      // The node chooses the camera of the first picture, and with it whether it is an image.
      if (view.camera === null && view.layout === null) return;
      this.#completedKey = key;
      const patch = completed(dataset, array, view, this.#page.size(), state.isCameraAutomatic);
      if (patch) this.#page.actions.change(patch, false, true);
      return;
    }
    const patch = squared(array, view, this.#page.size());
    if (patch) this.#page.actions.change(patch, false, true);
  }

  #key(layout: ShownLayout): string {
    const { dataset, array } = this.#page.state();
    return JSON.stringify([dataset?.id, array?.name, layout]);
  }

  /** Returns what the three-dimensional picture is to show: as before, or all of the volume. */
  #memoryFor(layout: Layout): SpaceMemory {
    const { view, array } = this.#page.state();
    if (layout === "image" || !array) return NO_MEMORY;
    // From three planes the volume goes on as it is, without the planes.
    if (this.layout === "planes") return withoutPlanes(remembered(view), "planes");
    if (this.#memory.camera)
      return layout === "space" ? this.#memory : { ...this.#memory, slices: view.slices };
    const box = worldBox(array);
    if (!box) return NO_MEMORY;
    return { ...NO_MEMORY, camera: fit(box, HOME.forward, HOME.up, this.#page.size()) };
  }
}

/** Leaves out the planes of the crosshair, which belong to the arrangement; oblique ones stay. */
function withoutPlanes(memory: SpaceMemory, layout: ShownLayout): SpaceMemory {
  return layout === "planes"
    ? { ...memory, slices: memory.slices.filter((slice) => slice.normal !== undefined) }
    : memory;
}
