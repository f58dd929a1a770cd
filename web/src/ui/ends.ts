//! A slider with two ends: a part of the way from 0 to 1. Two sliders of the browser's own, one upon the other, so
//! that keys, focus and screen readers work as on any slider.

import { el } from "./dom.ts";

/** Steps of the keys, and least distance of the ends. */
const STEP = 0.01;

export type Ends = readonly [low: number, high: number];

export interface EndsSlider {
  readonly element: HTMLElement;
  set(ends: Ends): void;
}

/** `change` hears each new part while it moves, `rest` when it stays. */
export function endsSlider(name: string, change: (ends: Ends) => void, rest: () => void): EndsSlider {
  const input = (label: string) =>
    el("input", { type: "range", min: 0, max: 1, step: STEP, "aria-label": `${name} ${label}` });
  const [low, high] = [input("from"), input("to")];
  const track = el("div", { class: "ends" }, low, high);
  const set = ([from, to]: Ends) => {
    show(low, from);
    show(high, to);
    // Of two thumbs at one end the one that can move away from it is on top.
    low.classList.toggle("on-top", from > 0.5);
    track.style.setProperty("--from", String(from));
    track.style.setProperty("--to", String(to));
  };
  low.addEventListener("input", () => {
    change([Math.min(Number(low.value), Number(high.value) - STEP), Number(high.value)]);
  });
  high.addEventListener("input", () => {
    change([Number(low.value), Math.max(Number(high.value), Number(low.value) + STEP)]);
  });
  for (const end of [low, high]) end.addEventListener("change", rest);
  set([0, 1]);
  return { element: el("div", { class: "ends-row" }, el("span", { class: "ends-name" }, name), track), set };
}

function show(input: HTMLInputElement, share: number): void {
  if (Number(input.value) !== share) input.value = String(share);
  input.setAttribute("aria-valuetext", `${Math.round(100 * share)} %`);
}
