//! Measurements under way and done: progress, plots and tables, each with its CSV and its Python line.

import { texts } from "../../texts/texts.ts";
import type { Calls } from "../../app/calls.ts";
import type { State } from "../../app/state.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import { el, iconButton, textButton } from "../dom.ts";
import type { Region, ShownMeasured } from "./measured.ts";
import { plotElement, plotOf } from "./plot.ts";
import { positionsShown, type AxisIndex } from "./presence.ts";
import { requestMeasurement, type Measurement } from "./requests.ts";
import { measuredCsv, measuredPython } from "./text.ts";

/** Maximum number of results that are kept; older ones are dropped. */
const MAX_RESULTS = 8;

export interface ResultsHost {
  readonly calls: Calls;
  state(): State;
  copy(text: string, what: string): void;
  url(): string;
  say(text: string): void;
  /** Other results are listed than before. */
  listed(): void;
}

/** A measurement in the list, and the array and positions that it was made at. */
export interface ListedResult {
  readonly measurement: Measurement;
  readonly array: string;
  readonly axes: readonly AxisIndex[];
}

export interface ResultList {
  readonly element: HTMLElement;
  start(title: string, measurement: Measurement): void;
  /** Results in the list, the newest first. */
  listed(): readonly ListedResult[];
}

/** Start measurements, and show them, the newest first. */
export function resultList(host: ResultsHost): ResultList {
  const element = el("div", { class: "probe-results" });
  const all = new Map<Element, ListedResult>();
  const start = (title: string, measurement: Measurement) => {
    const { array, view } = host.state();
    if (!array) return;
    const bar = el("progress", { max: 1, "aria-label": title });
    const body = el("div", {}, bar);
    let cancel: () => void = () => undefined;
    const close = iconButton("close", texts.probe.remove, "", () => {
      cancel();
      box.remove();
      all.delete(box);
      host.listed();
    });
    close.classList.add("small");
    const box = el(
      "article",
      { class: "probe-result", "aria-label": title },
      el("div", { class: "group-head" }, el("h3", {}, title), close),
      body,
    );
    const show = (...content: Node[]) => {
      body.replaceChildren(...content);
      // The panel is small: what was asked for would lie below its edge.
      if (box.isConnected) box.scrollIntoView({ block: "nearest" });
    };
    element.prepend(box);
    while (element.childElementCount > MAX_RESULTS) {
      const oldest = element.lastElementChild;
      if (oldest) all.delete(oldest);
      oldest?.remove();
    }
    all.set(box, { measurement, array: array.name, axes: positionsShown(array, view) });
    host.listed();
    box.scrollIntoView({ block: "nearest" });
    cancel = requestMeasurement(host.calls, host.state(), measurement, {
      progress: (done, total) => {
        bar.max = total;
        bar.value = done;
      },
      measured: (measured) => {
        if (measured.kind === "points") return;
        show(...shown(host, measured));
        host.say(`${title}: ${summary(measured)}`);
      },
      ended: (reason) => {
        if (reason !== null) show(el("p", { class: "hint" }, reason));
      },
    });
  };
  return { element, start, listed: () => [...all.values()].toReversed() };
}

function shown(host: ResultsHost, measured: ShownMeasured): HTMLElement[] {
  const body = el("div", { class: "probe-figure" });
  if (measured.kind === "region") body.append(...statistics(measured));
  else body.append(plotElement(plotOf(measured)));
  const buttons = el(
    "div",
    { class: "probe-buttons" },
    textButton(texts.probe.copyCsv, () => {
      host.copy(measuredCsv(measured), texts.probe.table);
    }),
    textButton(texts.probe.copyPython, () => {
      host.copy(measuredPython(host.url(), measured), texts.probe.pythonLine);
    }),
  );
  return [body, buttons];
}

function statistics(region: Region): HTMLElement[] {
  const units = formatUnits(region.units);
  const number = (value: number | null) =>
    value === null ? texts.measured.none : `${formatNumber(value)} ${units}`.trim();
  return region.channels.map((own) => {
    const name = own.name ?? (own.channel === null ? "" : texts.values.channel(own.channel));
    const rows: [string, string][] = [
      [texts.measured.values, own.count.toLocaleString("en")],
      [texts.measured.missing, own.missing.toLocaleString("en")],
      [texts.measured.minimum, number(own.min)],
      [texts.measured.maximum, number(own.max)],
      [texts.measured.mean, number(own.mean)],
      [texts.measured.deviation, number(own.std)],
    ];
    return el(
      "dl",
      { class: "probe-statistics" },
      ...(name === "" ? [] : [el("div", {}, el("dt", {}, name))]),
      ...rows.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))),
    );
  });
}

/** Returns the sentence that a screen reader says about a result. */
export function summary(measured: ShownMeasured): string {
  if (measured.kind !== "region") {
    const values = measured.channels[0]?.decoded.length ?? 0;
    return texts.measured.valuesOf(values, measured.array);
  }
  const [first] = measured.channels;
  if (!first) return texts.measured.noValues;
  const mean = first.mean === null ? texts.measured.none : formatNumber(first.mean);
  return texts.measured.summary(first.count, measured.array, mean, first.missing);
}
