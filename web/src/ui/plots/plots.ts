//! Plots of an array with one long axis, in place of the picture: exact values from the node, one chart for each unit, other variables
//! along the same axis to tick.

import { texts } from "../../texts/texts.ts";
import type { Calls } from "../../app/calls.ts";
import { copyText } from "../../app/clipboard.ts";
import { fileNameFor, saveFile } from "../../app/save.ts";
import type { Component, State } from "../../app/state.ts";
import { calendarOf, positionLabel } from "../../dataset/labels.ts";
import { checkbox, el, textButton } from "../dom.ts";
import { Chart, showText } from "./chart.ts";
import { lineColor } from "./colors.ts";
import { areOfOnePart, columnsCsv, type PlotColumns } from "./columns.ts";
import { byUnits, linesBeside, MAX_SHOWN, placesIn } from "./lines.ts";
import { LineRequests, type LineRequest } from "./requests.ts";
import {
  indexAt,
  indicesIn,
  lineAxis,
  panned,
  wholeWindow,
  zoomed,
  type LineAxis,
  type Window,
} from "./scale.ts";

/** Columns of a request: those of the picture, in steps so that small changes of size request nothing. */
const COLUMN_STEP = 128;
const MAX_COLUMNS = 4096;
/** Time without zooming after which the values of the window are requested. */
const REST_MILLIS = 90;

export interface PlotsPage {
  readonly calls: Calls;
  readonly state: () => State;
  /** True while the layout is that of a plot. */
  readonly isPlot: () => boolean;
}

