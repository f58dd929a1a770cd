//! The plot of the transfer-function editor: histogram, opacity curve, points, color bar with handles.
//! It draws, and reports what the user does to a point or handle; `editor.ts` changes the transfer function.

import { texts } from "../../texts/texts.ts";
import { cssColor, type Colormap } from "../../transfer/colormap.ts";
import {
  alphaAt,
  fractionOf,
  heightOf,
  linearHeights,
  logHeights,
  valueAt,
  type Domain,
} from "../../transfer/scale.ts";
import type { Transfer } from "../../view/schema.ts";
import { setAttributes, svg, uniqueId } from "../dom.ts";
import { formatNumber } from "../../dataset/labels.ts";

export interface PlotInput {
  readonly transfer: Transfer;
  readonly domain: Domain;
  /** Histogram with the values at its ends; null without one. */
  readonly histogram: {
    readonly low: number;
    readonly high: number;
    readonly counts: readonly number[];
  } | null;
  /** True if the heights of the histogram are logarithmic. */
  readonly hasLogCounts: boolean;
  readonly map: Colormap | undefined;
  /** True if the values drawn determine the colors; otherwise there is no color bar. */
  readonly isColored: boolean;
  readonly selected: number;
}

export interface PlotActions {
  select(index: number): void;
  movePoint(index: number, value: number, alpha: number): void;
  /** Moves a point by fractions of the plot's width and height. */
  nudgePoint(index: number, across: number, up: number): void;
  moveRange(end: "low" | "high", value: number): void;
  nudgeRange(end: "low" | "high", across: number): void;
  add(value: number, alpha: number): void;
  /** Adds a point between a point and the next one. */
  addBeside(index: number): void;
  remove(index: number): void;
  rest(): void;
}

const HEIGHT = 128;
const BAR_HEIGHT = 12;
const GAP = 10;
const INSET = 8;
/** Heights of the plot with and without the color bar, CSS pixels; its width is that of the panel. */
const WHOLE_HEIGHT = HEIGHT + GAP + BAR_HEIGHT + 14;
const CURVE_HEIGHT = HEIGHT + INSET;
const POINT_RADIUS = 5.5;
const HIT_RADIUS = 14;
const STOPS = 24;
/** Segments per line of the curve on the square-root scale. */
const SEGMENTS = 24;

