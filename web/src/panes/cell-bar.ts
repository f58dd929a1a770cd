//! Controls of one cell of a grid: its array, time step, and index on every other axis.

import { texts } from "../texts/texts.ts";
import type { State } from "../app/state.ts";
import { findArray, freeAxes, isDrawable, type ArrayInfo } from "../dataset/dataset.ts";
import { calendarOf, positionLabel, positionTitle } from "../dataset/labels.ts";
import { el, setOptions, setText } from "../ui/dom.ts";
import type { Cell, View } from "../view/schema.ts";

export interface CellBar {
  readonly element: HTMLElement;
  /** Shows what a cell shows: the positions are those that exist in its array. */
  show(state: State, shown: Pick<View, "array" | "time" | "at">): void;
}

/** Creates the controls; `change` gets the members that the user changed. */
export function cellBar(change: (part: Cell, isMoving: boolean) => void): CellBar {
  const select = el("select", { "aria-label": texts.panes.arrayOfThisPicture });
  select.addEventListener("change", () => {
    change({ array: select.value }, false);
  });
  const axes = el("span", { class: "cell-axes" });
  const choice = el("label", { class: "select" }, select);
  const element = el("span", { class: "cell-bar" }, choice, axes);
  let key = "";
  let rows: readonly AxisRow[] = [];
  const show = (state: State, shown: Pick<View, "array" | "time" | "at">) => {
    const { dataset } = state;
    const array = dataset ? findArray(dataset, shown.array) : null;
    if (!dataset || !array) return;
    const drawable = dataset.arrays.filter(isDrawable);
    setOptions(
      select,
      drawable.map(({ name }) => ({ value: name, label: name })),
      array.name,
    );
    // With its arrow.
    choice.hidden = drawable.length < 2;
    const free = freeAxes(array);
    const next = JSON.stringify([array.name, free.map(({ axis, size }) => [axis.name, size])]);
    if (next !== key) {
      key = next;
      rows = free.map(({ axis, size }) => axisRow(axis.name, axis.kind === "time", size, change));
      axes.replaceChildren(...rows.map((row) => row.element));
    }
    for (const row of rows) row.show(state, array, shown);
  };
  return { element, show };
}

interface AxisRow {
  readonly element: HTMLElement;
  show(state: State, array: ArrayInfo, shown: Pick<View, "time" | "at">): void;
}

function axisRow(
  name: string,
  isTime: boolean,
  size: number,
  change: (part: Cell, isMoving: boolean) => void,
): AxisRow {
  const input = el("input", {
    type: "number",
    min: 0,
    max: size - 1,
    step: 1,
    "aria-label": texts.panes.ofThisPicture(name),
  });
  const label = el("output", { class: "cell-label" });
  let at: Readonly<Record<string, number>> = {};
  input.addEventListener("input", () => {
    const index = Math.round(Number(input.value));
    if (input.value === "" || !(index >= 0 && index < size)) return;
    change(isTime ? { time: index } : { at: { ...at, [name]: index } }, true);
  });
  const element = el("label", { class: "cell-axis", title: name }, name, input, label);
  const show = (state: State, array: ArrayInfo, shown: Pick<View, "time" | "at">) => {
    ({ at } = shown);
    const index = isTime ? shown.time : (shown.at[name] ?? 0);
    if (document.activeElement !== input) input.value = String(index);
    const axis = array.axes.find((one) => one.name === name);
    const calendar = axis && state.dataset ? calendarOf(state.dataset, array, axis) : "standard";
    setText(label, axis ? positionLabel(axis, index, calendar, array.channels) : "");
    label.title = axis ? positionTitle(axis, index, calendar, array.channels) : "";
  };
  return { element, show };
}
