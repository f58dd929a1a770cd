//! Sliders at the bottom: time, with a play button, and every other axis that is not spatial.

import type { Actions, Component, State } from "../app/state.ts";
import type { ArrayInfo, Axis, Dataset } from "../dataset/dataset.ts";
import { freeAxes } from "../dataset/dataset.ts";
import { calendarOf, positionLabel } from "../dataset/labels.ts";
import type { View } from "../view/schema.ts";
import { el, iconButton, setIcon, setText } from "./dom.ts";

interface Row {
  readonly element: HTMLElement;
  update(state: State): void;
}

export function axesBar(actions: Actions): Component {
  const element = el("section", { class: "panel axes", "aria-label": "Time and other axes" });
  let key = "";
  let rows: readonly Row[] = [];
  const update = (state: State) => {
    const { dataset, array } = state;
    const axes = array ? freeAxes(array) : [];
    // A file may grow along its axes.
    const next = JSON.stringify([dataset?.id, array?.name, axes.map(({ axis, size }) => [axis.name, size])]);
    if (next !== key && dataset && array) {
      key = next;
      rows = axes.map(({ axis, size }) => row(actions, dataset, array, axis, size));
      element.replaceChildren(...rows.map((r) => r.element));
    }
    element.hidden = axes.length === 0;
    for (const r of rows) r.update(state);
  };
  return { element, update };
}

function row(actions: Actions, dataset: Dataset, array: ArrayInfo, axis: Axis, size: number): Row {
  const isTime = axis.kind === "time";
  const calendar = isTime ? calendarOf(dataset, array, axis) : "standard";
  const slider = el("input", { type: "range", min: 0, max: size - 1, step: 1, "aria-label": axis.name });
  if (isTime) slider.id = "time";
  const label = el("output", { class: "axis-label" });
  const place = el("span", { class: "axis-place" });
  const change = (isMoving: boolean) => {
    const index = Number(slider.value);
    actions.change(isTime ? { time: index } : { at: { ...positions, [axis.name]: index } }, isMoving);
  };
  let positions: View["at"] = {};
  slider.addEventListener("input", () => {
    change(true);
  });
  slider.addEventListener("change", actions.rest);
  const play = isTime ? iconButton("play", "Play", "Space", actions.togglePlay) : null;
  play?.classList.add("play");
  const name = el("span", { class: "axis-name" }, axis.name);
  const element = el(
    "div",
    { class: "axis-row" },
    play ?? name,
    el("div", { class: "axis-slide" }, slider),
    el("div", { class: "axis-text" }, label, place),
  );
  const update = (state: State) => {
    positions = state.view.at;
    const index = isTime ? state.view.time : (positions[axis.name] ?? 0);
    if (Number(slider.value) !== index) slider.value = String(index);
    slider.style.setProperty("--share", String(index / Math.max(1, size - 1)));
    const position = positionLabel(axis, index, calendar, array.channels);
    setText(label, position === "" ? `${axis.name} ${index}` : position);
    setText(place, `${index + 1} / ${size}`);
    slider.setAttribute("aria-valuetext", `${label.textContent}, ${index + 1} of ${size}`);
    if (play) {
      const does = state.isPlaying ? "Pause" : "Play";
      play.setAttribute("aria-label", does);
      play.title = `${does} (Space)`;
      setIcon(play, state.isPlaying ? "pause" : "play");
    }
  };
  return { element, update };
}
