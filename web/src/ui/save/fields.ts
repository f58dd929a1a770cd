//! Fields of the forms for saving: a label with a control, selects, numbers.

import { el, setOptions } from "../dom.ts";

/** A control with its label. */
export function field(label: string, control: HTMLElement): HTMLElement {
  return el("label", { class: "save-field" }, el("span", {}, label), control);
}

export interface Choice {
  readonly element: HTMLElement;
  readonly select: HTMLSelectElement;
  value(): string;
  /** Sets the options; the chosen one is kept if it is still there. */
  setOptions(
    options: readonly { readonly value: string; readonly label: string; readonly isDisabled?: boolean }[],
  ): void;
}

/** A list to choose from. */
export function choice(label: string, changed: () => void): Choice {
  const select = el("select");
  select.addEventListener("change", changed);
  return {
    element: field(label, el("span", { class: "select" }, select)),
    select,
    value: () => select.value,
    setOptions: (options) => {
      const usable = options.filter((option) => option.isDisabled !== true);
      const kept = usable.find((option) => option.value === select.value) ?? usable[0];
      setOptions(select, options, kept?.value ?? "");
    },
  };
}

/** A field for a whole number or a fraction. */
export function numberInput(
  label: string,
  low: number,
  high: number,
  step: number | "any",
): HTMLInputElement {
  return el("input", {
    type: "number",
    class: "number",
    "aria-label": label,
    min: low,
    max: high,
    step,
  });
}

/** Reads a number between the bounds of its field; null for others. */
export function numberOf(input: HTMLInputElement): number | null {
  const value = input.valueAsNumber;
  const isWithin = Number.isFinite(value) && value >= Number(input.min) && value <= Number(input.max);
  return isWithin ? value : null;
}
