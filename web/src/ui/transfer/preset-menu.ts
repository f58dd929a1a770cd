//! Presets: shapes of the opacity curve over the present range, and whole transfer functions by kind of data.

import { texts } from "../../texts/texts.ts";
import { dataKind, shownQuantiles } from "../../app/distribution.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { isOneLayer, spaceShape } from "../../dataset/dataset.ts";
import { applyDataPreset, DATA_PRESETS, presetsFor } from "../../transfer/data-presets.ts";
import { applyPreset, PRESETS } from "../../transfer/edit.ts";
import { el, setOptions, textButton } from "../dom.ts";

/** The entry of the menu that says what it is. */
const NONE = "";

export function presetMenu(actions: Actions): Component {
  let state: State | null = null;
  const shapes = PRESETS.map((preset) => {
    const button = textButton(
      preset.name,
      () => {
        actions.edit((now) => applyPreset(now, preset.shape));
      },
      "chip-button",
    );
    button.title = preset.hint;
    return button;
  });
  const select = el("select", { "aria-label": texts.transferPanel.presetHint });
  select.addEventListener("change", () => {
    const preset = DATA_PRESETS.find(({ name }) => name === select.value);
    select.value = NONE;
    if (!preset || !state) return;
    const pairs = shownQuantiles(state);
    const side = state.array ? Math.max(...spaceShape(state.array)) : 1;
    actions.edit((now) => applyDataPreset(now, preset, pairs, side));
  });
  const shapeRow = el(
    "div",
    { class: "presets", role: "group", "aria-label": texts.transferPanel.presets },
    ...shapes,
  );
  const element = el("div", { class: "preset-menu" }, shapeRow, el("span", { class: "select" }, select));
  const update = (next: State) => {
    state = next;
    const { array } = next;
    // Presets make volumes transparent: a single layer would be black, and colors of images are not intensities.
    shapeRow.hidden = array !== null && (isOneLayer(array) || array.meaning === "colors");
    select.parentElement?.toggleAttribute("hidden", array?.meaning === "colors");
    const kind = dataKind(next);
    const options = presetsFor(kind).map(({ name, label, kinds }) => ({
      value: name,
      label: kinds.includes(kind) ? texts.transferPanel.suitable(label) : label,
    }));
    setOptions(select, [{ value: NONE, label: texts.transferPanel.choosePreset }, ...options], NONE);
  };
  return { element, update };
}
