//! The choice of a colour map, as swatches.

import type { Actions, Part, State } from "../../app/state";
import { cssGradient } from "../../transfer/colormap";
import { el } from "../dom";

export function colourMaps(actions: Actions): Part {
  const grid = el("div", { class: "maps", role: "radiogroup", "aria-label": "Colour map" });
  const element = el("section", { class: "group" }, el("h2", {}, "Colours"), grid);
  let current: State | null = null;
  let key = "";
  grid.addEventListener("change", (event) => {
    const transfer = current?.view.transfer;
    if (transfer && event.target instanceof HTMLInputElement) {
      actions.change({ transfer: { ...transfer, map: event.target.value } });
    }
  });
  const update = (state: State) => {
    current = state;
    const chosen = state.view.transfer?.map ?? "";
    // A map that the server does not list (a link from elsewhere) is still named.
    const names = [...new Set([...state.colormaps.keys(), ...(chosen === "" ? [] : [chosen])])];
    const next = JSON.stringify([names, state.colormaps.size]);
    if (next !== key) {
      key = next;
      grid.replaceChildren(...names.map((name) => swatch(name, cssGradient(state.colormaps.get(name)))));
    }
    for (const input of grid.querySelectorAll("input")) {
      input.checked = input.value === chosen;
      input.disabled = state.view.transfer === null;
    }
    element.hidden = names.length === 0;
  };
  return { element, update };
}

function swatch(name: string, gradient: string): HTMLElement {
  const colours = el("span", { class: "swatch" });
  colours.style.backgroundImage = gradient;
  const input = el("input", { type: "radio", name: "colour-map", value: name, class: "visually-hidden" });
  return el("label", { class: "map" }, input, colours, el("span", { class: "map-name" }, name));
}
