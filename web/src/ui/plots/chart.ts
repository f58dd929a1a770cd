//! One chart: the lines of one unit over the axis, with ticks, zoom by wheel, keys and pinch, pan by drag, and a line at the pointer.

import { texts } from "../../texts/texts.ts";
import { parseTimeUnits } from "../../dataset/calendar.ts";
import { formatUnits } from "../../dataset/labels.ts";
import { el, setAttributes, setText, svg } from "../dom.ts";
import { dateTicks, numberTicks, type Tick } from "../marks/ticks.ts";
import { indexOf, type PlotColumns } from "./columns.ts";
import {
  across,
  columnAt,
  down,
  pathOf,
  placeOf,
  valueRange,
  type LineAxis,
  type PlotBox,
  type Window,
} from "./scale.ts";

const MARGIN = { left: 66, right: 16, top: 12, bottom: 34 };
/** Pixels between ticks. */
const APART = { x: 110, y: 36 };
const WHEEL_RATE = 0.0018;
const LINE_PIXELS = 16;
const KEY_ZOOM = 1.4;
const KEY_PAN = 0.1;

export interface ChartTarget {
  /** Scales the window about a share of it. */
  zoom(factor: number, share: number): void;
  /** Moves the window by a share of its width. */
  pan(share: number): void;
  whole(): void;
  /** The pointer is over a place on the scale; null when it has left. */
  point(place: number | null): void;
}

export interface ChartData {
  readonly line: LineAxis;
  readonly window: Window;
  readonly calendar: string;
  readonly units: string;
  readonly lines: readonly { readonly name: string; readonly color: string; readonly columns: PlotColumns }[];
  /** Place on the scale that is marked. */
  readonly pointed: number | null;
}

export class Chart {
  readonly element: HTMLElement;
  readonly #root = svg("svg", { class: "chart", role: "img", tabindex: 0 });
  readonly #target: ChartTarget;
  readonly #grid = svg("g", { class: "chart-grid" });
  readonly #paths = svg("g", { class: "chart-lines" });
  readonly #mark = svg("g", { class: "chart-mark" });
  readonly #legend = el("div", { class: "chart-legend" });
  readonly #pointers = new Map<number, number>();
  #box: PlotBox = { left: 0, top: 0, right: 1, bottom: 1 };
  #window: Window = [0, 1];

