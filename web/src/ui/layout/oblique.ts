//! Row of the slices for an oblique plane: it faces the viewer when it is added, and a slider moves it along its normal.

import { texts } from "../../texts/texts.ts";
import type { Actions, State } from "../../app/state.ts";
import { formatNumber } from "../../dataset/labels.ts";
import { thickAxes } from "../../layout/space.ts";
import { atOffset, isOblique, obliqueFacing, offsetOf, reach, withOblique } from "../../layout/oblique.ts";
import { MAX_SLICES } from "../../view/schema.ts";
import { checkbox, el, setText, textButton } from "../dom.ts";

/** Steps of the slider from one end of the volume to the other. */
const STEPS = 400;

export function obliqueRow(actions: Actions): { element: HTMLElement; update: (state: State) => void } {
  let state: State | null = null;
  const face = () => {
    if (!state?.array || !state.view.camera) return;
    actions.change({ slices: withOblique(state.view.slices, obliqueFacing(state.array, state.view.camera)) });
  };
  const tick = checkbox(texts.layout.oblique, (isOn) => {
    if (isOn) face();
    else if (state) actions.change({ slices: withOblique(state.view.slices, null) });
  });
  const input = tick.element.querySelector("input");
  input?.setAttribute("aria-label", texts.layout.obliqueSlice);
  const slider = el("input", {
    type: "range",
    min: -1,
    max: 1,
    step: 2 / STEPS,
    "aria-label": texts.layout.obliquePosition,
  });
  const place = el("output", { class: "slice-place" });
  slider.addEventListener("input", () => {
    const { array, view } = state ?? {};
    const plane = view?.slices.find(isOblique);
    if (!array || !view || !plane) return;
    const moved = atOffset(array, plane, Number(slider.value) * reach(array, plane.normal));
    actions.change({ slices: withOblique(view.slices, moved) }, true);
  });
  slider.addEventListener("change", actions.rest);
  const turn = textButton(texts.layout.faceTheViewer, face);
  const element = el("div", {}, el("div", { class: "slice-row" }, tick.element, slider, place), turn);
  const update = (next: State) => {
    state = next;
    const { array, view } = next;
    const plane = view.slices.find(isOblique);
    element.hidden = array === null || thickAxes(array) < 3;
    tick.set(plane !== undefined);
    if (input) input.disabled = plane === undefined && view.slices.length >= MAX_SLICES;
    slider.disabled = plane === undefined;
    turn.hidden = plane === undefined;
    const offset = array && plane ? offsetOf(array, plane) : 0;
    const share = array && plane ? offset / reach(array, plane.normal) : 0;
    if (!slider.matches(":active")) slider.value = String(share);
    slider.style.setProperty("--share", String((share + 1) / 2));
    setText(place, plane ? formatNumber(offset) : "");
  };
  return { element, update };
}
