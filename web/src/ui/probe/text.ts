//! Texts about values: lines of the readout, tables, and the Python line that gives the same numbers.

import { texts } from "../../texts/texts.ts";
import { formatNumber, formatPlace, formatUnits, shortUnits } from "../../dataset/labels.ts";
import type { MeasuredValues, Profile, Region, Series, ShownMeasured } from "./measured.ts";
import {
  placeValues,
  type AxisPosition,
  type PickedElement,
  type PickedPlace,
  type PickedValue,
} from "./place.ts";

/** Pinned place with its number. */
export interface NumberedPlace {
  readonly id: number;
  readonly place: PickedPlace;
}

/** Form of numbers and units: short to be read, or whole as a tooltip. Copies have their own, whole one. */
export type TextForm = "short" | "whole";

/** Most significant digits of numbers in the short form. */
const SHORT_DIGITS = 7;

function withUnits(text: string, units: string): string {
  return units === "" ? text : `${text} ${formatUnits(units)}`;
}

/** Rounds a number that has more digits than are read. Whole numbers stay exact: they may be labels or identifiers. */
export function shortNumber(text: string): string {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || /^[+-]?\d+$/.test(text)) return text;
  const short = String(Number(value.toPrecision(SHORT_DIGITS))).replace("e+", "e");
  return short.length < text.length ? short : text;
}

const inForm = (text: string, form: TextForm) => (form === "short" ? shortNumber(text) : text);

/** One element: its name if it is a label, its value with units, or why it has none. */
export function elementText(element: PickedElement, units: string, form: TextForm = "short"): string {
  const channel = element.channel === null ? "" : `${element.channel} `;
  if (element.missing !== null)
    return channel + texts.probe.missing(element.missing, inForm(element.stored, form));
  const value = withUnits(inForm(element.text, form), units);
  if (element.label !== null) return `${channel}${element.label} (${value})`;
  return `${channel}${value}`;
}

/** The value of an array at a place; that of the level drawn is named as such. */
export function valueText(value: PickedValue, form: TextForm = "short"): string {
  if (value.elements.length > 0)
    return value.elements.map((element) => elementText(element, value.units, form)).join(", ");
  if (value.drawn)
    return texts.probe.valueOfLevel(
      withUnits(formatNumber(value.drawn.value), value.units),
      value.drawn.level,
    );
  return texts.values.none;
}

/** Position along an axis: its date, name or coordinate, and its index. */
export function axisText(axis: AxisPosition, form: TextForm = "short"): string {
  const index = `${axis.name} ${axis.index}`;
  if (axis.text !== null) return `${index}: ${axis.text}`;
  if (axis.coordinate === null || Number.isNaN(axis.coordinate)) return index;
  const units = form === "short" ? shortUnits(axis.units) : formatUnits(axis.units);
  // Times may have many digits before those that differ.
  const place = formatPlace(axis.coordinate);
  return `${index}: ${axis.kind === "time" ? place : inForm(place, form)} ${units}`.trimEnd();
}

/** Returns the name of the part of the picture that was hit. */
export function hitText(place: PickedPlace): string {
  const number = (place.number ?? 0) + 1;
  switch (place.hit) {
    case "nothing":
      return texts.probe.nothingHere;
    case "surface":
      return texts.probe.isosurface(number);
    case "slice":
      return texts.probe.slice(number);
    case "extreme":
      return texts.probe.extreme;
    case "volume":
      return texts.probe.volume;
    case "image":
      return "";
  }
}

/** Separates positions on one line. */
const BETWEEN = " · ";

/** Lines of the readout: the value first, then the place along the axes of the array and in world space. */
export function placeLines(place: PickedPlace, form: TextForm = "short"): string[] {
  const { value } = place;
  if (!value) return [hitText(place)];
  const number = (along: number) => inForm(formatPlace(along), form);
  const lines = placeValues(place).map((own) => `${own.array}: ${valueText(own, form)}`);
  lines.push(texts.probe.alongAxes(value.axes.map((axis) => axisText(axis, form)).join(BETWEEN)));
  if (value.coordinates.length > 0)
    lines.push(
      value.coordinates
        .map((own) => `${own.name} ${withUnits(number(own.coordinate), own.units)}`)
        .join(BETWEEN),
    );
  const where = place.world
    ? texts.probe.inWorld(withUnits(place.world.map(number).join(", "), place.worldUnits))
    : "";
  const what = [hitText(place), where].filter((part) => part !== "").join(BETWEEN);
  if (what !== "") lines.push(what);
  if (value.note !== null) lines.push(value.note);
  return lines;
}