  constructor(target: ChartTarget) {
    this.#target = target;
    const clip = `chart-${Math.random().toString(36).slice(2)}`;
    const area = svg("rect", { x: 0, y: 0, width: 1, height: 1 });
    this.#root.append(svg("clipPath", { id: clip }, area), this.#grid, this.#paths, this.#mark);
    this.#paths.setAttribute("clip-path", `url(#${clip})`);
    this.element = el("div", { class: "chart-frame" }, this.#legend);
    this.element.append(this.#root);
    this.#listen();
  }

  get width(): number {
    return Math.max(1, this.#root.clientWidth - MARGIN.left - MARGIN.right);
  }

  draw(data: ChartData): void {
    const { clientWidth: width, clientHeight: height } = this.#root;
    if (width === 0 || height === 0) return;
    this.#window = data.window;
    this.#box = {
      left: MARGIN.left,
      top: MARGIN.top,
      right: width - MARGIN.right,
      bottom: height - MARGIN.bottom,
    };
    const { left, top, right, bottom } = this.#box;
    const area = this.#root.querySelector("clipPath rect");
    if (area)
      setAttributes(area, {
        x: left,
        y: top,
        width: Math.max(0, right - left),
        height: Math.max(0, bottom - top),
      });
    const values = valueRange(
      data.line,
      data.window,
      data.lines.map(({ columns }) => columns),
    ) ?? [0, 1];
    this.#root.setAttribute("aria-label", describe(data));
    this.#drawGrid(data, values);
    this.#paths.replaceChildren(
      ...data.lines.map(({ columns, color }) =>
        svg("path", { d: pathOf(data.line, columns, this.#box, data.window, values), stroke: color }),
      ),
    );
    this.#drawMark(data, values);
    this.#legend.replaceChildren(
      ...data.lines.map(({ name, color, columns }) => {
        const item = el("span", { class: "chart-name" }, name, valueAt(data, columns));
        item.style.setProperty("--color", color);
        return item;
      }),
    );
  }

  #drawGrid({ line, window, calendar, units }: ChartData, values: Window): void {
    const { left, top, right, bottom } = this.#box;
    const text = (x: number, y: number, anchor: string, value: string) =>
      svg("text", { x, y, "text-anchor": anchor }, value);
    const xTicks = ticksAlong(line, window, calendar, Math.max(2, (right - left) / APART.x));
    const yTicks = numberTicks(values[0], values[1], Math.max(2, (bottom - top) / APART.y));
    const time = parseTimeUnits(line.axis.units, calendar);
    const axisUnits =
      time || line.axis.units === "" || !line.hasCoordinates ? "" : ` (${formatUnits(line.axis.units)})`;
    const xName = line.hasCoordinates
      ? `${line.axis.name}${axisUnits}`
      : texts.values.indexAxis(line.axis.name);
    this.#grid.replaceChildren(
      ...xTicks.map(({ value }) => {
        const x = across(this.#box, window, value);
        return svg("path", { d: `M${x} ${top}V${bottom}` });
      }),
      ...yTicks.map(({ value }) => svg("path", { d: `M${left} ${down(this.#box, values, value)}H${right}` })),
      ...xTicks.map(({ value, text: label }) =>
        text(across(this.#box, window, value), bottom + 14, "middle", label),
      ),
      ...yTicks.map(({ value, text: label }) =>
        text(left - 6, down(this.#box, values, value) + 4, "end", label),
      ),
      svg("path", { class: "chart-axes", d: `M${left} ${top}V${bottom}H${right}` }),
      text((left + right) / 2, bottom + 29, "middle", xName),
      svg(
        "text",
        { "text-anchor": "middle", transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)` },
        formatUnits(units),
      ),
    );
  }

  #drawMark(data: ChartData, values: Window): void {
    const { pointed, window, line } = data;
    const { left, right, top, bottom } = this.#box;
    const x = pointed === null ? Number.NaN : across(this.#box, window, pointed);
    if (!(x >= left && x <= right)) {
      this.#mark.replaceChildren();
      return;
    }
    const dots = data.lines.flatMap(({ columns, color }) => {
      const column = columnAt(line, columns, pointed ?? 0);
      if (column === null) return [];
      return [columns.low[column], columns.high[column]].flatMap((value) =>
        value === null || value === undefined
          ? []
          : [
              svg("circle", {
                cx: across(this.#box, window, placeOf(line, indexOf(columns, column))),
                cy: down(this.#box, values, value),
                r: 3.5,
                fill: color,
              }),
            ],
      );
    });
    this.#mark.replaceChildren(svg("path", { d: `M${x} ${top}V${bottom}` }), ...dots);
  }

  #share(clientX: number): number {
    const { left, right } = this.#box;
    const x = clientX - this.#root.getBoundingClientRect().left;
    return (x - left) / Math.max(1, right - left);
  }

  #listen(): void {
    const root = this.#root;
    root.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || this.#pointers.size > 1) return;
      root.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, this.#share(event.clientX));
    });
    root.addEventListener("pointermove", (event) => {
      this.#moved(event);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"] as const)
      root.addEventListener(name, (event) => {
        this.#pointers.delete(event.pointerId);
      });
    root.addEventListener("pointerleave", () => {
      this.#target.point(null);
    });
    root.addEventListener("dblclick", () => {
      this.#target.whole();
    });
    root.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const pixels = (event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
          this.#target.pan(pixels / this.width);
        } else {
          const exponent = event.deltaY * unit * WHEEL_RATE * (event.ctrlKey ? 6 : 1);
          this.#target.zoom(Math.exp(Math.max(-1, Math.min(1, exponent))), this.#share(event.clientX));
        }
      },
      { passive: false },
    );
    root.addEventListener("keydown", (event) => {
      const run = this.#keys()[event.key];
      if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      run();
    });
  }

  #keys(): Readonly<Record<string, () => void>> {
    const target = this.#target;
    const zoom = (factor: number) => () => {
      target.zoom(factor, 0.5);
    };
    const pan = (share: number) => () => {
      target.pan(share);
    };
    return {
      ArrowLeft: pan(-KEY_PAN),
      ArrowRight: pan(KEY_PAN),
      "+": zoom(1 / KEY_ZOOM),
      "=": zoom(1 / KEY_ZOOM),
      "-": zoom(KEY_ZOOM),
      Home: () => {
        target.whole();
      },
    };
  }

  #moved(event: PointerEvent): void {
    const share = this.#share(event.clientX);
    const before = this.#pointers.get(event.pointerId);
    if (before === undefined) {
      const [from, to] = this.#window;
      this.#target.point(from + share * (to - from));
      return;
    }
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.#pointers.set(event.pointerId, share);
    if (other === undefined) {
      this.#target.pan(before - share);
      return;
    }
    const spread = (at: number) => Math.max(0.02, Math.abs(at - other));
    this.#target.zoom(spread(before) / spread(share), (share + other) / 2);
  }
}

/** Ticks along the axis: dates where it has such. */
export function ticksAlong(line: LineAxis, [from, to]: Window, calendar: string, count: number): Tick[] {
  const time = line.hasCoordinates ? parseTimeUnits(line.axis.units, calendar) : null;
  const dates = time ? dateTicks(from, to, count, time) : [];
  return dates.length > 0 ? dates : numberTicks(from, to, count, !line.hasCoordinates);
}

/** Text of a line's value at the pointer; of several in one column their extremes. */
function valueAt({ line, pointed }: ChartData, columns: PlotColumns): string {
  const column = pointed === null ? null : columnAt(line, columns, pointed);
  if (column === null) return "";
  const [low, high] = [columns.low[column] ?? null, columns.high[column] ?? null];
  if (low === null || high === null) return `: ${texts.values.none}`;
  const units = columns.units === "" ? "" : ` ${formatUnits(columns.units)}`;
  return `: ${low === high ? short(low) : texts.values.range(short(low), short(high))}${units}`;
}

/** As many digits as tell single-precision values apart; CSV has all. */
const short = (value: number) => String(Number(value.toPrecision(9)));

function describe({ line, lines, window }: ChartData): string {
  const names = lines.map(({ name }) => name).join(", ");
  return texts.plots.describe(names, line.axis.name, window[0], window[1]);
}

/** Shows a text that may be empty. */
export function showText(element: HTMLElement, text: string): void {
  setText(element, text);
  element.hidden = text === "";
}
