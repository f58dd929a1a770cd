//! Slices: a checkbox and a slider for each axis of the volume with more than one voxel.

import type { Actions, Component, State } from "../app/state.ts";
import { spaceShape } from "../dataset/dataset.ts";
import { SPACE_AXES, type Slice, type SpaceAxis } from "../view/schema.ts";
import { checkbox, el, setText } from "./dom.ts";
import { obliqueRow } from "./layout/oblique.ts";

interface Row {
  readonly element: HTMLElement;
  update(slices: readonly Slice[], size: number): void;
}

export function sliceControl(actions: Actions): Component {
  let slices: readonly Slice[] = [];
  const change = (next: readonly Slice[], isMoving: boolean) => {
    slices = next;
    actions.change({ slices }, isMoving);
  };
  const rows = SPACE_AXES.map((axis) => row(axis, () => slices, change, actions.rest));
  const oblique = obliqueRow(actions);
  const elements = [...rows.map((r) => r.element), oblique.element];
  const element = el("section", { class: "group" }, el("h2", {}, "Slices"), ...elements);
  const update = (state: State) => {
    const { view, array } = state;
    oblique.update(state);
    ({ slices } = view);
    const shape = array ? spaceShape(array) : [1, 1, 1];
    rows.forEach((r, axis) => {
      r.update(slices, shape[axis] ?? 1);
    });
  };
  return { element, update };
}

/** Row for the first slice across an axis; further slices come only from links. */
function row(
  axis: SpaceAxis,
  now: () => readonly Slice[],
  change: (slices: readonly Slice[], isMoving: boolean) => void,
  rest: () => void,
): Row {
  let middle = 0;
  const tick = checkbox(axis, (isOn) => {
    const others = now().filter((slice) => slice.axis !== axis || slice.normal !== undefined);
    change(isOn ? [...others, { axis, at: middle }] : others, false);
  });
  tick.element.querySelector("input")?.setAttribute("aria-label", `Slice across ${axis}`);
  const slider = el("input", {
    type: "range",
    min: 0,
    step: 1,
    "aria-label": `Position of the slice across ${axis}`,
  });
  const place = el("output", { class: "slice-place" });
  slider.addEventListener("input", () => {
    change(moved(now(), axis, Number(slider.value)), true);
  });
  slider.addEventListener("change", rest);
  const element = el("div", { class: "slice-row" }, tick.element, slider, place);
  const update = (slices: readonly Slice[], size: number) => {
    const slice = slices.find((s) => s.axis === axis && s.normal === undefined);
    middle = Math.floor((size - 1) / 2);
    element.hidden = size < 2;
    tick.set(slice !== undefined);
    slider.disabled = slice === undefined;
    slider.max = String(size - 1);
    const at = slice?.at ?? middle;
    if (Number(slider.value) !== at) slider.value = String(at);
    slider.style.setProperty("--share", String(at / Math.max(1, size - 1)));
    setText(place, slice ? String(at) : "");
    slider.setAttribute("aria-valuetext", `${at} of 0 to ${size - 1}`);
  };
  return { element, update };
}

/** Returns the slices with the first one across an axis moved. */
export function moved(slices: readonly Slice[], axis: SpaceAxis, at: number): readonly Slice[] {
  const first = slices.findIndex((slice) => slice.axis === axis && slice.normal === undefined);
  return slices.map((slice, i) => (i === first ? { ...slice, at } : slice));
}
