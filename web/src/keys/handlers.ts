//! Handlers of the commands of the table: movements of the camera or of an image, and actions of the page.

import type { Actions, State } from "../app/state.ts";
import { pan, turn, zoom, type Size } from "../camera/camera.ts";
import { timeSteps } from "../dataset/dataset.ts";
import type { Layouts } from "../layout/layouts.ts";
import type { AxisNumber } from "../layout/space.ts";
import { resizedGrid } from "../panes/pane-views.ts";
import { texts } from "../texts/texts.ts";
import type { Camera } from "../view/schema.ts";
import type { KeyHandler, KeyHandlers } from "./listen.ts";
import type { KeyPress } from "./table.ts";

const TURN_RAD = Math.PI / 36;
const STEP_PIXELS = 24;
/** Pixels by which an arrow key moves an image. */
const IMAGE_STEP_PIXELS = 48;
const ZOOM_STEP = 1.12;
const REST_MILLIS = 220;
/** Sizes of the grid that the key runs through. */
const GRID_SIZES: readonly (readonly [rows: number, columns: number])[] = [
  [1, 1],
  [1, 2],
  [2, 2],
  [3, 3],
];
const ARROWS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Parts of the page that keys act on. */
export interface KeyTarget {
  readonly actions: Actions;
  readonly layouts: Pick<
    Layouts,
    "isImage" | "isPossible" | "layout" | "set" | "setGrid" | "step" | "zoomed"
  >;
  readonly state: () => State;
  readonly size: () => Size;
  /** Longest diagonal of the volume, world units. */
  readonly diagonal: () => number;
  readonly move: (camera: Camera) => void;
  readonly rest: () => void;
  readonly stepTime: (by: number) => void;
  /** Shows a short message, such as the reason why a key does nothing. */
  readonly tell: (text: string) => void;
  /** Axis of the plane that PageUp and PageDown move. */
  readonly activeAxis: () => AxisNumber;
}

export function keyHandlers(target: KeyTarget): KeyHandlers {
  const { actions, layouts, state, size } = target;
  const { together } = actions;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const restSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      target.rest();
    }, REST_MILLIS);
  };
  /** Moves the camera as a key says; not while there is none. */
  const moves =
    (how: (camera: Camera, press: KeyPress) => Camera): KeyHandler =>
    (press) => {
      const { camera } = state().view;
      if (!camera) return false;
      target.move(how(camera, press));
      restSoon();
      return true;
    };
  const runs =
    (run: () => void): KeyHandler =>
    () => {
      run();
      return true;
    };
  const panned = (camera: Camera, press: KeyPress) => {
    const [x, y] = ARROWS[press.key] ?? [0, 0];
    // The arrow names the direction in which the picture is left, so an image moves against it.
    return layouts.isImage
      ? pan(camera, -x * IMAGE_STEP_PIXELS, -y * IMAGE_STEP_PIXELS, size())
      : pan(camera, x * STEP_PIXELS, y * STEP_PIXELS, size());
  };
  const turned = (camera: Camera, press: KeyPress) => {
    const [x, y] = ARROWS[press.key] ?? [0, 0];
    return layouts.isImage ? panned(camera, press) : turn(camera, -x * TURN_RAD, -y * TURN_RAD);
  };
  const zoomed = (factor: number) => (camera: Camera) =>
    layouts.isImage ? layouts.zoomed(camera, factor, 0, 0) : zoom(camera, factor, target.diagonal(), size());
  const slice = (by: number) =>
    runs(() => {
      layouts.step(by, target.activeAxis(), false);
      restSoon();
    });
  const layout = (which: Parameters<Layouts["set"]>[0]) =>
    runs(() => {
      if (state().array === null || layouts.isPossible(which)) layouts.set(which);
      else target.tell(texts.layout.notPossible(texts.layout[which]));
    });
  /** Runs what needs steps of time. */
  const inTime = (run: () => void) =>
    runs(() => {
      const { array } = state();
      if (array === null || timeSteps(array) > 1) run();
      else target.tell(texts.layout.noTime);
    });
  return {
    turn: moves(turned),
    pan: moves(panned),
    zoomIn: moves(zoomed(1 / ZOOM_STEP)),
    zoomOut: moves(zoomed(ZOOM_STEP)),
    resetCamera: runs(actions.resetCamera),
    axisView: (press) => {
      actions.axisView(Number(press.key) - 1);
      return true;
    },
    projection: runs(actions.toggleProjection),
    space: layout("space"),
    image: layout("image"),
    planes: layout("planes"),
    grid: runs(() => {
      if (layouts.layout === "planes") target.tell(texts.layout.noGridOfPlanes);
      else cycleGrid(layouts, state());
    }),
    nextSlice: slice(1),
    previousSlice: slice(-1),
    play: inTime(actions.togglePlay),
    timeBack: inTime(() => {
      target.stepTime(-1);
    }),
    timeForward: inTime(() => {
      target.stepTime(1);
    }),
    readCenter: runs(actions.readCenter),
    save: runs(actions.openSave),
    copyLink: runs(() => {
      actions.copyLink(false);
    }),
    background: runs(actions.nextBackground),
    panel: runs(actions.togglePanel),
    open: runs(actions.openData),
    fullscreen: runs(actions.toggleFullscreen),
    help: runs(actions.openHelp),
    people: runs(together.togglePanel),
    laser: runs(together.toggleLaser),
    undo: runs(together.undo),
    redo: runs(together.redo),
    redoToo: runs(together.redo),
  };
}

function cycleGrid(layouts: KeyTarget["layouts"], { dataset, array, view }: State): void {
  if (!dataset || !array) return;
  const now = GRID_SIZES.findIndex(
    ([r, c]) => r === (view.grid?.rows ?? 1) && c === (view.grid?.columns ?? 1),
  );
  const [rows, columns] = GRID_SIZES[(now + 1) % GRID_SIZES.length] ?? [1, 1];
  layouts.setGrid(resizedGrid(view.grid, rows, columns, dataset, array, view));
}
