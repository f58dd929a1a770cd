//! Texts of keys and gestures: names on key caps, and the help.

import type { CommandId, KeyGroup } from "../keys/table.ts";

/** Names on key caps, by values of `KeyboardEvent.key`; those of signs are not listed. */
export const keyCaps = {
  " ": "Space",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  Control: "Ctrl",
  Escape: "Esc",
  PageDown: "Page ↓",
  PageUp: "Page ↑",
  Shift: "Shift",
};

/** Effects of the keys. */
export const keyTexts: Readonly<Record<CommandId, string>> = {
  turn: "Turn the volume, move an image",
  pan: "Move the picture",
  zoomIn: "Nearer",
  zoomOut: "Farther",
  resetCamera: "Reset the camera",
  axisView: "Look along an axis: ±x, ±y, ±z",
  projection: "Orthographic or perspective",
  space: "Three-dimensional picture",
  image: "Image: one plane seen head on",
  planes: "Three planes and the volume",
  grid: "Grid of linked pictures: next size",
  nextSlice: "Next slice",
  previousSlice: "Previous slice",
  play: "Play or pause time",
  timeBack: "One time step back",
  timeForward: "One time step forward",
  readCenter: "Read the value in the middle",
  save: "Save a picture or film, copy a command or code",
  copyLink: "Copy a link to this view",
  background: "Next background: dark, light, white",
  panel: "Show or hide the appearance panel",
  open: "Open other data",
  fullscreen: "Full screen, and back",
  help: "This help",
  people: "People, chat, notes, bookmarks",
  laser: "Laser pointer for others",
  undo: "Undo the last change of your view",
  redo: "Redo it",
  redoToo: "Redo it",
};

export const keyGroups: Readonly<Record<KeyGroup | "gestures" | "devices", string>> = {
  camera: "Camera",
  arrangement: "Arrangement and slices",
  time: "Time",
  picture: "Picture",
  page: "Page",
  people: "People and undo",
  gestures: "Mouse and touch",
  devices: "Gamepad and 3-D mouse",
};

/** Gestures and their effects. */
export const gestures: readonly (readonly [gesture: string, does: string])[] = [
  ["Drag, one finger", "Turn the volume"],
  ["Right drag, Shift and drag, two fingers", "Move the picture"],
  ["Wheel, pinch", "Nearer, farther"],
  ["Rest on a place, tap", "Read the value there"],
  ["Click, tap", "Pin a value"],
  ["Image: drag", "Move the image"],
  ["Image: right drag, Alt and drag", "Range of values: width, center"],
  ["Image: Shift and wheel", "Next, previous slice"],
  ["Image: double click", "Fit the image to the page"],
  ["Planes: click, drag a line", "Move the crosshair"],
  ["Double click on a title", "Enlarge a picture, and back"],
  ["Double click in the curve, + on a point", "Add an opacity point"],
  ["Right click, Delete on a point", "Remove an opacity point"],
  ["Arrows on a point (Shift: farther)", "Move an opacity point"],
  ["Tab and arrows on a handle (Shift: faster)", "Move slices, oblique planes and the clip box"],
  ["Drop a file on the page", "Open it, where the viewer runs on this machine"],
];
