//! List of layers: arrays and geometry over the array, the topmost first.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { findArray, type ArrayInfo } from "../../dataset/dataset.ts";
import { MAX_LAYERS, type Layer } from "../../view/schema.ts";
import { el, setOptions } from "../dom.ts";
import { layerColors } from "./colors.ts";
import {
  addArray,
  fittingArrays,
  moveLayer,
  removeLayer,
  setLayer,
  withoutColor,
  type Layers,
} from "./edit.ts";
import { layerRow, type Row } from "./row.ts";

/** The choice that adds nothing. */
const NONE = "";

export function layerList(actions: Actions): Component {
  let state: State | null = null;
  let chosen = -1;
  const layers = (): Layers => state?.view.layers ?? [];
  const change = (next: Layers, isMoving = false) => {
    actions.change({ layers: next }, isMoving);
  };
  const add = el("select", { "aria-label": texts.layers.addLayer });
  add.addEventListener("change", () => {
    const array = state?.dataset ? findArray(state.dataset, add.value) : null;
    add.value = NONE;
    if (array) change(addArray(layers(), array));
  });
  const list = el("ol", { class: "layers", "aria-label": texts.layers.listLabel });
  const colors = layerColors(actions, (fields, isMoving) => {
    change(setLayer(layers(), chosen, fields), isMoving);
  });
  const rows: Row[] = [];
  const newRow = (index: number): Row =>
    layerRow({
      set: (fields, isMoving) => {
        change(setLayer(layers(), index, fields), isMoving);
      },
      move: (by) => {
        if (chosen === index) chosen = index + by;
        else if (chosen === index + by) chosen = index;
        change(moveLayer(layers(), index, by));
        focusMover(index + by, by);
      },
      remove: () => {
        chosen = chosen === index ? -1 : chosen > index ? chosen - 1 : chosen;
        change(removeLayer(layers(), index));
        add.focus();
      },
      rest: actions.rest,
      resetColor: () => {
        change(withoutColor(layers(), index));
      },
      choose: () => {
        chosen = chosen === index ? -1 : index;
        if (state) update(state);
      },
    });
  /** Keeps the keyboard on the layer that was moved. */
  const focusMover = (index: number, by: 1 | -1) => {
    const buttons = rows[index]?.element.querySelectorAll<HTMLButtonElement>(".layer-head .icon-button");
    const [, up, down] = buttons ?? [];
    const [first, second] = by === 1 ? [up, down] : [down, up];
    (first?.disabled ? second : first)?.focus();
  };
  const element = el(
    "section",
    { class: "group" },
    el(
      "div",
      { class: "group-head" },
      el("h2", {}, texts.layers.layers),
      el("span", { class: "select" }, add),
    ),
    list,
  );
  let shown: ArrayInfo | null = null;
  let known: State["dataset"] = null;
  let fitting: readonly ArrayInfo[] = [];
  const update = (next: State) => {
    state = next;
    const { dataset, array, view } = next;
    if (array !== shown || dataset !== known) {
      [shown, known] = [array, dataset];
      fitting = array && dataset ? fittingArrays(dataset, array) : [];
    }
    const isFull = view.layers.length >= MAX_LAYERS;
    add.disabled = isFull || fitting.length === 0;
    add.title = isFull
      ? texts.layers.atMost(MAX_LAYERS)
      : fitting.length === 0
        ? texts.layers.noOtherArray
        : texts.layers.addHint;
    setOptions(
      add,
      [
        { value: NONE, label: texts.layers.add },
        ...fitting.map(({ name }) => ({ value: name, label: name })),
      ],
      NONE,
    );
    element.hidden = fitting.length === 0 && view.layers.length === 0;
    showRows(next);
  };
  const showRows = (now: State) => {
    const { layers } = now.view;
    if (chosen >= layers.length) chosen = -1;
    while (rows.length > layers.length) rows.pop()?.element.remove();
    while (rows.length < layers.length) {
      const row = newRow(rows.length);
      rows.push(row);
      // The topmost is drawn last.
      list.prepend(row.element);
    }
    layers.forEach((layer, index) => {
      rows[index]?.update(layer, {
        isFirst: index === 0,
        isLast: index === layers.length - 1,
        isChosen: index === chosen,
        isLabels: isLabels(layer, now),
      });
    });
    const layer = layers[chosen];
    if (!layer) {
      colors.element.remove();
      return;
    }
    const row = rows[chosen]?.element;
    if (row && colors.element.parentElement !== row) row.append(colors.element);
    colors.update(now, layer);
  };
  return { element, update };
}

function isLabels(layer: Layer, { dataset }: State): boolean {
  if (layer.array === undefined) return false;
  const array = dataset ? findArray(dataset, layer.array) : null;
  return layer.labels !== undefined || array?.meaning === "labels";
}
