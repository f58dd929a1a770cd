//! Keyboard commands, and their list in the help. Controls with the focus get their keys first.

import type { Camera } from "../view/schema.ts";
import type { Actions } from "../app/state.ts";
import { pan, turn, zoom, type Size } from "./camera.ts";

export interface KeyTarget {
  readonly actions: Actions;
  camera(): Camera | null;
  diagonal(): number;
  size(): Size;
  move(camera: Camera): void;
  rest(): void;
  /** Handles a key before the others, and returns whether it did: keys of the arrangement of pictures. */
  handleKey?(key: string): boolean;
}

/** Lines of the help: keys and their effect. */
export const KEY_HELP: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["←", "→", "↑", "↓"], "Rotate"],
  [["Shift", "arrows"], "Pan"],
  [["+", "−"], "Zoom in, out"],
  [["R"], "Reset the camera"],
  [["1", "…", "6"], "Look along an axis: ±x, ±y, ±z"],
  [["O"], "Orthographic or perspective"],
  [["V"], "Three-dimensional picture"],
  [["I"], "Image: one plane seen head on; arrows pan"],
  [["M"], "Three planes and the volume"],
  [["G"], "Grid of linked pictures: next size"],
  [["Page ↑", "Page ↓"], "Next, previous slice"],
  [["Tab", "arrows"], "Move slices, oblique planes and the clip box by their handles; Shift: faster"],
  [["Space"], "Play or pause time"],
  [[",", "."], "One time step back, forward"],
  [["P"], "Show or hide the panel"],
  [["T"], "People, chat, notes, bookmarks"],
  [["X"], "Laser pointer for others"],
  [["Ctrl+Z", "Ctrl+Shift+Z"], "Undo, redo a change of your view"],
  [["V"], "Read the value in the middle"],
  [["S"], "Save a picture or film, copy a command or code"],
  [["L"], "Copy a link to this view"],
  [["?"], "This help"],
];

const TURN_RAD = Math.PI / 36;
const STEP_PIXELS = 24;
const ZOOM_STEP = 1.12;
const REST_MILLIS = 220;

type ControlKind = "text" | "slider" | "toggle" | "button" | "none";

/** Kinds of controls by selector; the first that matches counts. */
const KINDS: readonly (readonly [selector: string, kind: ControlKind])[] = [
  ["dialog, select, textarea", "text"],
  ["input[type=range], [role=slider]", "slider"],
  ["input[type=checkbox], input[type=radio], input[type=color]", "toggle"],
  ["input", "text"],
  ["button, a", "button"],
];

/** True if a control that has the focus uses a key itself. */
export function usesKey(control: ControlKind, key: string): boolean {
  switch (control) {
    case "text":
      return true;
    case "slider":
      return /^(Arrow|Page|Home$|End$)/.test(key);
    case "toggle":
      return key === " " || key.startsWith("Arrow");
    case "button":
      return key === " ";
    case "none":
      return false;
  }
}

export function listenToKeys(target: KeyTarget, stepTime: (by: number) => void): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener("keydown", (event) => {
    const { target: focused, key } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!(focused instanceof Element)) return;
    const control = KINDS.find(([selector]) => focused.closest(selector))?.[1] ?? "none";
    if (usesKey(control, key)) return;
    const isHandled = target.handleKey?.(key) === true;
    const moved = isHandled ? null : movedCamera(target, event);
    if (moved) target.move(moved);
    else if (!isHandled && !command(target.actions, key, stepTime)) return;
    if (moved || isHandled) {
      clearTimeout(timer);
      timer = setTimeout(() => {
        target.rest();
      }, REST_MILLIS);
    }
    event.preventDefault();
  });
}

function movedCamera(target: KeyTarget, event: KeyboardEvent): Camera | null {
  const camera = target.camera();
  if (!camera) return null;
  const direction = DIRECTIONS[event.key];
  if (direction) {
    const [x, y] = direction;
    if (event.shiftKey) return pan(camera, x * STEP_PIXELS, y * STEP_PIXELS, target.size());
    return turn(camera, -x * TURN_RAD, -y * TURN_RAD);
  }
  if (event.key === "+" || event.key === "=")
    return zoom(camera, 1 / ZOOM_STEP, target.diagonal(), target.size());
  if (event.key === "-" || event.key === "_")
    return zoom(camera, ZOOM_STEP, target.diagonal(), target.size());
  return null;
}

const DIRECTIONS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

function command(actions: Actions, key: string, stepTime: (by: number) => void): boolean {
  if (/^[1-6]$/.test(key)) {
    actions.axisView(Number(key) - 1);
    return true;
  }
  const commands: Readonly<Record<string, () => void>> = {
    r: actions.resetCamera,
    o: actions.toggleProjection,
    " ": actions.togglePlay,
    ",": () => {
      stepTime(-1);
    },
    ".": () => {
      stepTime(1);
    },
    p: actions.togglePanel,
    t: actions.together.togglePanel,
    x: actions.together.toggleLaser,
    v: actions.readCenter,
    s: actions.openSave,
    l: () => {
      actions.copyLink(false);
    },
    "?": actions.openHelp,
    h: actions.openHelp,
  };
  const run = commands[key.toLowerCase()];
  run?.();
  return run !== undefined;
}
