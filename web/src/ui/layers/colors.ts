//! Colors of one layer: color map and the editor of the view's transfer function, for that of the layer.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { findArray } from "../../dataset/dataset.ts";
import type { Layer } from "../../view/schema.ts";
import { el, setOptions, setText } from "../dom.ts";
import { transferEditor } from "../transfer/editor.ts";

export interface LayerColors {
  readonly element: HTMLElement;
  update(state: State, layer: Layer): void;
}

/** Returns actions whose changes of the transfer function are those of a layer; null resets it. */
export function layerActions(
  actions: Actions,
  layer: () => Layer | null,
  set: (fields: Partial<Layer>, isMoving: boolean) => void,
): Actions {
  return {
    ...actions,
    rest: actions.rest,
    change: ({ transfer }, isMoving = false) => {
      if (transfer !== undefined) set({ transfer }, isMoving);
    },
    edit: (how, isMoving = false) => {
      const transfer = layer()?.transfer;
      if (transfer) set({ transfer: how(transfer) }, isMoving);
    },
  };
}

/** `set` changes the layer that is shown last. */
export function layerColors(
  actions: Actions,
  set: (fields: Partial<Layer>, isMoving: boolean) => void,
): LayerColors {
  let layer: Layer | null = null;
  const own = layerActions(actions, () => layer, set);
  const editor: Component = transferEditor(own);
  const map = el("select", { "aria-label": texts.layers.colorMapLabel });
  map.addEventListener("change", () => {
    own.edit((now) => ({ ...now, map: map.value, reversed: false }));
  });
  const hint = el("p", { class: "hint" });
  const parts = el(
    "div",
    {},
    el("label", {}, texts.layers.colorMap, el("span", { class: "select" }, map)),
    editor.element,
  );
  const element = el("div", { class: "layer-colors" }, hint, parts);
  const update: LayerColors["update"] = (state, next) => {
    layer = next;
    const transfer = next.transfer ?? null;
    const array = next.array !== undefined && state.dataset ? findArray(state.dataset, next.array) : null;
    const isLabels = next.labels !== undefined || array?.meaning === "labels";
    parts.hidden = transfer === null || isLabels;
    hint.hidden = !parts.hidden;
    setText(hint, hintOf(next, isLabels));
    if (transfer === null || isLabels) return;
    const names = [...new Set([...state.colormaps.keys(), transfer.map])];
    setOptions(
      map,
      names.map((name) => ({ value: name, label: name })),
      transfer.map,
    );
    // Statistics are those of the view's own array.
    editor.update({ ...state, array, stats: null, view: { ...state.view, transfer, color_by: null } });
  };
  return { element, update };
}

function hintOf(layer: Layer, isLabels: boolean): string {
  if (isLabels) return texts.layers.colorOfEachLabel;
  return layer.geometry === undefined ? texts.layers.colorsToCome : "";
}
