//! A slider with two thumbs that selects a range within 0 to 1: two native sliders on one track, so that keys, focus
//! and screen readers work as on any slider.

import { el } from "../dom.ts";

/** Step of the arrow keys, and smallest length of the range. */
const STEP = 0.01;

export type Range = readonly [low: number, high: number];

export interface RangeSlider {
  readonly element: HTMLElement;
  set(range: Range): void;
}

/** Returns the range with one end moved; the other one stays as it is, also between steps. */
export function withEnd([low, high]: Range, end: "low" | "high", to: number): Range {
  return end === "low"
    ? [Math.max(0, Math.min(to, high - STEP)), high]
    : [low, Math.min(1, Math.max(to, low + STEP))];
}

/** `change` gets each new range while a thumb moves; `rest` is called when it stops. */
export function rangeSlider(name: string, change: (range: Range) => void, rest: () => void): RangeSlider {
  const input = (label: string) =>
    el("input", { type: "range", min: 0, max: 1, step: STEP, "aria-label": `${name} ${label}` });
  const [low, high] = [input("from"), input("to")];
  const track = el("div", { class: "range-slider" }, low, high);
  let range: Range = [0, 1];
  const set = (next: Range) => {
    range = next;
    const [from, to] = next;
    show(low, from);
    show(high, to);
    // Where both thumbs are at the same end, the one that can move is on top.
    low.classList.toggle("on-top", from > 0.5);
    track.style.setProperty("--from", String(from));
    track.style.setProperty("--to", String(to));
  };
  low.addEventListener("input", () => {
    change(withEnd(range, "low", Number(low.value)));
  });
  high.addEventListener("input", () => {
    change(withEnd(range, "high", Number(high.value)));
  });
  for (const end of [low, high]) end.addEventListener("change", rest);
  set(range);
  return {
    element: el(
      "div",
      { class: "range-slider-row" },
      el("span", { class: "range-slider-name" }, name),
      track,
    ),
    set,
  };
}

function show(input: HTMLInputElement, share: number): void {
  if (Number(input.value) !== share) input.value = String(share);
  input.setAttribute("aria-valuetext", `${Math.round(100 * share)} %`);
}
