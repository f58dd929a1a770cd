//! Histogram with a slider for each isosurface. While one is dragged, one change is in flight at a time, so that the
//! surface follows the pointer.

import { texts } from "../../texts/texts.ts";
import { shownHistogram } from "../../app/distribution.ts";
import type { Component, State } from "../../app/state.ts";
import { formatNumber } from "../../dataset/labels.ts";
import { InFlight, LONGEST_WAIT_MILLIS } from "../../transfer/in-flight.ts";
import { domainOf, fractionOf, logHeights, valueAt, type Domain } from "../../transfer/scale.ts";
import { scaleOf } from "../../transfer/value-scale.ts";
import type { Surface } from "../../view/schema.ts";
import { setAttributes, svg } from "../dom.ts";

const HEIGHT = 44;
const INSET = 8;
/** Step of an arrow key as a fraction of the plot; ten times as much with shift. */
const KEY_STEP = 0.005;
const ARROWS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };

interface ValueChange {
  readonly index: number;
  readonly value: number;
}

/** `set` gets the value of a surface while it moves; `rest` is called when it stops. */
export function isoPlot(set: (index: number, value: number) => void, rest: () => void): Component {
  const flight = new InFlight<ValueChange>();
  const bars = svg("path", { class: "tf-histogram" });
  const floor = svg("path", { class: "tf-floor" });
  const handles = svg("g");
  const element = svg(
    "svg",
    {
      class: "iso-plot",
      height: HEIGHT + 12,
      role: "group",
      "aria-label": texts.surfacesPanel.valuesLabel,
    },
    bars,
    floor,
    handles,
  );
  let domain: Domain = { low: 0, high: 1 };
  let surfaces: readonly Surface[] = [];
  let key = "";
  let timer = 0;
  const width = () => Math.max(120, element.clientWidth || 268);
  const x = (value: number) => {
    const share = Math.min(Math.max(fractionOf(domain, value), 0), 1);
    return INSET + share * (width() - 2 * INSET);
  };
  const send = (change: ValueChange | null) => {
    if (change) set(change.index, change.value);
  };
  const move = (index: number, value: number) => {
    const now = performance.now();
    const own = flight.offer({ index, value }, now);
    send(own);
    window.clearTimeout(timer);
    // A picture may be late, or none may come because nothing changes.
    timer = window.setTimeout(() => {
      send(flight.shown(performance.now()));
    }, LONGEST_WAIT_MILLIS);
  };
  const finish = () => {
    window.clearTimeout(timer);
    send(flight.take());
    rest();
  };
  const newHandle = (): SVGGElement => {
    const handle = svg(
      "g",
      { tabindex: 0, role: "slider", class: "iso-handle" },
      svg("rect", { class: "tf-hit", x: -10, y: 0, width: 20, height: HEIGHT + 12 }),
      svg("path", { class: "iso-line", d: `M0 2V${HEIGHT}` }),
      svg("circle", { class: "tf-dot", cy: HEIGHT + 4, r: 5 }),
    );
    const index = () => Number(handle.dataset.index);
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.focus();
      handle.setPointerCapture(event.pointerId);
      const onMove = (moved: PointerEvent) => {
        const box = element.getBoundingClientRect();
        const share = (moved.clientX - box.left - INSET) / (width() - 2 * INSET);
        move(index(), valueAt(domain, Math.min(Math.max(share, 0), 1)));
      };
      const onEnd = () => {
        handle.removeEventListener("pointermove", onMove);
        handle.removeEventListener("lostpointercapture", onEnd);
        finish();
      };
      handle.addEventListener("pointermove", onMove);
      handle.addEventListener("lostpointercapture", onEnd);
    });
    handle.addEventListener("keydown", (event) => {
      const direction = ARROWS[event.key];
      const value = surfaces[index()]?.value;
      if (direction === undefined || value === undefined) return;
      event.preventDefault();
      const step = direction * (event.shiftKey ? 10 * KEY_STEP : KEY_STEP);
      move(index(), valueAt(domain, Math.min(Math.max(fractionOf(domain, value) + step, 0), 1)));
    });
    handle.addEventListener("keyup", finish);
    return handle;
  };
  const draw = (state: State) => {
    while (handles.children.length > surfaces.length) handles.lastElementChild?.remove();
    while (handles.children.length < surfaces.length) handles.append(newHandle());
    surfaces.forEach(({ value, color }, index) => {
      const handle = handles.children[index];
      if (!handle) return;
      setAttributes(handle, {
        transform: `translate(${x(value).toFixed(1)} 0)`,
        "data-index": index,
        "aria-label": texts.surfacesPanel.valueOfSurface(index + 1),
        "aria-valuemin": domain.low,
        "aria-valuemax": domain.high,
        "aria-valuenow": value,
        "aria-valuetext": formatNumber(value),
        style: `--iso: rgb(${color.join(" ")})`,
      });
    });
    const histogram = shownHistogram(state, domain);
    const counts = histogram?.counts ?? [];
    const next = JSON.stringify([
      domain,
      width(),
      histogram?.low,
      counts.length,
      counts.reduce((a, b) => a + b, 0),
    ]);
    if (next === key) return;
    key = next;
    setAttributes(floor, { d: `M${INSET} ${HEIGHT + 0.5}H${width() - INSET}` });
    if (!histogram || counts.length === 0) {
      setAttributes(bars, { d: "" });
      return;
    }
    const [from, to] = [x(histogram.low), x(histogram.high)];
    const at = (i: number) => (from + ((to - from) * i) / counts.length).toFixed(1);
    const steps = logHeights(counts).map((height, i) => {
      const y = (HEIGHT - height * (HEIGHT - 6)).toFixed(1);
      return `L${at(i)} ${y}L${at(i + 1)} ${y}`;
    });
    setAttributes(bars, { d: `M${at(0)} ${HEIGHT}${steps.join("")}L${at(counts.length)} ${HEIGHT}Z` });
  };
  const update = (state: State) => {
    surfaces = state.view.surfaces;
    element.toggleAttribute("hidden", surfaces.length === 0);
    if (surfaces.length === 0) return;
    const { transfer } = state.view;
    const occurring = state.stats?.stats.histogram ?? null;
    const range = transfer?.range ?? ([occurring?.low ?? 0, occurring?.high ?? 1] as const);
    domain = transfer ? domainOf(range, null, scaleOf(transfer)) : domainOf(range, occurring);
    if (state.isCurrent) send(flight.shown(performance.now()));
    draw(state);
  };
  return { element: element as unknown as HTMLElement, update };
}