export function plots(page: PlotsPage): Component {
  const list = el("div", { class: "plot-list", role: "group", "aria-label": texts.plots.variables });
  const charts = el("div", { class: "plot-charts" });
  const place = el("output", { class: "plot-place" });
  const failure = el("p", { class: "plot-failure", role: "status", hidden: true });
  const csv = textButton(texts.plots.copyCsv, () => {
    void copyText(columnsCsv(shownColumns())).then((isCopied) => {
      csv.textContent = isCopied ? texts.plots.copied : texts.plots.copyingNotAllowed;
      setTimeout(() => (csv.textContent = texts.plots.copyCsv), 2000);
    });
  });
  const save = textButton(texts.plots.saveCsv, () => {
    const name = fileNameFor(page.state()).replace(/\.png$/, ".csv");
    saveFile(new Blob([columnsCsv(shownColumns())], { type: "text/csv" }), name);
  });
  const whole = textButton(texts.plots.wholeAxis, () => {
    show(null);
  });
  const head = el(
    "div",
    { class: "plot-head" },
    list,
    place,
    el("span", { class: "plot-tools" }, whole, csv, save),
  );
  const element = el(
    "section",
    { class: "plots", "aria-label": texts.plots.plot, hidden: true },
    head,
    failure,
    charts,
  );
  const drawn = new Map<string, Chart>();
  /** Variables that are shown besides the array of the view. */
  const ticked = new Set<string>();
  let window: Window | null = null;
  let pointed: number | null = null;
  /** Data, and places in them, that were requested last. */
  let dataKey = "";
  let placeKey = "";
  let listed = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const requests = new LineRequests(page.calls, () => {
    redraw();
  });

  const lines = (): { line: LineAxis; names: readonly string[] } | null => {
    const { dataset, array } = page.state();
    const line = array && lineAxis(array);
    if (!dataset || !array || !line) return null;
    const beside = linesBeside(dataset, array).filter(({ name }) => name === array.name || ticked.has(name));
    return { line, names: beside.slice(0, MAX_SHOWN).map(({ name }) => name) };
  };
  /** Variables whose values can be read. */
  const readable = () => (lines()?.names ?? []).filter((name) => requests.reasonOf(name) === null);
  const shownColumns = (): PlotColumns[] =>
    readable().flatMap((name) => {
      const columns = requests.columnsOf(name);
      return columns ? [columns] : [];
    });
  const showTools = () => {
    const columns = shownColumns();
    const hasAll = columns.length > 0 && columns.length === readable().length && !requests.isLoading;
    csv.disabled = save.disabled = !(hasAll && areOfOnePart(columns));
    csv.title = save.title = csv.disabled ? texts.plots.valuesMissing : texts.plots.saveCsvHint;
  };
  const show = (next: Window | null) => {
    window = next;
    redraw();
    clearTimeout(timer);
    timer = setTimeout(request, REST_MILLIS);
  };
  const request = () => {
    const { dataset, view, connection } = page.state();
    const own = lines();
    if (!dataset || !own || connection.kind !== "open") return;
    const part = indicesIn(own.line, window ?? wholeWindow(own.line));
    const [first] = drawn.values();
    const pixels = (first?.width ?? 800) * globalThis.devicePixelRatio;
    const columns = Math.min(MAX_COLUMNS, Math.ceil(pixels / COLUMN_STEP) * COLUMN_STEP);
    const wanted = own.names.flatMap((name): LineRequest[] => {
      const array = dataset.arrays.find((other) => other.name === name);
      return array ? [{ array: name, ...placesIn(array, view), ...part, columns }] : [];
    });
    requests.want(wanted);
    showTools();
  };
  const redraw = () => {
    const { dataset, array } = page.state();
    const own = lines();
    if (!dataset || !array || !own || element.hidden) return;
    const { line, names } = own;
    const shown = dataset.arrays.filter(({ name }) => names.includes(name));
    const groups = byUnits(shown);
    const keys = new Set(groups.map(({ units }) => units));
    for (const [units, chart] of drawn) {
      if (keys.has(units)) continue;
      chart.element.remove();
      drawn.delete(units);
    }
    const calendar = calendarOf(dataset, array, line.axis);
    for (const group of groups) {
      const chart = drawn.get(group.units) ?? newChart(group.units);
      const data = group.lines.flatMap((one) => {
        const columns = requests.columnsOf(one.name);
        const color = lineColor(names.indexOf(one.name));
        return columns
          ? [{ name: one.title === "" ? one.name : `${one.name} (${one.title})`, color, columns }]
          : [];
      });
      chart.draw({
        line,
        window: window ?? wholeWindow(line),
        calendar,
        units: group.units,
        lines: data,
        pointed,
      });
    }
    const reasons = names.flatMap((name) => {
      const reason = requests.reasonOf(name);
      return reason === null ? [] : [`${name}: ${reason}`];
    });
    showText(failure, reasons.join("; "));
    showText(
      place,
      pointed === null ? (requests.isLoading ? texts.plots.reading : "") : placeAt(line, pointed, calendar),
    );
    whole.disabled = window === null;
    showTools();
  };
  const newChart = (units: string): Chart => {
    const now = () => {
      const own = lines();
      return own && { line: own.line, window: window ?? wholeWindow(own.line) };
    };
    const chart = new Chart({
      zoom: (factor, share) => {
        const own = now();
        if (own) show(zoomed(own.line, own.window, factor, share));
      },
      pan: (share) => {
        const own = now();
        if (own) show(panned(own.line, own.window, share));
      },
      whole: () => {
        show(null);
      },
      point: (at) => {
        pointed = at;
        redraw();
      },
    });
    drawn.set(units, chart);
    charts.append(chart.element);
    return chart;
  };
  const showList = ({ dataset, array }: State) => {
    const beside = dataset && array ? linesBeside(dataset, array) : [];
    const key = JSON.stringify([array?.name, beside.map(({ name }) => name), [...ticked]]);
    if (key === listed) return;
    listed = key;
    list.replaceChildren(
      ...beside.map((other) => {
        const isOwn = other.name === array?.name;
        const box = checkbox(other.name, (isOn) => {
          if (isOn) ticked.add(other.name);
          else ticked.delete(other.name);
          show(window);
        });
        box.element.title = other.title === "" ? other.name : other.title;
        box.set(isOwn || ticked.has(other.name));
        const input = box.element.querySelector("input");
        if (input) input.disabled = isOwn || (!ticked.has(other.name) && ticked.size + 1 >= MAX_SHOWN);
        return box.element;
      }),
    );
  };
  new ResizeObserver(() => {
    redraw();
    request();
  }).observe(charts);
  const update = (state: State) => {
    const { dataset, array, view, connection } = state;
    const isShown = page.isPlot() && dataset !== null && array !== null && connection.kind === "open";
    element.hidden = !page.isPlot() || array === null;
    if (!isShown) {
      // After a new connection, or another arrangement, values are requested again.
      if (connection.kind !== "open") dataKey = "";
      placeKey = "";
      return;
    }
    showList(state);
    const data = JSON.stringify([dataset.id, dataset.generation, lineAxis(array)?.axis.name]);
    if (data !== dataKey) {
      dataKey = data;
      placeKey = "";
      requests.reset();
      window = null;
    }
    const key = JSON.stringify([array.name, view.time, view.at]);
    if (key === placeKey) return;
    placeKey = key;
    redraw();
    request();
  };
  return { element, update };
}

/** Text of the place under the pointer: the nearest index with its coordinate or date. */
function placeAt(line: LineAxis, place: number, calendar: string): string {
  const index = Math.min(Math.max(Math.round(indexAt(line, place)), 0), line.size - 1);
  const label = positionLabel(line.axis, index, calendar);
  return `${line.axis.name} ${index}${label === "" ? "" : `: ${label}`}`;
}
