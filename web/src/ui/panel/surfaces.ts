//! Isosurfaces: a slider over the histogram and a row for each, with value, color and opacity.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { isContinuous } from "../../dataset/dataset.ts";
import { formatPlace } from "../../dataset/labels.ts";
import { MAX_SURFACES, type ColorBy, type Surface, type Transfer, type Vec3 } from "../../view/schema.ts";
import { nextIsovalue } from "../../transfer/isovalue.ts";
import { el, iconButton, textButton } from "../dom.ts";
import { isoPlot } from "../surfaces/iso-plot.ts";

/** Colors of new surfaces, as those of `corridor render --iso`. */
const COLORS: readonly Vec3[] = [
  [230, 200, 160],
  [86, 180, 233],
  [213, 94, 0],
  [0, 158, 115],
  [204, 121, 167],
  [240, 228, 66],
];

export function surfaceControl(actions: Actions): Component {
  let surfaces: readonly Surface[] = [];
  let transfer: Transfer | null = null;
  const change = (next: readonly Surface[], isMoving = false) => {
    actions.change({ surfaces: next }, isMoving);
  };
  const rows = el("div", { class: "surfaces" });
  const plot = isoPlot((index, value) => {
    const next = surfaces.map((surface, i) => (i === index ? { ...surface, value } : surface));
    change(next, true);
  }, actions.rest);
  const add = textButton(texts.surfacesPanel.add, () => {
    const color = COLORS[surfaces.length % COLORS.length] ?? [255, 255, 255];
    const values = surfaces.map(({ value }) => value);
    change([...surfaces, { value: transfer ? nextIsovalue(transfer, values) : 0, color, opacity: 1 }]);
  });
  const element = el(
    "section",
    { class: "group" },
    el("div", { class: "group-head" }, el("h2", {}, texts.surfacesPanel.isosurfaces), add),
    plot.element,
    rows,
  );
  const update = (state: State) => {
    const { view, array } = state;
    surfaces = view.surfaces;
    transfer = view.transfer;
    plot.update(state);
    const hasNone = array !== null && !isContinuous(array);
    const isFull = surfaces.length >= MAX_SURFACES;
    add.disabled = hasNone || isFull;
    add.title = hasNone
      ? texts.surfacesPanel.notContinuous
      : isFull
        ? texts.surfacesPanel.atMost(MAX_SURFACES)
        : "";
    while (rows.children.length > surfaces.length) rows.lastElementChild?.remove();
    surfaces.forEach((surface, index) => {
      const row = rows.children[index] ?? rows.appendChild(newRow(index));
      showRow(row, surface, view.color_by);
    });
  };
  const newRow = (index: number): HTMLElement => {
    const set = (fields: Partial<Surface>, isMoving = false) => {
      const next = surfaces.map((surface, i) => (i === index ? { ...surface, ...fields } : surface));
      change(next, isMoving);
    };
    const remove = () => {
      change(surfaces.filter((_, i) => i !== index));
    };
    return row(index, set, actions.rest, remove);
  };
  return { element, update };
}

function row(
  index: number,
  set: (fields: Partial<Surface>, isMoving?: boolean) => void,
  rest: () => void,
  remove: () => void,
): HTMLElement {
  const name = texts.surfacesPanel.surface(index + 1);
  const color = el("input", { type: "color", "aria-label": texts.surfacesPanel.colorOf(name) });
  const value = el("input", {
    type: "text",
    inputmode: "decimal",
    class: "number",
    "aria-label": texts.surfacesPanel.valueOf(name),
    spellcheck: "false",
  });
  const opacity = el("input", {
    type: "range",
    min: "0",
    max: "1",
    step: "0.01",
    "aria-label": texts.surfacesPanel.opacityOf(name),
  });
  color.addEventListener("input", () => {
    set({ color: fromHex(color.value) }, true);
  });
  value.addEventListener("change", () => {
    const number = Number(value.value);
    const isValid = value.value.trim() !== "" && Number.isFinite(number);
    value.setAttribute("aria-invalid", String(!isValid));
    if (isValid) set({ value: number });
  });
  opacity.addEventListener("input", () => {
    set({ opacity: Number(opacity.value) }, true);
  });
  for (const input of [color, opacity]) input.addEventListener("change", rest);
  return el(
    "div",
    { class: "surface" },
    color,
    value,
    opacity,
    iconButton("close", texts.surfacesPanel.remove(name), "", remove),
  );
}

/** Updates a row, except the input that the user is editing. */
function showRow(row: Element, surface: Surface, by: ColorBy | null): void {
  const [color, value, opacity] = row.querySelectorAll("input");
  const show = (input: HTMLInputElement | undefined, text: string) => {
    if (input && document.activeElement !== input && input.value !== text) input.value = text;
  };
  show(color, toHex(surface.color));
  if (color) {
    color.disabled = by !== null;
    color.title = by ? texts.surfacesPanel.coloredBy(by.array) : "";
  }
  show(value, formatPlace(surface.value));
  show(opacity, String(surface.opacity));
}

function toHex(color: Vec3): string {
  return `#${color.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
}

function fromHex(text: string): Vec3 {
  const part = (at: number) => Number.parseInt(text.slice(at, at + 2), 16);
  return [part(1), part(3), part(5)];
}
