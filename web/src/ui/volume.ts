//! What is drawn of the volume itself, besides isosurfaces and slices.

import type { Actions, Part, State } from "../app/state.ts";
import { MODES, type Mode } from "../view/schema.ts";
import { checkbox, el, setOptions } from "./dom.ts";

const LABELS: Readonly<Record<Mode, string>> = {
  composite: "As the transfer function shows",
  maximum: "Largest value along each ray",
  minimum: "Smallest value along each ray",
  surfaces: "Not at all",
};
const ORDER: readonly Mode[] = ["composite", "maximum", "minimum", "surfaces"];

export function volumeControl(actions: Actions): Part {
  const select = el("select", { "aria-label": "How the volume is drawn", id: "mode" });
  select.addEventListener("change", () => {
    const mode = MODES.find((name) => name === select.value);
    if (mode) actions.change({ mode });
  });
  const light = checkbox("Light the volume", (isOn) => {
    actions.change({ shading: isOn });
  });
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, "Volume"),
    el("label", { class: "select" }, select),
    light.element,
  );
  const update = ({ view, array }: State) => {
    // Labels have no order, so they have no extreme values.
    const isDisabled = (mode: Mode) =>
      array?.meaning === "labels" && (mode === "maximum" || mode === "minimum");
    const options = ORDER.map((mode) => ({ value: mode, label: LABELS[mode], isDisabled: isDisabled(mode) }));
    setOptions(select, options, view.mode);
    light.element.hidden = view.mode !== "composite";
    light.set(view.shading);
  };
  return { element, update };
}
