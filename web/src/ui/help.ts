//! The help: keys and gestures, in a dialog.

import { KEY_HELP } from "../camera/keys.ts";
import { el, iconButton } from "./dom.ts";

const GESTURES: readonly (readonly [gesture: string, does: string])[] = [
  ["Drag, one finger", "Rotate"],
  ["Right drag, two fingers", "Pan"],
  ["Wheel, pinch", "Zoom"],
  ["Image: drag", "Pan"],
  ["Image: right drag, Alt and drag", "Range of values: width, center"],
  ["Image: Shift and wheel", "Next, previous slice"],
  ["Image: double click", "Fit"],
  ["Planes: click, drag a line", "Move the crosshair"],
  ["Double click on a title", "Enlarge a picture, and back"],
  ["Rest, click, tap", "Read a value, pin it"],
  ["Double click in the curve, + on a point", "Add an opacity point"],
  ["Right click, Delete on a point", "Remove it"],
  ["Arrows on a point (Shift: farther)", "Move it"],
];

export function helpDialog(): HTMLDialogElement {
  const close = iconButton("close", "Close", "Esc", () => {
    dialog.close();
  });
  const keys = KEY_HELP.map(([names, does]) =>
    entry(el("span", { class: "keys" }, ...names.map(keyCap)), does),
  );
  const gestures = GESTURES.map(([gesture, does]) => entry(el("span", {}, gesture), does));
  const dialog = el(
    "dialog",
    { class: "panel help", "aria-labelledby": "help-title" },
    el("div", { class: "help-head" }, el("h2", { id: "help-title" }, "Keys and gestures"), close),
    el("div", { class: "help-columns" }, el("dl", {}, ...keys), el("dl", {}, ...gestures)),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside its content
  });
  return dialog;
}

function keyCap(name: string): HTMLElement {
  return name === "…" || name === "arrows" ? el("span", {}, name) : el("kbd", {}, name);
}

function entry(term: HTMLElement, does: string): HTMLElement {
  return el("div", { class: "help-row" }, el("dt", {}, term), el("dd", {}, does));
}
