//! Color bar with ticks, or a legend of labels, channels and isosurfaces. It lies beside the data if there is room: upright at the
//! right, or level below. Pure.

import { texts as words } from "../../texts/texts.ts";
import { findArray, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import type { LegendEntry } from "../../dataset/legend.ts";
import type { Stats } from "../../dataset/stats.ts";
import { cssColor, findColormap, type Colormap } from "../../transfer/colormap.ts";
import { scaleOver, shareBetween } from "../../transfer/value-scale.ts";
import type { Layer, Transfer, ValueScale, View } from "../../view/schema.ts";
import { labelColor } from "./label-color.ts";
import type { Layout } from "./layout.ts";
import { GAP, grown, LINE, type Box, type Measure, type Shape } from "./shapes.ts";
import { logTicks, minus, numberTicks, type Tick } from "./ticks.ts";

/** Maximum number of labels or channels in a legend. */
const MAX_ROWS = 12;
/** Longest name in a legend, characters. */
const MAX_NAME = 32;
/** Length and thickness of the bar, pixels. */
const LONGEST = 260;
const SHORTEST = 80;
const THICK = 13;
/** Distances of ticks of an upright and of a level bar, pixels. */
const APART = 30;
const APART_ACROSS = 56;
const STOPS = 32;
/** Width of a title above an upright bar, and its most lines. */
const TITLE_WIDTH = 110;
const MAX_TITLE_LINES = 3;
/** Ending of the names of arrays of packed colors. */
const COLOR_END = " (color)";

export type ColorKey =
  | {
      readonly kind: "bar";
      readonly title: string;
      readonly range: readonly [number, number];
      readonly map: string;
      readonly scale: ValueScale;
      readonly isReversed: boolean;
    }
  | {
      readonly kind: "legend";
      readonly title: string;
      readonly rows: readonly LegendRow[];
      readonly left: number;
    };

export interface LegendRow {
  readonly color: string;
  readonly text: string;
}

/** Meaning of the colors of a view; null if there is nothing to tell. */
export function colorKey(
  dataset: Dataset,
  array: ArrayInfo,
  view: View,
  stats: Stats | null,
  colormaps: ReadonlyMap<string, Colormap>,
): ColorKey | null {
  if (array.meaning === "colors") return packedKey(dataset, array);
  if (array.meaning === "labels" && view.color_by === null)
    return labelKey(array, stats, colormaps.get("labels"));
  // Isosurfaces have colors of their own; slices have those of the transfer function.
  const hasColors = view.mode !== "surfaces" || view.slices.length > 0;
  const by = view.color_by;
  if (by) {
    const other = findArray(dataset, by.array);
    if (!other || !by.range || by.map === null) return null;
    return {
      kind: "bar",
      title: arrayTitle(other),
      range: by.range,
      map: by.map,
      scale: "linear",
      isReversed: false,
    };
  }
  if (!hasColors) return surfaceKey(array, view);
  return transferKey(arrayTitle(array), view.transfer);
}

/** Bar of a transfer function; null for colors that do not stand for values. */
function transferKey(title: string, transfer: Transfer | null | undefined): ColorKey | null {
  if (!transfer || transfer.map === "rgb" || transfer.map === "labels") return null;
  return {
    kind: "bar",
    title,
    range: transfer.range,
    map: transfer.map,
    scale: scaleOf(transfer),
    isReversed: (transfer as Transfer & { readonly reversed?: unknown }).reversed === true,
  };
}

/** Meaning of the colors of the topmost visible layer that has some: an array, or geometry with colors by value; null if there is none. */
export function layerKey(
  dataset: Dataset,
  layers: readonly Layer[],
  colormaps: ReadonlyMap<string, Colormap>,
): ColorKey | null {
  const isSeen = ({ visible, opacity }: Layer) => visible !== false && (opacity ?? 1) > 0;
  for (const layer of layers.filter(isSeen).toReversed()) {
    const key = keyOfLayer(dataset, layer, colormaps);
    if (key) return key;
  }
  return null;
}

function keyOfLayer(
  dataset: Dataset,
  layer: Layer,
  colormaps: ReadonlyMap<string, Colormap>,
): ColorKey | null {
  if (layer.geometry !== undefined) return layer.by == null ? null : transferKey(layer.by, layer.transfer);
  const array = layer.array === undefined ? null : findArray(dataset, layer.array);
  if (!array) return null;
  if (array.meaning === "colors") return packedKey(dataset, array);
  if (layer.labels !== undefined || array.meaning === "labels")
    return labelKey(array, null, colormaps.get("labels"));
  return transferKey(arrayTitle(array), layer.transfer);
}

/** Scale of a transfer function: `linear` unless it says otherwise. A logarithmic one needs a range above 0. */
export function scaleOf(transfer: Transfer): ValueScale {
  const { scale } = transfer as Transfer & { readonly scale?: unknown };
  if (scale === "log" && transfer.range[0] > 0) return "log";
  return scale === "symlog" ? "symlog" : "linear";
}

/** Long name of an array if it has one, and units. */
export function arrayTitle(array: ArrayInfo): string {
  const name = array.title === "" ? array.name : array.title;
  const units = array.units.trim() === "1" ? "" : formatUnits(array.units);
  return units === "" ? name : `${name} (${units})`;
}

function surfaceKey(array: ArrayInfo, view: View): ColorKey | null {
  const units = array.units.trim() === "1" ? "" : ` ${formatUnits(array.units)}`;
  const rows = view.surfaces.slice(0, MAX_ROWS).map(({ value, color }) => ({
    color: `rgb(${color.join(" ")})`,
    text: minus(`${formatNumber(value)}${units}`),
  }));
  if (rows.length === 0) return null;
  return {
    kind: "legend",
    title: array.title === "" ? array.name : array.title,
    rows,
    left: view.surfaces.length - rows.length,
  };
}

/** Channels of an image, or labels with colors in the file: those of the array that the colors are made of. */
function packedKey(dataset: Dataset, array: ArrayInfo): ColorKey | null {
  const name = array.name.endsWith(COLOR_END) ? array.name.slice(0, -COLOR_END.length) : "";
  const source = dataset.arrays.find((other) => other.name === name);
  if (!source) return null;
  const { labels, channels } = source.legend;
  const entries = source.meaning === "labels" ? labels : channels;
  // Red, green and blue of an ordinary picture explain nothing.
  if (entries.every((entry) => ["red", "green", "blue"].includes(entry.name))) return null;
  return legendOf(
    source.title === "" && source.meaning !== "labels" ? "" : arrayTitle(source),
    entries,
    undefined,
  );
}

/** Labels in the order of their number of voxels, if it is known; without names, the most frequent values. */
function labelKey(array: ArrayInfo, stats: Stats | null, table: Colormap | undefined): ColorKey | null {
  const counts = stats ? labelCounts(stats) : null;
  const named = array.legend.labels;
  const counted = counts ? [...counts.keys()].filter((value) => value !== 0) : [];
  const entries =
    named.length > 0 ? named : counted.map((value) => ({ value, name: String(value), color: null }));
  const shown =
    counts && named.length > 0 ? entries.filter(({ value }) => (counts.get(value) ?? 0) > 0) : entries;
  const sorted = counts
    ? shown.toSorted((a, b) => (counts.get(b.value) ?? 0) - (counts.get(a.value) ?? 0))
    : shown;
  // Colors of the file are drawn only in the array of colors.
  const plain = sorted.map((entry) => ({ ...entry, color: null }));
  return legendOf(array.title === "" ? array.name : array.title, plain, table);
}

/** Number of voxels by label, if each bin of the histogram has at most one whole number. */
export function labelCounts({ histogram, min }: Stats): ReadonlyMap<number, number> | null {
  const { low, high, counts } = histogram;
  const wide = (high - low) / counts.length;
  if (counts.length === 0 || wide > 1 || !Number.isInteger(min))
    return high === low ? new Map([[low, 1]]) : null;
  const found = new Map<number, number>();
  counts.forEach((count, i) => {
    // The last bin includes its upper end.
    const value = i === counts.length - 1 ? Math.floor(high) : Math.ceil(low + i * wide - 1e-9);
    if (count > 0) found.set(value, (found.get(value) ?? 0) + count);
  });
  return found;
}

function legendOf(
  title: string,
  entries: readonly LegendEntry[],
  table: Colormap | undefined,
): ColorKey | null {
  const rows = entries.slice(0, MAX_ROWS).flatMap(({ value, name, color }) => {
    const css = color ? `rgb(${color.join(" ")})` : labelColor(value, table);
    return css === null
      ? []
      : [{ color: css, text: name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name }];
  });
  return rows.length === 0 ? null : { kind: "legend", title, rows, left: entries.length - rows.length };
}

export function colorMarks(
  key: ColorKey,
  colormaps: ReadonlyMap<string, Colormap>,
  layout: Layout,
  measure: Measure,
): Shape[] {
  return key.kind === "bar" ? barMarks(key, colormaps, layout, measure) : legendMarks(key, layout, measure);
}

/** Lines of a title above an upright bar: at most three, broken between words. */
function wrapped(title: string, measure: Measure): string[] {
  const lines: string[] = [];
  for (const word of title.split(" ")) {
    const last = lines.at(-1);
    const longer = `${last ?? ""} ${word}`;
    if (last !== undefined && (lines.length >= MAX_TITLE_LINES || measure(longer) <= TITLE_WIDTH))
      lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Ticks of a bar, with its ends where no round value is near. */
export function barTicks(key: ColorKey & { kind: "bar" }, length: number, apart: number): Tick[] {
  const [low, high] = key.range;
  const count = Math.max(2, Math.floor(length / apart));
  const ticks =
    key.scale === "log"
      ? logTicks(low, high, count)
      : key.scale === "symlog"
        ? symlogTicks(low, high, count)
        : numberTicks(low, high, count);
  if (ticks.length >= 2) return ticks;
  return [low, high].map((value) => ({ value, text: minus(formatNumber(value)) }));
}

/** Powers of ten on both sides of zero, and zero, about `count`. */
function symlogTicks(low: number, high: number, count: number): Tick[] {
  const { threshold } = scaleOver("symlog", [low, high]);
  const side = (most: number) => (most > threshold ? logTicks(threshold, most, Math.max(2, count / 2)) : []);
  const powers = (most: number) => side(most).filter(({ value }) => Number.isInteger(Math.log10(value)));
  const negative = powers(-low).map(({ value, text }) => ({ value: -value, text: `−${text}` }));
  const zero = low <= 0 && high >= 0 ? [{ value: 0, text: "0" }] : [];
  return [...negative.toReversed(), ...zero, ...powers(high)].filter(
    ({ value }) => value >= low && value <= high,
  );
}

/** Share of the bar at a value. */
export function shareOf(key: ColorKey & { kind: "bar" }, value: number): number {
  const [low, high] = key.range;
  return shareBetween(scaleOver(key.scale, key.range), low, high, value);
}

function barMarks(
  key: ColorKey & { kind: "bar" },
  colormaps: ReadonlyMap<string, Colormap>,
  layout: Layout,
  measure: Measure,
): Shape[] {
  const table = findColormap(colormaps, { map: key.map, reversed: key.isReversed });
  const colors = Array.from({ length: STOPS }, (_, i) => cssColor(table, i / (STOPS - 1)));
  const { free } = layout;
  const upright = (share: number) => {
    const long = Math.min(LONGEST, (free.bottom - free.top) * share);
    const ticks = barTicks(key, long, APART);
    const wide = Math.max(THICK + 6 + Math.max(...ticks.map(({ text }) => measure(text))), 1);
    const lines = wrapped(key.title, measure);
    const widest = Math.max(wide, ...lines.map((line) => measure(line) * 1.08));
    const size = [widest, long + LINE * (lines.length + 1)] as const;
    return { long, size, ticks, isUpright: true };
  };
  const level = (share: number) => {
    const long = Math.min(LONGEST, (free.right - free.left) * share);
    const ticks = barTicks(key, long, APART_ACROSS);
    const overhang = Math.max(...ticks.map(({ text }) => measure(text))) / 2;
    const size = [Math.max(long + 2 * overhang, measure(key.title) * 1.08), LINE * 2 + THICK + 6] as const;
    return { long, size, ticks, isUpright: false };
  };
  const clear = (box: Box) => !layout.isOverData(box);
  const tries = [
    () => found(upright(0.6), (size) => layout.corner(["right", "top"], size, clear)),
    () => found(level(0.6), (size) => layout.corner(["right", "bottom"], size, clear)),
    () => found(level(0.6), (size) => layout.corner(["right", "top"], size, clear)),
    () => found(upright(0.4), (size) => layout.corner(["right", "top"], size, clear)),
    () => found(upright(0.6), (size) => layout.corner(["left", "top"], size, clear)),
    () => found(upright(0.5), (size) => layout.corner(["right", "top"], size)),
    () => found(level(0.7), (size) => layout.corner(["right", "top"], size)),
    () => found(level(0.9), (size) => layout.corner(["left", "top"], size)),
  ];
  for (const attempt of tries) {
    const bar = attempt();
    if (bar && bar.long >= SHORTEST) {
      layout.take(grown(bar.box, GAP));
      const plate: Shape[] = layout.isOverData(bar.box) ? [{ kind: "plate", box: bar.box }] : [];
      return [...plate, ...(bar.isUpright ? uprightBar : levelBar)(key, bar, colors, measure)];
    }
  }
  return [];
}

interface Bar {
  readonly long: number;
  readonly size: readonly [number, number];
  readonly ticks: readonly Tick[];
  readonly isUpright: boolean;
}

function found(
  bar: Bar,
  place: (size: readonly [number, number]) => Box | null,
): (Bar & { box: Box }) | null {
  const box = place(bar.size);
  return box && { ...bar, box };
}

function uprightBar(
  key: ColorKey & { kind: "bar" },
  { box, long, ticks }: Bar & { box: Box },
  colors: readonly string[],
  measure: Measure,
): Shape[] {
  const widest = Math.max(...ticks.map(({ text }) => measure(text)));
  // Flush with the right side, where the text of the ticks ends.
  const left = box.right - THICK - 6 - widest;
  const lines = wrapped(key.title, measure);
  const top = box.top + LINE * (lines.length + 0.5);
  const ramp = { left, right: left + THICK, top, bottom: top + long };
  const shapes: Shape[] = [
    { kind: "ramp", box: ramp, colors, isUpright: true },
    ...lines.map((line, i): Shape => ({
      kind: "text",
      at: { x: box.right, y: box.top + LINE * (i + 0.5) },
      text: line,
      anchor: "end",
      isBold: true,
    })),
  ];
  for (const { value, text } of ticks) {
    const y = ramp.bottom - shareOf(key, value) * long;
    shapes.push(
      { kind: "line", from: { x: ramp.right, y }, to: { x: ramp.right + 4, y } },
      { kind: "text", at: { x: ramp.right + 6, y }, text, anchor: "start" },
    );
  }
  return shapes;
}

function levelBar(
  key: ColorKey & { kind: "bar" },
  { box, long, ticks }: Bar & { box: Box },
  colors: readonly string[],
): Shape[] {
  const middle = (box.left + box.right) / 2;
  const top = box.top + LINE;
  const ramp = { left: middle - long / 2, right: middle + long / 2, top, bottom: top + THICK };
  const shapes: Shape[] = [
    { kind: "ramp", box: ramp, colors, isUpright: false },
    {
      kind: "text",
      at: { x: middle, y: box.top + LINE / 2 - 1 },
      text: key.title,
      anchor: "middle",
      isBold: true,
    },
  ];
  for (const { value, text } of ticks) {
    const x = ramp.left + shareOf(key, value) * long;
    shapes.push(
      { kind: "line", from: { x, y: ramp.bottom }, to: { x, y: ramp.bottom + 4 } },
      { kind: "text", at: { x, y: ramp.bottom + 5 + LINE / 2 }, text, anchor: "middle" },
    );
  }
  return shapes;
}

function legendMarks(key: ColorKey & { kind: "legend" }, layout: Layout, measure: Measure): Shape[] {
  const { free } = layout;
  const most = Math.floor((free.bottom - free.top) / LINE) - 2;
  const rows = key.rows.slice(0, Math.max(0, most));
  const left = key.left + key.rows.length - rows.length;
  const more = left > 0 ? words.marks.more(left) : "";
  const indent = 10 + GAP * 0.75;
  const texts = [...rows.map(({ text }) => measure(text) + indent), measure(key.title) * 1.08, measure(more)];
  const titleRows = key.title === "" ? 0 : 1;
  const size = [Math.max(...texts), (rows.length + titleRows + (more === "" ? 0 : 1)) * LINE] as const;
  const clear = (box: Box) => !layout.isOverData(box);
  const place = layout.corner(["right", "top"], size, clear) ?? layout.corner(["right", "top"], size);
  if (!place || rows.length === 0) return [];
  layout.take(grown(place, GAP));
  const y = (row: number) => place.top + (row + 0.5) * LINE;
  const shapes: Shape[] = layout.isOverData(place) ? [{ kind: "plate", box: place }] : [];
  const text = (x: number, row: number, words: string, isBold = false): Shape => ({
    kind: "text",
    at: { x, y: y(row) },
    text: words,
    anchor: "start",
    isBold,
  });
  if (titleRows === 1) shapes.push(text(place.left, 0, key.title, true));
  rows.forEach(({ color, text: words }, i) => {
    const row = i + titleRows;
    const box = { left: place.left, right: place.left + 10, top: y(row) - 5, bottom: y(row) + 5 };
    shapes.push({ kind: "swatch", box, color }, text(place.left + indent, row, words));
  });
  if (more !== "") shapes.push(text(place.left, rows.length + titleRows, more));
  return shapes;
}
