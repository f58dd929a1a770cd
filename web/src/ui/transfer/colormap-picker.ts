//! Colors: the array that determines them, and the color map, chosen from swatches.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { findArray } from "../../dataset/dataset.ts";
import { cssGradient, findColormap, mapDirection } from "../../transfer/colormap.ts";
import type { ColorBy, Transfer } from "../../view/schema.ts";
import { checkbox, el } from "../dom.ts";
import { colorBy } from "./color-by.ts";

/** Color map of packed colors, for no other arrays. */
const OWN_COLORS = "rgb";
/** Color maps without an order, which cannot be reversed. */
const CATEGORICAL: readonly string[] = ["labels", OWN_COLORS];

export function colormapPicker(actions: Actions): Component {
  const grid = el("div", { class: "maps", role: "radiogroup", "aria-label": texts.transferPanel.colorMap });
  const other = colorBy(actions);
  let key = "";
  let by: ColorBy | null = null;
  let isReversed = false;
  /** Sets the map and its direction; a map of another array has no member for it, only the end of its name. */
  const set = (base: string, reversed: boolean) => {
    if (by) actions.change({ color_by: { ...by, map: reversed ? `${base}_r` : base } });
    else actions.edit((now) => ({ ...now, map: base, reversed }));
  };
  let chosenMap = "";
  const reverse = checkbox(texts.transferPanel.reversed, (isOn) => {
    set(chosenMap, isOn);
  });
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, texts.transferPanel.colors),
    other.element,
    grid,
    reverse.element,
  );
  grid.addEventListener("change", (event) => {
    const { target } = event;
    if (!(target instanceof HTMLInputElement)) return;
    set(target.value, isReversed && !CATEGORICAL.includes(target.value));
  });
  const update = (state: State) => {
    other.update(state);
    by = state.view.color_by;
    const { base: chosen, isReversed: isNamedReversed } = mapDirection(
      (by ?? state.view.transfer)?.map ?? "",
    );
    chosenMap = chosen;
    isReversed = isNamedReversed !== (by === null && (state.view.transfer?.reversed ?? false));
    reverse.set(isReversed);
    reverse.element.hidden = chosen === "" || CATEGORICAL.includes(chosen);
    // A map that the server does not list (a link from elsewhere) is still named.
    const listed = [...state.colormaps.keys()].filter((name) => name !== OWN_COLORS || isOfColors(state));
    const names = [...new Set([...listed, ...(chosen === "" ? [] : [chosen])])];
    const next = JSON.stringify([names, state.colormaps.size, isReversed]);
    if (next !== key) {
      key = next;
      grid.replaceChildren(
        ...names.map((name) => swatch(name, cssGradient(gradientOf(state, name, isReversed)))),
      );
    }
    for (const input of grid.querySelectorAll("input")) {
      input.checked = input.value === chosen;
      input.disabled = by === null && state.view.transfer === null;
    }
    element.hidden = names.length === 0 && other.element.hidden;
  };
  return { element, update };
}

/** The colors of a map in the present direction. */
function gradientOf({ colormaps }: State, map: string, isReversed: boolean) {
  const reversed = isReversed && !CATEGORICAL.includes(map);
  return findColormap(colormaps, { map, reversed } satisfies Pick<Transfer, "map" | "reversed">);
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
