//! Slices: for each axis of the volume with more than one voxel a checkbox, a slider, and fields for index and coordinate.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { spaceShape } from "../../dataset/dataset.ts";
import { without } from "../../layout/crosshair.ts";
import { fileIndex, placeAxis, placeText, typedVoxel, voxelOfFileIndex } from "../../layout/place.ts";
import { axisNumber, planeName } from "../../layout/space.ts";
import { SPACE_AXES, type Slice, type SpaceAxis } from "../../view/schema.ts";
import { checkbox, el, setText } from "../dom.ts";
import { canCut } from "../handles/cutaway.ts";
import type { HandleSettings } from "../handles/settings.ts";
import { obliqueRow } from "../layout/oblique.ts";
import { parseIndex, placeInput } from "./place-input.ts";

interface Row {
  readonly element: HTMLElement;
  update(state: State): void;
}

export function sliceControl(actions: Actions, settings: HandleSettings): Component {
  let slices: readonly Slice[] = [];
  const change = (next: readonly Slice[], isMoving: boolean) => {
    slices = next;
    actions.change({ slices }, isMoving);
  };
  const rows = SPACE_AXES.map((axis) => row(axis, () => slices, change, actions.rest));
  const oblique = obliqueRow(actions);
  const cut = checkbox(texts.places.cutFree, (isOn) => {
    settings.cuts = isOn;
  });
  const elements = [...rows.map((r) => r.element), oblique.element, cut.element];
  const element = el("section", { class: "group" }, el("h2", {}, texts.places.slices), ...elements);
  const update = (state: State) => {
    const { view, array } = state;
    oblique.update(state);
    ({ slices } = view);
    for (const one of rows) one.update(state);
    const input = cut.element.querySelector("input");
    const isPossible = array !== null && canCut(array);
    if (input) input.disabled = !isPossible;
    cut.element.hidden = !slices.some((slice) => slice.hidden !== true);
    cut.element.title = isPossible ? texts.places.cutFreeHint : texts.places.turnedAxes;
    cut.set(settings.cuts);
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
  const number = axisNumber(axis);
  let middle = 0;
  let state: State | null = null;
  const tick = checkbox(axis, (isOn) => {
    change(isOn ? withSlice(now(), axis, middle) : withoutSlices(now(), axis), false);
  });
  tick.element.querySelector("input")?.setAttribute("aria-label", texts.places.sliceAcross(axis));
  const slider = el("input", {
    type: "range",
    min: 0,
    step: 1,
    "aria-label": texts.places.positionOfSlice(axis),
  });
  slider.addEventListener("input", () => {
    change(moved(now(), axis, Number(slider.value)), true);
  });
  slider.addEventListener("change", rest);
  const go = (at: number) => {
    change(moved(now(), axis, at), false);
  };
  const index = placeInput(
    texts.places.indexOfSlice(axis),
    (text) => {
      const { array } = state ?? {};
      if (!array) return { problem: texts.typed.noData };
      const typed = parseIndex(text, fileIndex(array, number, 0).size);
      return "place" in typed ? { place: voxelOfFileIndex(array, number, typed.place) } : typed;
    },
    go,
  );
  const coordinate = placeInput(
    texts.places.coordinateOfSlice(axis),
    (text) => {
      const { array, dataset } = state ?? {};
      const place = array && dataset ? placeAxis(dataset, array, number) : null;
      return place && array
        ? typedVoxel(text, place, spaceShape(array)[number])
        : { problem: texts.typed.noCoordinates };
    },
    go,
  );
  const places = el("span", { class: "slice-places" }, index.element, coordinate.element);
  const element = el("div", { class: "slice-row" }, tick.element, slider, places);
  const name = tick.element.querySelector("span") ?? tick.element.appendChild(el("span", {}));
  const update = (next: State) => {
    state = next;
    const { array, dataset, view } = next;
    const slice = view.slices.find((s) => s.axis === axis && s.normal === undefined);
    const size = array ? spaceShape(array)[number] : 1;
    middle = Math.floor((size - 1) / 2);
    element.hidden = size < 2;
    tick.set(slice !== undefined && slice.hidden !== true);
    slider.disabled = slice === undefined;
    slider.max = String(size - 1);
    const at = slice?.at ?? middle;
    if (Number(slider.value) !== at) slider.value = String(at);
    slider.style.setProperty("--share", String(at / Math.max(1, size - 1)));
    places.hidden = slice === undefined;
    if (!array || !dataset) return;
    const own = planeName(array, number);
    setText(name, own === axis ? "" : own);
    const place = placeAxis(dataset, array, number);
    const text = placeText(place, at);
    const file = fileIndex(array, number, at);
    index.set(String(Number(file.index.toFixed(2))));
    coordinate.set(text);
    coordinate.element.hidden = place === null;
    slider.setAttribute(
      "aria-valuetext",
      texts.places.indexOf(file.index, file.size - 1, text === "" ? "" : `, ${text}`),
    );
  };
  return { element, update };
}

/** Returns the slices with the first one across an axis drawn; `at`: its place if there is none. */
export function withSlice(slices: readonly Slice[], axis: SpaceAxis, at: number): readonly Slice[] {
  const first = slices.findIndex((slice) => slice.axis === axis && slice.normal === undefined);
  if (first < 0) return [...slices, { axis, at }];
  return slices.map((slice, i) => (i === first ? without(slice, "hidden") : slice));
}

function withoutSlices(slices: readonly Slice[], axis: SpaceAxis): readonly Slice[] {
  return slices.filter((slice) => slice.axis !== axis || slice.normal !== undefined);
}

/** Returns the slices with the first one across an axis moved. */
export function moved(slices: readonly Slice[], axis: SpaceAxis, at: number): readonly Slice[] {
  const first = slices.findIndex((slice) => slice.axis === axis && slice.normal === undefined);
  return slices.map((slice, i) => (i === first ? { ...slice, at } : slice));
}
