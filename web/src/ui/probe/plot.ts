//! Plots of values along a line or over time, as SVG. The geometry is computed here and drawn by `plotElement`.

import { texts } from "../../texts/texts.ts";
import { formatNumber, formatUnits, shortUnits } from "../../dataset/labels.ts";
import { svg } from "../dom.ts";
import { lineColor } from "../plots/colors.ts";
import type { MeasuredValues, Profile, Series } from "./measured.ts";

/** Size of the drawing, in units of its view box. */
export const PLOT = { width: 280, height: 120, left: 46, right: 8, top: 8, bottom: 22 };

export interface PlotData {
  /** Ascending. */
  readonly x: readonly number[];
  readonly lines: readonly { readonly name: string; readonly y: readonly (number | null)[] }[];
  readonly xLabels: readonly [string, string];
  /** Whole texts of these labels, with the date from which times are counted. */
  readonly xTitles: readonly [string, string];
  readonly yUnits: string;
  /** Describes the plot for screen readers. */
  readonly title: string;
}

export interface PlotGeometry {
  /** SVG paths, one for each line; gaps where there is no value. */
  readonly paths: readonly string[];
  readonly low: number;
  readonly high: number;
}

/** Values that pictures leave out, and those outside of the array, are gaps. */
function line(values: MeasuredValues): { name: string; y: (number | null)[] } {
  const y = values.decoded.map((value, at) => (values.missing[at] === true ? null : value));
  return { name: values.name ?? (values.channel === null ? "" : texts.values.channel(values.channel)), y };
}

export function plotOf(measured: Profile | Series): PlotData {
  const lines = measured.channels.map(line);
  if (measured.kind === "profile") {
    const x = measured.distance;
    const end = `${formatNumber(x.at(-1) ?? 0)} ${formatUnits(measured.worldUnits)}`.trim();
    const title = texts.measured.alongLine(measured.array, end);
    const xLabels = ["0", end] as const;
    return { x, lines, xLabels, xTitles: xLabels, yUnits: measured.units, title };
  }
  const known = measured.coordinate.filter((value) => value !== null);
  const isAscending = known.every((value, at) => at === 0 || value > (known[at - 1] ?? value));
  const x = known.length === measured.time.length && isAscending ? known : measured.time;
  const label = (at: number, units: string) => {
    const coordinate = measured.coordinate[at];
    if (measured.text[at]) return measured.text[at];
    return coordinate === null || coordinate === undefined
      ? texts.measured.step(measured.axes[measured.timeAxis] ?? "", measured.time[at] ?? 0)
      : `${formatNumber(coordinate)} ${units}`.trim();
  };
  const last = measured.time.length - 1;
  const ends = (units: string) => [label(0, units), label(last, units)] as const;
  const [xLabels, xTitles] = [ends(shortUnits(measured.timeUnits)), ends(formatUnits(measured.timeUnits))];
  const title = texts.measured.overTime(measured.array, xTitles[0], xTitles[1]);
  return { x, lines, xLabels, xTitles, yUnits: measured.units, title };
}

/** Computes the paths of a plot; equal values lie in the middle. */
export function plotGeometry({ x, lines }: PlotData): PlotGeometry {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { y } of lines)
    for (const value of y)
      if (value !== null && Number.isFinite(value))
        [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (low > high) return { paths: lines.map(() => ""), low: Number.NaN, high: Number.NaN };
  const [first = 0, last = 0] = [x[0], x.at(-1)];
  const { width, height, left, right, top, bottom } = PLOT;
  const across = (value: number) =>
    left + (last > first ? (value - first) / (last - first) : 0.5) * (width - left - right);
  const down = (value: number) =>
    top + (high > low ? (high - value) / (high - low) : 0.5) * (height - top - bottom);
  const path = (y: readonly (number | null)[]) => {
    let isDrawing = false;
    const parts: string[] = [];
    y.forEach((value, at) => {
      const place = x[at];
      if (value === null || !Number.isFinite(value) || place === undefined) {
        isDrawing = false;
        return;
      }
      const next = y[at + 1];
      const isAlone = !isDrawing && (next === null || next === undefined || !Number.isFinite(next));
      const point = `${across(place).toFixed(2)} ${down(value).toFixed(2)}`;
      parts.push(`${isDrawing ? "L" : "M"}${point}${isAlone ? "h0.01" : ""}`);
      isDrawing = true;
    });
    return parts.join("");
  };
  return { paths: lines.map(({ y }) => path(y)), low, high };
}

export function plotElement(data: PlotData): SVGSVGElement {
  const { paths, low, high } = plotGeometry(data);
  const { width, height, left, right, top, bottom } = PLOT;
  const text = (value: string, x: number, y: number, anchor: string, whole = value) =>
    svg("text", { x, y, "text-anchor": anchor, class: "plot-text" }, svg("title", {}, whole), value);
  const frame = svg("path", {
    class: "plot-frame",
    d: `M${left} ${top}V${height - bottom}H${width - right}`,
  });
  const lines = paths.map((d, at) => svg("path", { class: "plot-line", d, stroke: lineColor(at) }));
  const element = svg(
    "svg",
    { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": data.title },
    frame,
    ...lines,
    text(formatNumber(high), left - 4, top + 7, "end"),
    text(formatNumber(low), left - 4, height - bottom, "end"),
    text(formatUnits(data.yUnits), left - 4, (top + height - bottom) / 2, "end"),
    text(data.xLabels[0], left, height - 6, "start", data.xTitles[0]),
    text(data.xLabels[1], width - right, height - 6, "end", data.xTitles[1]),
  );
  data.lines.forEach(({ name }, at) => {
    if (data.lines.length > 1)
      element.append(
        svg(
          "text",
          {
            x: width - right,
            y: top + 8 + 11 * at,
            "text-anchor": "end",
            fill: lineColor(at),
          },
          name,
        ),
      );
  });
  return element;
}
