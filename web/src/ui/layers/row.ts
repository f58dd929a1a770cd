//! One row of the list of layers: eye, name, opacity, order, removal.

import { texts } from "../../texts/texts.ts";
import { LAYER_FACES, LAYER_LABELS, type Layer, type Vec3 } from "../../view/schema.ts";
import { el, iconButton, setIcon, setOptions, setText } from "../dom.ts";
import { isVisible, layerTitle, opacityOf } from "./edit.ts";

export interface RowActions {
  readonly set: (fields: Partial<Layer>, isMoving?: boolean) => void;
  readonly move: (by: 1 | -1) => void;
  readonly remove: () => void;
  readonly rest: () => void;
  /** Lets the file or the viewer choose the color of geometry. */
  readonly resetColor: () => void;
  /** Shows or hides the colors of the layer. */
  readonly choose: () => void;
}

export interface Row {
  readonly element: HTMLElement;
  update(
    layer: Layer,
    place: { isFirst: boolean; isLast: boolean; isChosen: boolean; isLabels: boolean },
  ): void;
}

/** Choices of a select; the first stands for the absence of a member. */
const LABEL_STYLES: Readonly<Record<string, string>> = texts.layers.labelStyles;
const FACE_STYLES: Readonly<Record<string, string>> = texts.layers.faceStyles;

/** Color with which a choice begins: the one that the viewer gives to the first geometry without colors. */
const START_COLOR: Vec3 = [230, 195, 150];

export function layerRow(actions: RowActions): Row {
  const eye = iconButton("eye", texts.layers.hide, "", () => {
    actions.set({ visible: eye.getAttribute("aria-pressed") !== "true" });
  });
  const name = el("button", { type: "button", class: "layer-name" });
  name.addEventListener("click", actions.choose);
  const opacity = el("input", { type: "range", min: "0", max: "1", step: "0.01" });
  opacity.addEventListener("input", () => {
    actions.set({ opacity: Number(opacity.value) }, true);
  });
  opacity.addEventListener("change", actions.rest);
  const style = el("select");
  let isGeometry = false;
  style.addEventListener("change", () => {
    const { value } = style;
    if (isGeometry) actions.set({ drawn: LAYER_FACES.find((known) => known === value) ?? "solid" });
    else actions.set({ labels: LAYER_LABELS.find((known) => known === value) ?? "filled" });
  });
  const color = el("input", { type: "color" });
  color.addEventListener("input", () => {
    const part = (at: number) => Number.parseInt(color.value.slice(at, at + 2), 16);
    actions.set({ color: [part(1), part(3), part(5)] }, true);
  });
  color.addEventListener("change", actions.rest);
  const automatic = el("span", { class: "layer-automatic" }, texts.layers.automaticColor);
  const colorBox = el("label", { class: "layer-color" }, color, automatic);
  const resetColor = iconButton("reset", texts.layers.automaticColor, "", actions.resetColor);
  resetColor.classList.add("small");
  const up = iconButton("up", texts.layers.moveUp, "", () => {
    actions.move(1);
  });
  const down = iconButton("down", texts.layers.moveDown, "", () => {
    actions.move(-1);
  });
  const remove = iconButton("close", texts.layers.remove, "", actions.remove);
  const styleBox = el("span", { class: "select" }, style);
  const element = el(
    "li",
    { class: "layer" },
    el("div", { class: "layer-head" }, eye, name, up, down, remove),
    el("div", { class: "layer-tools" }, opacity, styleBox, colorBox, resetColor),
  );
  const update: Row["update"] = (layer, { isFirst, isLast, isChosen, isLabels }) => {
    const title = layerTitle(layer);
    const isShown = isVisible(layer);
    isGeometry = layer.geometry !== undefined;
    setText(name, title);
    name.setAttribute("aria-expanded", String(isChosen));
    name.title = texts.layers.colorsOf(title);
    named(eye, isShown ? texts.layers.hideWhich(title) : texts.layers.showWhich(title));
    eye.setAttribute("aria-pressed", String(isShown));
    setIcon(eye, isShown ? "eye" : "hidden");
    named(up, texts.layers.moveUpWhich(title));
    named(down, texts.layers.moveDownWhich(title));
    named(remove, texts.layers.removeWhich(title));
    up.disabled = isLast;
    down.disabled = isFirst;
    opacity.setAttribute("aria-label", texts.layers.opacityOf(title));
    const percent = `${Math.round(100 * opacityOf(layer))} %`;
    opacity.setAttribute("aria-valuetext", percent);
    opacity.title = texts.layers.opacity(percent);
    if (document.activeElement !== opacity) opacity.value = String(opacityOf(layer));
    element.classList.toggle("is-hidden", !isShown);
    styleBox.hidden = !isGeometry && !isLabels;
    const isAutomatic = layer.color === undefined;
    colorBox.hidden = !isGeometry;
    colorBox.classList.toggle("is-automatic", isAutomatic);
    automatic.hidden = !isAutomatic;
    resetColor.hidden = !isGeometry || isAutomatic;
    style.setAttribute("aria-label", isGeometry ? texts.layers.facesOf(title) : texts.layers.labelsOf(title));
    const styles = isGeometry ? FACE_STYLES : LABEL_STYLES;
    const chosen = isGeometry ? (layer.drawn ?? "solid") : (layer.labels ?? "filled");
    setOptions(
      style,
      Object.entries(styles).map(([value, label]) => ({ value, label })),
      chosen,
    );
    const { colorOf, automaticColorOf, automaticColorHint, resetColorOf } = texts.layers;
    color.setAttribute("aria-label", isAutomatic ? automaticColorOf(title) : colorOf(title));
    colorBox.title = isAutomatic ? automaticColorHint : colorOf(title);
    named(resetColor, resetColorOf(title));
    // A field of a color cannot be empty: without a color the word beside it says so.
    if (document.activeElement !== color) color.value = hexColor(layer.color ?? START_COLOR);
  };
  return { element, update };
}

function hexColor(color: Vec3): string {
  return `#${color.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

function named(button: HTMLElement, label: string): void {
  button.setAttribute("aria-label", label);
  button.title = label;
}
