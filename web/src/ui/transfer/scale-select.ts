//! Choice of the scale of the values: linear, logarithmic or symmetric logarithmic.

import { texts } from "../../texts/texts.ts";
import { leastPositive } from "../../app/distribution.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { rescaled } from "../../transfer/value-scale.ts";
import { VALUE_SCALES, type ValueScale } from "../../view/schema.ts";
import { el, setOptions, setText } from "../dom.ts";

const LABELS: Readonly<Record<ValueScale, string>> = texts.transferPanel.scales;

export function scaleSelect(actions: Actions): Component {
  let state: State | null = null;
  const select = el("select");
  select.addEventListener("change", () => {
    const scale = VALUE_SCALES.find((name) => name === select.value);
    const least = state ? leastPositive(state) : null;
    if (scale) actions.edit((now) => rescaled(now, scale, least));
  });
  const hint = el("p", { class: "hint" });
  const element = el(
    "div",
    { class: "tf-scale" },
    el("label", {}, texts.transferPanel.scale, el("span", { class: "select" }, select)),
    hint,
  );
  const update = (next: State) => {
    state = next;
    const { transfer } = next.view;
    const isAmount = next.array?.meaning === "intensity";
    element.hidden = transfer === null || !isAmount;
    if (!transfer) return;
    const hasPositive = transfer.range[1] > 0;
    const options = VALUE_SCALES.map((value) => ({
      value,
      label: LABELS[value],
      isDisabled: value === "log" && !hasPositive,
    }));
    setOptions(select, options, transfer.scale ?? "linear");
    setText(hint, transfer.scale === "log" ? texts.transferPanel.logarithmHint : "");
    hint.hidden = hint.textContent === "";
  };
  return { element, update };
}
