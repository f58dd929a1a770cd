//! The transfer-function editor: plot, selected point, range as numbers, presets.

import {
  fullRange,
  statsShown,
  valuesNote,
  type Actions,
  type Component,
  type State,
} from "../../app/state.ts";
import { isOneLayer } from "../../dataset/dataset.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import {
  addBeside,
  addPoint,
  applyPreset,
  movePoint,
  moveRange,
  nudgePoint,
  PRESETS,
  removePoint,
} from "../../transfer/edit.ts";
import { domainOf } from "../../transfer/scale.ts";
import type { Transfer } from "../../view/schema.ts";
import { el, setText, textButton } from "../dom.ts";
import { Plot } from "./plot.ts";
import { rangeInputs } from "./range.ts";

export function transferEditor(actions: Actions): Component {
  const readout = el("output", { class: "tf-readout" });
  const source = el("p", { class: "hint" });
  const unusual = el("p", { class: "hint", id: "values-note" });
  let state: State | null = null;
  let selected = -1;
  const transfer = () => state?.view.transfer ?? null;
  const width = () => domain().high - domain().low;
  const domain = () => domainOf(transfer()?.range ?? [0, 1], state?.stats?.stats.histogram ?? null);
  const add = (how: (now: Transfer) => ReturnType<typeof addPoint>) => {
    actions.edit((now) => {
      const added = how(now);
      if (added.index >= 0) selected = added.index;
      return added.transfer;
    });
    requestAnimationFrame(() => {
      plot.focusPoint(selected);
    });
  };
  const plot = new Plot({
    select: (index) => {
      selected = index;
      draw();
    },
    movePoint: (index, value, alpha) => {
      actions.edit((now) => movePoint(now, index, value, alpha), true);
    },
    nudgePoint: (index, across, up) => {
      actions.edit((now) => nudgePoint(now, index, across * width(), up), true);
    },
    moveRange: (end, value) => {
      actions.edit((now) => moveRange(now, end, value, width()), true);
    },
    nudgeRange: (end, across) => {
      const by = across * width();
      actions.edit((now) => moveRange(now, end, now.range[end === "low" ? 0 : 1] + by, width()), true);
    },
    add: (value, alpha) => {
      add((now) => addPoint(now, value, alpha));
    },
    addBeside: (index) => {
      add((now) => addBeside(now, index));
    },
    remove: (index) => {
      selected = -1;
      actions.edit((now) => removePoint(now, index));
    },
    rest: actions.rest,
  });
  const setRange = (low: number, high: number) => {
    actions.edit((now) => ({ ...now, range: [low, high] }));
  };
  const full = textButton("Full range", () => {
    const all = state && fullRange(state);
    if (all) setRange(...all);
  });
  const range = rangeInputs(setRange, full);
  const presets = PRESETS.map((preset) => {
    const button = textButton(
      preset.name,
      () => {
        actions.edit((now) => applyPreset(now, preset.shape));
      },
      "chip-button",
    );
    button.title = preset.hint;
    return button;
  });
  const presetRow = el("div", { class: "presets", role: "group", "aria-label": "Presets" }, ...presets);
  const element = el(
    "section",
    { class: "group" },
    el("div", { class: "group-head" }, el("h2", {}, "Opacity"), readout),
    plot.element,
    range.element,
    presetRow,
    unusual,
    source,
  );
  const draw = () => {
    const now = transfer();
    element.classList.toggle("is-empty", now === null);
    if (!state || !now) return;
    if (selected >= now.opacity.length) selected = -1;
    const { array } = state;
    const histogram = state.stats?.stats.histogram ?? null;
    const map = state.colormaps.get(now.map);
    const isColored = state.view.color_by === null;
    plot.draw({ transfer: now, domain: domain(), histogram, map, isColored, selected });
    setText(readout, readoutOf(now, selected, state));
    range.update(now.range);
    range.element.hidden = !isColored;
    // Presets make volumes transparent: a single layer would be black, and colors of images are not intensities.
    presetRow.hidden = array !== null && (isOneLayer(array) || array.meaning === "colors");
    full.disabled = fullRange(state) === null;
    full.title = full.disabled ? "The range of the values is not known, or all are equal" : "";
    setText(source, sourceOf(state));
    setText(unusual, valuesNote(state));
    unusual.hidden = unusual.textContent === "";
  };
  const update = (next: State) => {
    state = next;
    draw();
  };
  return { element, update };
}

function readoutOf(transfer: Transfer, selected: number, state: State): string {
  const point = transfer.opacity[selected];
  if (!point) return formatUnits(state.array?.units ?? "");
  return `${formatNumber(point[0])} → ${(100 * point[1]).toPrecision(3)} %`;
}

/** Describes the source of the histogram, which may be a coarse level. */
function sourceOf(state: State): string {
  const { stats, array } = state;
  if (array?.meaning === "colors") return "Opacity from 0 (dark, or transparent in the file) to 255.";
  if (!stats) return "No histogram yet.";
  if (stats !== statsShown(state)) return "Histogram of the previous step or channel, logarithmic.";
  const origin = array?.levels[stats.level]?.origin ?? "stored";
  const of = stats.level === 0 ? "all values" : `level ${stats.level} (${origin})`;
  return `Histogram of ${of}, logarithmic. Double-click adds a point.`;
}