export class Plot {
  readonly element: SVGSVGElement;
  readonly #actions: PlotActions;
  readonly #bars = svg("path", { class: "tf-histogram" });
  /** The page has several plots: that of the view, and that of the layer whose colors are open. */
  readonly #colorsId = uniqueId("tf-colors");
  readonly #fill = svg("path", { class: "tf-fill", fill: `url(#${this.#colorsId})` });
  readonly #curve = svg("path", { class: "tf-curve" });
  readonly #points = svg("g");
  readonly #bar = svg("rect", {
    class: "tf-bar",
    fill: `url(#${this.#colorsId})`,
    rx: 3,
    height: BAR_HEIGHT,
    y: HEIGHT + GAP,
  });
  readonly #handles: Readonly<Record<"low" | "high", SVGGElement>>;
  readonly #gradient = svg("linearGradient", {
    id: this.#colorsId,
    gradientUnits: "userSpaceOnUse",
    y1: 0,
    y2: 0,
  });
  readonly #floor = svg("path", { class: "tf-floor" });
  #input: PlotInput | null = null;
  #width = 268;
  #histogramKey: unknown = null;
  #mapKey: unknown = null;

  constructor(actions: PlotActions) {
    this.#actions = actions;
    this.#handles = { low: this.#handle("low"), high: this.#handle("high") };
    for (let i = 0; i < STOPS; i++) this.#gradient.append(svg("stop", { offset: i / (STOPS - 1) }));
    this.element = svg(
      "svg",
      {
        class: "tf-plot",
        height: WHOLE_HEIGHT,
        role: "group",
        "aria-label": texts.transferPanel.curveLabel,
      },
      svg("defs", {}, this.#gradient),
      this.#bars,
      this.#fill,
      this.#floor,
      this.#curve,
      this.#bar,
      this.#handles.low,
      this.#handles.high,
      this.#points,
    );
    this.element.addEventListener("dblclick", (event) => {
      const { value, alpha, y } = this.#at(event);
      if (y <= HEIGHT + 4) this.#actions.add(value, alpha);
    });
    this.element.addEventListener("contextmenu", (event) => {
      event.preventDefault();
    });
    new ResizeObserver(() => {
      this.#width = Math.max(120, this.element.clientWidth);
      this.#histogramKey = null;
      if (this.#input) this.draw(this.#input);
    }).observe(this.element);
  }

  draw(input: PlotInput): void {
    this.#input = input;
    const { transfer } = input;
    this.#drawHistogram(input);
    this.#drawColors(input);
    const places = transfer.opacity.map(([value, alpha]) => [this.#x(value), this.#y(alpha)] as const);
    const first = places[0];
    const last = places.at(-1);
    if (!first || !last) return;
    // Opacity holds beyond the outermost points.
    const line = [[INSET, first[1]], ...this.#interpolate(places), [this.#width - INSET, last[1]]]
      .map(([x = 0, y = 0]) => `${x.toFixed(1)} ${y.toFixed(1)}`)
      .join("L");
    setAttributes(this.#curve, { d: `M${line}` });
    setAttributes(this.#fill, { d: `M${INSET} ${HEIGHT}L${line}L${this.#width - INSET} ${HEIGHT}Z` });
    setAttributes(this.#floor, { d: `M${INSET} ${HEIGHT + 0.5}H${this.#width - INSET}` });
    this.#drawPoints(input, places);
  }

  /** Gives the keyboard focus to a point, for example one just added. */
  focusPoint(index: number): void {
    const point = this.#points.children[index];
    if (point instanceof SVGElement) point.focus();
  }

  /** Adds points between the control points: lines in opacity are curves on the square-root scale. */
  #interpolate(places: readonly (readonly [number, number])[]): [number, number][] {
    const fine: [number, number][] = [];
    places.forEach(([x, y], i) => {
      const next = places[i + 1];
      fine.push([x, y]);
      if (!next || next[0] - x < 4) return;
      const [from, to] = [this.#alpha(y), this.#alpha(next[1])];
      for (let k = 1; k < SEGMENTS; k++) {
        const share = (1 - Math.cos((Math.PI * k) / SEGMENTS)) / 2; // denser at the ends, where it bends
        fine.push([x + (next[0] - x) * share, this.#y(from + (to - from) * share)]);
      }
    });
    return fine;
  }

  #drawHistogram({ histogram, domain, hasLogCounts }: PlotInput): void {
    const key = JSON.stringify([
      domain,
      hasLogCounts,
      histogram?.low,
      histogram?.high,
      histogram?.counts.length,
    ]);
    const next = histogram ? `${key}${histogram.counts.reduce((sum, n) => sum + n, 0)}` : "";
    if (next === this.#histogramKey) return;
    this.#histogramKey = next;
    if (!histogram || histogram.counts.length === 0) {
      setAttributes(this.#bars, { d: "" });
      return;
    }
    const { low, high, counts } = histogram;
    const heights = hasLogCounts ? logHeights(counts) : linearHeights(counts);
    // Bins are equally wide on the scale of the plot.
    const [from, to] = [this.#x(low), this.#x(high)];
    const x = (i: number) => (from + ((to - from) * i) / counts.length).toFixed(1);
    const steps = heights.map((height, i) => {
      const y = (HEIGHT - height * (HEIGHT - 14)).toFixed(1);
      return `L${x(i)} ${y}L${x(i + 1)} ${y}`;
    });
    setAttributes(this.#bars, {
      d: `M${this.#x(low).toFixed(1)} ${HEIGHT}${steps.join("")}L${this.#x(high).toFixed(1)} ${HEIGHT}Z`,
    });
  }

  #drawColors({ transfer, domain, map, isColored }: PlotInput): void {
    setAttributes(this.element, { height: isColored ? WHOLE_HEIGHT : CURVE_HEIGHT });
    this.element.classList.toggle("plain", !isColored);
    const [low, high] = transfer.range.map((value) => this.#x(value)) as [number, number];
    setAttributes(this.#gradient, { x1: low, x2: Math.max(high, low + 0.01) });
    setAttributes(this.#bar, { x: INSET, width: this.#width - 2 * INSET });
    for (const end of ["low", "high"] as const) {
      const value = transfer.range[end === "low" ? 0 : 1];
      setAttributes(this.#handles[end], {
        transform: `translate(${(end === "low" ? low : high).toFixed(1)} ${HEIGHT + GAP + BAR_HEIGHT})`,
        "aria-valuemin": domain.low,
        "aria-valuemax": domain.high,
        "aria-valuenow": value,
        "aria-valuetext": formatNumber(value),
      });
    }
    const key = map ?? transfer.map;
    if (key === this.#mapKey) return;
    this.#mapKey = key;
    [...this.#gradient.children].forEach((stop, i) => {
      setAttributes(stop, { "stop-color": cssColor(map, i / (STOPS - 1)) });
    });
  }

  #drawPoints(input: PlotInput, places: readonly (readonly [number, number])[]): void {
    while (this.#points.children.length > places.length) this.#points.lastElementChild?.remove();
    while (this.#points.children.length < places.length) this.#points.append(this.#point());
    places.forEach(([x, y], i) => {
      const point = this.#points.children[i];
      const [value, alpha] = input.transfer.opacity[i] ?? [0, 0];
      if (!point) return;
      const text = texts.transferPanel.pointText(formatNumber(value), formatNumber(alpha));
      setAttributes(point, {
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        "data-index": i,
        "aria-label": texts.transferPanel.opacityPoint(i + 1, places.length),
        "aria-valuenow": alpha,
        "aria-valuetext": text,
        class: i === input.selected ? "tf-point selected" : "tf-point",
      });
    });
  }

  #point(): SVGGElement {
    const point = svg(
      "g",
      { tabindex: 0, role: "slider", "aria-valuemin": 0, "aria-valuemax": 1 },
      svg("circle", { class: "tf-hit", r: HIT_RADIUS }),
      svg("circle", { class: "tf-dot", r: POINT_RADIUS }),
    );
    const index = () => Number(point.dataset.index);
    point.addEventListener("focus", () => {
      this.#actions.select(index());
    });
    point.addEventListener("pointerdown", (event) => {
      if (event.button === 2) this.#actions.remove(index());
      else
        this.#drag(point, event, ({ value, alpha }) => {
          this.#actions.movePoint(index(), value, alpha);
        });
    });
    point.addEventListener("dblclick", (event) => {
      event.stopPropagation();
    });
    point.addEventListener("keydown", (event) => {
      this.#pointKey(index(), event);
    });
    point.addEventListener("keyup", () => {
      this.#actions.rest();
    });
    return point;
  }

  #pointKey(index: number, event: KeyboardEvent): void {
    const direction = arrow(event);
    if (direction) this.#actions.nudgePoint(index, direction[0], direction[1]);
    else if (event.key === "Delete" || event.key === "Backspace") this.#actions.remove(index);
    else if (event.key === "+" || event.key === "Insert") this.#actions.addBeside(index);
    else return;
    event.preventDefault();
  }

  #handle(end: "low" | "high"): SVGGElement {
    const label = end === "low" ? texts.transferPanel.lowEnd : texts.transferPanel.highEnd;
    const handle = svg(
      "g",
      { tabindex: 0, role: "slider", class: "tf-handle", "aria-label": label },
      svg("rect", { class: "tf-hit", x: -12, y: -BAR_HEIGHT - 4, width: 24, height: BAR_HEIGHT + 20 }),
      svg("path", { class: "tf-grip", d: `M0 ${-BAR_HEIGHT - 2}V0L-5 6V11H5V6L0 0` }),
    );
    handle.addEventListener("pointerdown", (event) => {
      this.#drag(handle, event, ({ value }) => {
        this.#actions.moveRange(end, value);
      });
    });
    handle.addEventListener("keydown", (event) => {
      const direction = arrow(event);
      if (!direction) return;
      event.preventDefault();
      this.#actions.nudgeRange(end, direction[0] + direction[1]);
    });
    handle.addEventListener("keyup", () => {
      this.#actions.rest();
    });
    return handle;
  }

  #drag(
    element: SVGElement,
    event: PointerEvent,
    move: (at: { value: number; alpha: number }) => void,
  ): void {
    event.preventDefault();
    element.focus();
    element.setPointerCapture(event.pointerId);
    const onMove = (moved: PointerEvent) => {
      move(this.#at(moved));
    };
    const onEnd = () => {
      element.removeEventListener("pointermove", onMove);
      element.removeEventListener("lostpointercapture", onEnd);
      this.#actions.rest();
    };
    element.addEventListener("pointermove", onMove);
    element.addEventListener("lostpointercapture", onEnd);
  }

  #at(event: MouseEvent): { value: number; alpha: number; y: number } {
    const box = this.element.getBoundingClientRect();
    const domain = this.#input?.domain ?? { low: 0, high: 1 };
    const fraction = (event.clientX - box.left - INSET) / (this.#width - 2 * INSET);
    const y = event.clientY - box.top;
    return { value: valueAt(domain, Math.min(Math.max(fraction, 0), 1)), alpha: this.#alpha(y), y };
  }

  #x(value: number): number {
    const domain = this.#input?.domain ?? { low: 0, high: 1 };
    const fraction = Math.min(Math.max(fractionOf(domain, value), 0), 1);
    return INSET + fraction * (this.#width - 2 * INSET);
  }

  #y(alpha: number): number {
    return HEIGHT - heightOf(alpha) * (HEIGHT - INSET);
  }

  #alpha(y: number): number {
    return alphaAt((HEIGHT - y) / (HEIGHT - INSET));
  }
}

const ARROWS: Readonly<Record<string, readonly [across: number, up: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};
/** Step of an arrow key as a fraction of the plot; ten times as much with shift. */
const KEY_STEP = 0.01;

function arrow(event: KeyboardEvent): readonly [across: number, up: number] | null {
  const direction = ARROWS[event.key];
  const step = event.shiftKey ? 10 * KEY_STEP : KEY_STEP;
  return direction ? [direction[0] * step, direction[1] * step] : null;
}
