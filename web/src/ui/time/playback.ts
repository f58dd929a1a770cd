//! How time is played: steps per second, and what follows the last step.

import { texts } from "../../texts/texts.ts";
import type { Actions, State } from "../../app/state.ts";
import { RATES, REPEATS, type Repeat } from "../../session/playback.ts";
import { el, setOptions } from "../dom.ts";

const LABELS: Readonly<Record<Repeat, string>> = texts.time.repeats;

export function playbackControls(actions: Actions): {
  readonly element: HTMLElement;
  update(state: State): void;
} {
  const rate = el("select", {
    "aria-label": texts.time.stepsPerSecond,
    title: texts.time.rateHint,
    id: "playback-rate",
  });
  rate.addEventListener("change", () => {
    actions.setPlayback({ rate: Number(rate.value) });
  });
  const repeat = el("select", {
    "aria-label": texts.time.atEnd,
    title: texts.time.atEndHint,
    id: "playback-repeat",
  });
  repeat.addEventListener("change", () => {
    const chosen = REPEATS.find((name) => name === repeat.value);
    if (chosen) actions.setPlayback({ repeat: chosen });
  });
  const element = el(
    "span",
    { class: "playback" },
    el("label", { class: "select" }, rate),
    el("label", { class: "select" }, repeat),
  );
  const update = ({ playback }: State) => {
    setOptions(
      rate,
      RATES.map((value) => ({ value: String(value), label: `${value}/s` })),
      String(playback.rate),
    );
    setOptions(
      repeat,
      REPEATS.map((value) => ({ value, label: LABELS[value] })),
      playback.repeat,
    );
  };
  return { element, update };
}
