//! Choice of the array that determines the colors: the view's own, or another one with its color bar and range.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { canColor, findArray, freeAxes, type ArrayInfo } from "../../dataset/dataset.ts";
import { formatUnits } from "../../dataset/labels.ts";
import { cssGradient, findColormap } from "../../transfer/colormap.ts";
import { EXTREME_MODES, type ColorBy, type View } from "../../view/schema.ts";
import { el, setOptions, setText, textButton } from "../dom.ts";
import { rangeInputs } from "./range.ts";

/** The choice of the view's own array. */
const OWN = "";

export function colorBy(actions: Actions): Component {
  let by: ColorBy | null = null;
  const setRange = (range: ColorBy["range"]) => {
    if (by) actions.change({ color_by: { ...by, range } });
  };
  const select = el("select");
  select.addEventListener("change", () => {
    const array = select.value;
    actions.change({ color_by: array === OWN ? null : { array, at: {}, range: null, map: null } });
  });
  const automatic = textButton(texts.transferPanel.automatic, () => {
    setRange(null);
  });
  const range = rangeInputs((low, high) => {
    setRange([low, high]);
  }, automatic);
  const bar = el("div", { class: "swatch" });
  const source = el("p", { class: "hint" });
  const element = el(
    "div",
    { class: "color-by" },
    el("label", {}, texts.transferPanel.colorBy, el("span", { class: "select" }, select)),
    source,
    bar,
    range.element,
  );
  let shown: ArrayInfo | null = null;
  let fitting: readonly ArrayInfo[] = [];
  const update = ({ dataset, array, view, colormaps }: State) => {
    by = view.color_by;
    if (array !== shown) {
      shown = array;
      fitting = array && dataset ? dataset.arrays.filter((other) => canColor(other, array)) : [];
    }
    const colors = by && dataset ? findArray(dataset, by.array) : null;
    // A link may name an array that is not offered here.
    const listed = colors && !fitting.includes(colors) ? [...fitting, colors] : fitting;
    const options = listed.map(({ name, units }) => ({ value: name, label: withUnits(name, units) }));
    // An array that no longer exists can still be deselected.
    if (by && !colors) options.push({ value: by.array, label: by.array });
    setOptions(
      select,
      [{ value: OWN, label: texts.transferPanel.ownValues }, ...options],
      colors?.name ?? by?.array ?? OWN,
    );
    select.disabled = EXTREME_MODES.includes(view.mode);
    select.title = select.disabled ? texts.transferPanel.extremesHaveOwnColors : "";
    element.hidden = options.length === 0;
    for (const part of [source, bar, range.element]) part.hidden = by === null;
    if (!by) return;
    setText(source, colors ? sourceOf(colors, by, view) : by.array);
    bar.style.backgroundImage = cssGradient(findColormap(colormaps, { map: by.map ?? "" }));
    // The server has yet to choose it.
    range.element.style.visibility = by.range ? "" : "hidden";
    if (by.range) range.update(by.range);
  };
  return { element, update };
}

function withUnits(name: string, units: string): string {
  return units === "" ? name : `${name} (${formatUnits(units)})`;
}

/** Source of the bar's colors: the array, and its place along the axes that no slider moves. */
function sourceOf(array: ArrayInfo, by: ColorBy, view: View): string {
  const places = freeAxes(array).flatMap(({ axis: { kind, name } }) => {
    const index = by.at[name] ?? view.at[name] ?? 0;
    const channel = kind === "channel" ? array.channels[index] : undefined;
    return kind === "time" ? [] : [`${name} ${channel ?? index}`];
  });
  return [texts.transferPanel.valuesOf(withUnits(array.name, array.units)), ...places].join(", ");
}
