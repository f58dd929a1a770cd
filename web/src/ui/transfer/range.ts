//! Number inputs for the ends of a color range, with a button that sets them.

import { formatNumber } from "../../dataset/labels.ts";
import { el } from "../dom.ts";

export interface RangeInputs {
  readonly element: HTMLElement;
  update(range: readonly [number, number]): void;
}

export function rangeInputs(set: (low: number, high: number) => void, choose: HTMLElement): RangeInputs {
  const low = field("Lowest value of the colors");
  const high = field("Highest value of the colors");
  const commit = () => {
    const [from, to] = [Number(low.value), Number(high.value)];
    const isValid =
      low.value.trim() !== "" && high.value.trim() !== "" && from < to && Number.isFinite(to - from);
    for (const input of [low, high]) input.setAttribute("aria-invalid", String(!isValid));
    if (isValid) set(from, to);
  };
  low.addEventListener("change", commit);
  high.addEventListener("change", commit);
  const element = el("div", { class: "range" }, low, choose, high);
  const update = (range: readonly [number, number]) => {
    show(low, range[0]);
    show(high, range[1]);
  };
  return { element, update };
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
  const text = formatNumber(value);
  if (input.value !== text) input.value = text;
  input.title = String(value);
  input.setAttribute("aria-invalid", "false");
}
