//! The transfer-function editor: plot, selected point, range as numbers, presets.

import { texts } from "../../texts/texts.ts";
import { isClipped, shownHistogram } from "../../app/distribution.ts";
import {
  fullRange,
  statsShown,
  valuesNote,
  type Actions,
  type Component,
  type State,
} from "../../app/state.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import { addBeside, addPoint, movePoint, moveRange, removePoint } from "../../transfer/edit.ts";
import { findColormap } from "../../transfer/colormap.ts";
import { alphaAt, domainOf, fractionOf, heightOf, valueAt } from "../../transfer/scale.ts";
import { scaleOf } from "../../transfer/value-scale.ts";
import type { Transfer } from "../../view/schema.ts";
import { checkbox, el, setText, textButton } from "../dom.ts";
import { transferFiles } from "./files.ts";
import { Plot } from "./plot.ts";
import { pointTable } from "./points.ts";
import { presetMenu } from "./preset-menu.ts";
import { rangeTools } from "./range-tools.ts";
import { rangeInputs } from "./range.ts";
import { scaleSelect } from "./scale-select.ts";

export function transferEditor(actions: Actions): Component {
  const readout = el("output", { class: "tf-readout" });
  const source = el("p", { class: "hint" });
  const unusual = el("p", { class: "hint" });
  let state: State | null = null;
  let selected = -1;
  const transfer = () => state?.view.transfer ?? null;
  /** Room between the ends of the range; none on other scales, where it would be too much at the low end. */
  const width = () => (isLinear() ? domain().high - domain().low : 0);
  const isLinear = () => (transfer()?.scale ?? "linear") === "linear";
  const domain = () => {
    const now = transfer();
    const values = state?.stats?.stats;
    const occurring = values ? (isLinear() ? values.histogram : { low: values.min, high: values.max }) : null;
    return now ? domainOf(now.range, occurring, scaleOf(now)) : domainOf([0, 1], occurring);
  };
  const moved = (value: number, across: number) => valueAt(domain(), fractionOf(domain(), value) + across);
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
      actions.edit((now) => {
        const point = now.opacity[index];
        if (!point) return now;
        return movePoint(now, index, moved(point[0], across), alphaAt(heightOf(point[1]) + up));
      }, true);
    },
    moveRange: (end, value) => {
      actions.edit((now) => moveRange(now, end, value, width()), true);
    },
    nudgeRange: (end, across) => {
      const which = end === "low" ? 0 : 1;
      actions.edit((now) => moveRange(now, end, moved(now.range[which], across), width()), true);
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
    actions.edit((now) =>
      now.scale === "log" && low <= 0
        ? { ...now, scale: "linear", range: [low, high] }
        : { ...now, range: [low, high] },
    );
  };
  const full = textButton(texts.transferPanel.fullRange, () => {
    const all = state && fullRange(state);
    if (all) setRange(...all);
  });
  const range = rangeInputs(setRange, full);
  let hasLogCounts = true;
  const logCounts = checkbox(texts.transferPanel.logarithmicCounts, (isOn) => {
    hasLogCounts = isOn;
    draw();
  });
  logCounts.set(hasLogCounts);
  const points = pointTable(actions, (index) => {
    selected = index;
    draw();
  });
  const [scale, tools, presets, files] = [
    scaleSelect(actions),
    rangeTools(actions),
    presetMenu(actions),
    transferFiles(actions),
  ];
  const parts = [scale, tools, presets, files];
  const element = el(
    "section",
    { class: "group" },
    el("div", { class: "group-head" }, el("h2", {}, texts.transferPanel.opacity), readout),
    plot.element,
    range.element,
    tools.element,
    scale.element,
    presets.element,
    points.element,
    files.element,
    unusual,
    el("div", { class: "tf-source" }, source, logCounts.element),
  );
  const draw = () => {
    const now = transfer();
    element.classList.toggle("is-empty", now === null);
    if (!state || !now) return;
    if (selected >= now.opacity.length) selected = -1;
    const histogram = shownHistogram(state, domain());
    const map = findColormap(state.colormaps, now);
    const isColored = state.view.color_by === null;
    plot.draw({ transfer: now, domain: domain(), histogram, hasLogCounts, map, isColored, selected });
    points.update(now, selected);
    setText(readout, readoutOf(now, selected, state));
    range.update(now.range);
    range.element.hidden = !isColored;
    full.disabled = fullRange(state) === null;
    full.title = full.disabled ? texts.transferPanel.noRange : "";
    setText(source, sourceOf(state));
    setText(unusual, valuesNote(state));
    unusual.hidden = unusual.textContent === "";
  };
  const update = (next: State) => {
    state = next;
    for (const part of parts) part.update(next);
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
  if (array?.meaning === "colors") return texts.histogram.ofColors;
  if (!stats) return texts.histogram.none;
  if (stats !== statsShown(state)) return texts.histogram.previous;
  const origin = array?.levels[stats.level]?.origin ?? "stored";
  const level = stats.level === 0 ? texts.histogram.allValues : texts.histogram.level(stats.level, origin);
  return texts.histogram.of(level, isClipped(state));
}