/** The sentence that a screen reader says about a pinned value. */
export function spokenText({ id, place }: NumberedPlace): string {
  const { value } = place;
  if (!value) return texts.probe.pin(id, hitText(place));
  const where = value.axes.map((axis) => axisText(axis)).join(", ");
  return texts.probe.pinnedValue(id, `${value.array} ${valueText(value)}`, where);
}

/** A field of a table of comma-separated values (RFC 4180). */
function field(value: string | number | null): string {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function table(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** Pins as a table: one row for each value. Pins of arrays with other axes have their own columns. */
export function pinsCsv(pins: readonly NumberedPlace[]): string {
  const names: string[] = [];
  for (const { place } of pins)
    for (const axis of place.value?.axes ?? []) if (!names.includes(axis.name)) names.push(axis.name);
  const head = ["pin", "array", "channel", ...names.flatMap((name) => [`${name} index`, name])];
  const rows: (string | number | null)[][] = [
    [...head, "stored", "decoded", "units", "missing", "label", "x world", "y world", "z world", "hit"],
  ];
  for (const { id, place } of pins) {
    for (const value of placeValues(place)) {
      for (const element of value.elements) {
        const positions = names.flatMap((name) => {
          const at = value.axes.findIndex((axis) => axis.name === name);
          const axis = value.axes[at];
          return axis ? [element.index[at] ?? axis.index, axis.text ?? axis.coordinate] : [null, null];
        });
        const { stored, decoded, text, missing, label } = element;
        const known = decoded === null ? null : text;
        const tail = [stored, known, value.units, missing, label, ...(place.world ?? [null, null, null])];
        rows.push([id, value.array, element.channel, ...positions, ...tail, place.hit]);
      }
    }
  }
  return table(rows);
}

/** A measurement as a table. */
export function measuredCsv(measured: ShownMeasured): string {
  switch (measured.kind) {
    case "profile":
      return profileCsv(measured);
    case "series":
      return seriesCsv(measured);
    case "region":
      return regionCsv(measured);
  }
}

function valueColumns(channels: readonly MeasuredValues[]): string[] {
  return channels.flatMap((values) => {
    const of = channels.length > 1 ? ` ${values.name ?? values.channel ?? ""}` : "";
    return [`stored${of}`, `decoded${of}`];
  });
}

function valuesAt(channels: readonly MeasuredValues[], at: number): (string | number | null)[] {
  return channels.flatMap((values) => [values.stored[at] ?? null, values.decoded[at] ?? null]);
}

function profileCsv(profile: Profile): string {
  const head = [
    "distance",
    ...profile.axes.map((name) => `${name} index`),
    ...valueColumns(profile.channels),
  ];
  const rows = profile.distance.map((distance, at) => [
    distance,
    ...profile.axes.map((_, axis) => profile.index[at]?.[axis] ?? null),
    ...valuesAt(profile.channels, at),
  ]);
  return table([head, ...rows]);
}

function seriesCsv(series: Series): string {
  const name = series.axes[series.timeAxis] ?? "time";
  const head = [`${name} index`, name, "date", ...valueColumns(series.channels)];
  const rows = series.time.map((time, at) => [
    time,
    series.coordinate[at] ?? null,
    series.text[at] ?? null,
    ...valuesAt(series.channels, at),
  ]);
  return table([head, ...rows]);
}

function regionCsv(region: Region): string {
  const head = ["array", "channel", "elements", "count", "missing", "min", "max", "mean", "std", "units"];
  const rows = region.channels.map((own) => [
    region.array,
    own.name ?? own.channel,
    own.elements,
    own.count,
    own.missing,
    own.min,
    own.max,
    own.mean,
    own.std,
    region.units,
  ]);
  return table([head, ...rows]);
}

/** A Python string. JSON's escapes are Python's too. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** `corridor.open("corridor://host:port/name")["rho"]` */
export function pythonArray(url: string, array: string): string {
  return `corridor.open(${quoted(url)})[${quoted(array)}]`;
}

/** The Python line for a pinned value: the stored element, or a list of those of all channels. */
export function pinPython(url: string, place: PickedPlace): string {
  const lines = placeValues(place).flatMap((value) =>
    value.elements.map((element) => `${pythonArray(url, value.array)}[${element.index.join(", ")}]`),
  );
  return lines.join("\n");
}

/** The Python line that gives the numbers of a measurement. */
export function measuredPython(url: string, measured: ShownMeasured): string {
  switch (measured.kind) {
    case "profile":
      return profilePython(url, measured);
    case "series":
      return seriesPython(url, measured);
    case "region":
      return regionPython(url, measured);
  }
}

/** An array with the name `a`, as the first of two lines. */
function named(url: string, array: string): string {
  return `a = ${pythonArray(url, array)}.decoded\n`;
}

/** For each channel, the entry on its axis replaced. */
function perChannel(
  channels: readonly { readonly channel: number | null }[],
  axis: number | null,
  line: (fix: (entries: readonly string[]) => string[]) => string,
): string {
  const lines = channels.map(({ channel }) =>
    line((entries) =>
      entries.map((entry, at) => (at === axis && channel !== null ? String(channel) : entry)),
    ),
  );
  return lines.join("\n");
}

function profilePython(url: string, profile: Profile): string {
  const known = profile.index.filter((index) => index !== null);
  const axes = profile.axes.map((_, axis) => known.map((index) => index[axis] ?? 0));
  const lows = axes.map((along) => along.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY));
  const highs = axes.map((along) => along.reduce((a, b) => Math.max(a, b), 0));
  const isFixed = (axis: number) => lows[axis] === highs[axis];
  const entries = axes.map((_, axis) =>
    isFixed(axis) ? String(lows[axis]) : `${lows[axis]}:${(highs[axis] ?? 0) + 1}`,
  );
  const moving = axes.flatMap((along, axis) =>
    isFixed(axis) ? [] : [`[${along.map((index) => index - (lows[axis] ?? 0)).join(", ")}]`],
  );
  const picked = moving.length === 0 ? "" : `[${moving.join(", ")}]`;
  const read = perChannel(
    profile.channels,
    profile.channelAxis,
    (fix) => `a[${fix(entries).join(", ")}]${picked}`,
  );
  return named(url, profile.array) + read;
}

function seriesPython(url: string, series: Series): string {
  const step = series.step === 1 ? ":" : `::${series.step}`;
  const entries = series.index.map((index, axis) => (axis === series.timeAxis ? step : String(index)));
  return (
    named(url, series.array) +
    perChannel(series.channels, series.channelAxis, (fix) => `a[${fix(entries).join(", ")}]`)
  );
}

function regionPython(url: string, region: Region): string {
  const entries = region.selection.map(([start, end]) => `${start}:${end}`);
  if (region.mask === "all")
    return (
      named(url, region.array) +
      perChannel(
        region.channels,
        region.channelAxis,
        (fix) => `v = a[${fix(entries).join(", ")}]; np.nanmean(v), np.nanstd(v)`,
      )
    );
  const { spans } = region;
  if (!spans) return `${named(url, region.array)}# ${texts.measured.tooManyElements}`;
  const rows = spans.rows.map((row) => `(${row.join(", ")})`).join(", ");
  const cells = entries.map((entry, axis) =>
    axis === spans.axes[0] ? "i" : axis === spans.axes[1] ? "j:k" : entry,
  );
  return (
    named(url, region.array) +
    perChannel(
      region.channels,
      region.channelAxis,
      (fix) =>
        `v = np.concatenate([a[${fix(cells).join(", ")}].ravel() for i, j, k in [${rows}]]); np.nanmean(v), np.nanstd(v)`,
    )
  );
}
