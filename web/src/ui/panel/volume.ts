//! Controls of the volume itself: rendering mode, meaning of the values, switches and sliders of view fields, stereo.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { isContinuous, type SelectableMeaning } from "../../dataset/dataset.ts";
import { DEFAULT_PARALLAX, EXTREME_MODES, MODES, type FieldControl, type Mode } from "../../view/schema.ts";
import { fieldControls } from "./controls.ts";
import { checkbox, el, setOptions } from "../dom.ts";

const LABELS: Readonly<Record<Mode, string>> = texts.volumePanel.modes;
const MEANINGS: readonly { readonly value: SelectableMeaning; readonly label: string }[] = [
  { value: "intensity", label: texts.volumePanel.valuesAreIntensities },
  { value: "labels", label: texts.volumePanel.valuesAreLabels },
];
/** Choice that restores the meaning of the file, which the menu then shows. */
const AS_IN_FILE = { value: "file", label: texts.volumePanel.asInTheFile };
const ORDER: readonly Mode[] = ["composite", "maximum", "minimum", "surfaces"];

/** Controls that mean nothing in some states. */
const IS_IDLE: Partial<Record<FieldControl["field"], (state: State) => boolean>> = {
  shading: ({ view }) => view.mode !== "composite",
  grids: ({ array }) => array?.hasGrids !== true,
};

export function volumeControl(actions: Actions): Component {
  const select = el("select", { "aria-label": texts.volumePanel.renderingMode, id: "mode" });
  select.addEventListener("change", () => {
    const mode = MODES.find((name) => name === select.value);
    if (mode) actions.change(EXTREME_MODES.includes(mode) ? { mode, color_by: null } : { mode });
  });
  const meaning = el("select", { "aria-label": texts.volumePanel.meaning, id: "meaning" });
  let shown: SelectableMeaning = "intensity";
  meaning.addEventListener("change", () => {
    const chosen = MEANINGS.find(({ value }) => value === meaning.value);
    actions.interpret(chosen?.value ?? null);
    if (!chosen) meaning.value = shown;
  });
  const meaningChooser = el("label", { class: "select" }, meaning);
  meaningChooser.title = texts.volumePanel.meaningHint;
  const controls = fieldControls(actions);
  const pair = checkbox(texts.volumePanel.stereoPair, (isOn) => {
    actions.change({ stereo: isOn ? DEFAULT_PARALLAX : null });
  });
  pair.element.title = texts.volumePanel.stereoHint;
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, texts.volumePanel.volume),
    el("label", { class: "select" }, select),
    meaningChooser,
    ...controls.map((control) => control.element),
    pair.element,
  );
  const update = (state: State) => {
    const { view, array } = state;
    // Labels and colors have no order, hence no maximum or minimum.
    const isDisabled = (mode: Mode) => array !== null && !isContinuous(array) && EXTREME_MODES.includes(mode);
    const options = ORDER.map((mode) => ({ value: mode, label: LABELS[mode], isDisabled: isDisabled(mode) }));
    setOptions(select, options, view.mode);
    // Labels are whole numbers.
    const selectable = MEANINGS.find(({ value }) => value === array?.meaning);
    meaningChooser.hidden = array === null || !selectable || /f\d/.test(array.dtype);
    shown = selectable?.value ?? "intensity";
    setOptions(meaning, [...MEANINGS, AS_IN_FILE], shown);
    for (const { field, element, show } of controls) {
      element.hidden = IS_IDLE[field]?.(state) ?? false;
      show(state);
    }
    pair.element.hidden = view.camera !== null && "orthographic" in view.camera.projection;
    pair.set(view.stereo !== null);
  };
  return { element, update };
}
