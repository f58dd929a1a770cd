//! Colors: the array that determines them, and the color map, chosen from swatches.

import type { Actions, Component, State } from "../../app/state.ts";
import { findArray } from "../../dataset/dataset.ts";
import { cssGradient } from "../../transfer/colormap.ts";
import type { ColorBy } from "../../view/schema.ts";
import { el } from "../dom.ts";
import { colorBy } from "./color-by.ts";

/** Color map of packed colors, for no other arrays. */
const OWN_COLORS = "rgb";

export function colormapPicker(actions: Actions): Component {
  const grid = el("div", { class: "maps", role: "radiogroup", "aria-label": "Color map" });
  const other = colorBy(actions);
  const element = el("section", { class: "group" }, el("h2", {}, "Colors"), other.element, grid);
  let key = "";
  let by: ColorBy | null = null;
  grid.addEventListener("change", (event) => {
    const { target } = event;
    if (!(target instanceof HTMLInputElement)) return;
    const map = target.value;
    if (by) actions.change({ color_by: { ...by, map } });
    else actions.edit((now) => ({ ...now, map }));
  });
  const update = (state: State) => {
    other.update(state);
    by = state.view.color_by;
    const chosen = (by ?? state.view.transfer)?.map ?? "";
    // A map that the server does not list (a link from elsewhere) is still named.
    const listed = [...state.colormaps.keys()].filter((name) => name !== OWN_COLORS || isOfColors(state));
    const names = [...new Set([...listed, ...(chosen === "" ? [] : [chosen])])];
    const next = JSON.stringify([names, state.colormaps.size]);
    if (next !== key) {
      key = next;
      grid.replaceChildren(...names.map((name) => swatch(name, cssGradient(state.colormaps.get(name)))));
    }
    for (const input of grid.querySelectorAll("input")) {
      input.checked = input.value === chosen;
      input.disabled = by === null && state.view.transfer === null;
    }
    element.hidden = names.length === 0 && other.element.hidden;
  };
  return { element, update };
}

/** True if the array that determines the colors is a color image. */
function isOfColors({ dataset, array, view }: State): boolean {
  const by = view.color_by && dataset ? findArray(dataset, view.color_by.array) : array;
  return by?.meaning === "colors";
}

function swatch(name: string, gradient: string): HTMLElement {
  const colors = el("span", { class: "swatch" });
  colors.style.backgroundImage = gradient;
  const input = el("input", { type: "radio", name: "color-map", value: name, class: "visually-hidden" });
  return el("label", { class: "map" }, input, colors, el("span", { class: "map-name" }, name));
}
