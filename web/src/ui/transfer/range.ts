//! Number inputs for the ends of a color range, with a button that sets them.

import { texts } from "../../texts/texts.ts";
import { formatPlace } from "../../dataset/labels.ts";
import { el } from "../dom.ts";

export interface RangeInputs {
  readonly element: HTMLElement;
  update(range: readonly [number, number]): void;
}

export function rangeInputs(set: (low: number, high: number) => void, choose: HTMLElement): RangeInputs {
  const low = field(texts.transferPanel.lowestValue);
  const high = field(texts.transferPanel.highestValue);
  let shown: readonly [number, number] = [0, 1];
  const commit = () => {
    const [from, to] = [typedEnd(low.value, shown[0]), typedEnd(high.value, shown[1])];
    const isValid = from < to && Number.isFinite(to - from);
    for (const input of [low, high]) input.setAttribute("aria-invalid", String(!isValid));
    if (isValid) set(from, to);
  };
  low.addEventListener("change", commit);
  high.addEventListener("change", commit);
  const element = el("div", { class: "range" }, low, choose, high);
  const update = (range: readonly [number, number]) => {
    shown = range;
    show(low, range[0]);
    show(high, range[1]);
  };
  return { element, update };
}

/** Value of an end of the range: as it was if its text is the one shown; NaN if it is no number. */
export function typedEnd(text: string, shown: number): number {
  if (text === formatPlace(shown)) return shown;
  return text.trim() === "" ? Number.NaN : Number(text);
}

function field(label: string): HTMLInputElement {
  return el("input", {
    type: "text",
    inputmode: "decimal",
    class: "number",
    "aria-label": label,
    spellcheck: "false",
  });
}

/** Shows a value, unless the input has the focus. */
function show(input: HTMLInputElement, value: number): void {
  if (document.activeElement === input) return;
  const text = formatPlace(value);
  if (input.value !== text) input.value = text;
  input.title = String(value);
  input.setAttribute("aria-invalid", "false");
}
