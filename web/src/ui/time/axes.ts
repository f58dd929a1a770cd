//! Sliders at the bottom: time, which can be played, and every other axis that is not spatial, such as ensemble members or levels.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import type { ArrayInfo, Axis, Dataset } from "../../dataset/dataset.ts";
import { freeAxes } from "../../dataset/dataset.ts";
import { calendarOf, formatUnits, positionLabel } from "../../dataset/labels.ts";
import { hintOf } from "../../keys/table.ts";
import type { View } from "../../view/schema.ts";
import { el, iconButton, setIcon, setText, textButton } from "../dom.ts";
import { jumpField } from "./jump.ts";
import { playbackControls } from "./playback.ts";

interface Row {
  readonly element: HTMLElement;
  update(state: State): void;
}

export function axesBar(actions: Actions): Component {
  const element = el("section", { class: "panel axes", "aria-label": texts.time.panelLabel });
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
  let index = 0;
  let positions: View["at"] = {};
  const show = (to: number, isMoving: boolean) => {
    actions.change(isTime ? { time: to } : { at: { ...positions, [axis.name]: to } }, isMoving);
  };
  slider.addEventListener("input", () => {
    show(Number(slider.value), true);
  });
  slider.addEventListener("change", actions.rest);
  const step = (by: number) => {
    if (isTime) actions.stepTime(by);
    else show((index + by + size) % size, false);
  };
  const button = (label: string, name: string, by: number, key: string) => {
    const one = textButton(label, () => {
      step(by);
    });
    one.classList.add("axis-step");
    one.setAttribute("aria-label", name);
    one.title = key === "" ? name : texts.time.withKey(name, key);
    return one;
  };
  const steps = el(
    "span",
    { class: "axis-steps" },
    button("‹", texts.time.previousOn(axis.name), -1, isTime ? "," : ""),
    button("›", texts.time.nextOn(axis.name), 1, isTime ? "." : ""),
  );
  const jump = jumpField(axis, size, calendar, array.channels, (to) => {
    show(to, false);
  });
  const place = el("span", { class: "axis-place" });
  const play = isTime ? iconButton("play", texts.time.play, hintOf("play"), actions.togglePlay) : null;
  play?.classList.add("play");
  const units = isTime || axis.units === "" ? "" : ` (${formatUnits(axis.units)})`;
  const name = el("span", { class: "axis-name", title: `${axis.name}${units}` }, axis.name);
  const complete = el("span", { class: "axis-complete", "aria-hidden": "true" });
  complete.title = texts.time.loadedHint;
  const settings = isTime ? playbackControls(actions) : null;
  const element = el(
    "div",
    { class: isTime ? "axis-row axis-time" : "axis-row" },
    el("span", { class: "axis-head" }, ...(play ? [play] : []), name),
    el("div", { class: "axis-slide" }, slider, ...(isTime ? [complete] : [])),
    steps,
    el("div", { class: "axis-text" }, jump.element, place),
    ...(settings ? [settings.element] : []),
  );
  let drawn: State["completeSteps"] | null = null;
  const update = (state: State) => {
    positions = state.view.at;
    index = isTime ? state.view.time : (positions[axis.name] ?? 0);
    if (Number(slider.value) !== index) slider.value = String(index);
    slider.style.setProperty("--share", String(index / Math.max(1, size - 1)));
    const position = positionLabel(axis, index, calendar, array.channels);
    const label = position === "" ? `${axis.name} ${index}` : position;
    jump.show(index);
    setText(place, `${index + 1} / ${size}`);
    slider.setAttribute("aria-valuetext", texts.time.position(label, index + 1, size));
    settings?.update(state);
    if (isTime && state.completeSteps !== drawn) {
      drawn = state.completeSteps;
      complete.style.background = completeBackground(state.completeSteps, size);
    }
    if (play) {
      const does = state.isPlaying ? texts.time.pause : texts.time.play;
      play.setAttribute("aria-label", does);
      play.title = texts.time.withKey(does, hintOf("play"));
      setIcon(play, state.isPlaying ? "pause" : "play");
    }
  };
  return { element, update };
}

/** Most runs that the bar draws; more of them are narrower than a pixel. */
const MAX_RUNS = 200;

/** Returns a CSS background with the runs of steps as lit parts of the bar. */
export function completeBackground(runs: State["completeSteps"], size: number): string {
  const percent = (step: number) => `${((100 * step) / Math.max(1, size)).toFixed(3)}%`;
  const parts = runs.slice(0, MAX_RUNS).map(([first, last]) => {
    const [from, to] = [percent(first), percent(last + 1)];
    return `transparent ${from}, var(--good) ${from}, var(--good) ${to}, transparent ${to}`;
  });
  return parts.length === 0 ? "none" : `linear-gradient(to right, ${parts.join(", ")})`;
}
