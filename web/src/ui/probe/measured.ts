//! Measurements: the answers of `measure`, read from JSON.

import {
  isArray,
  isCount,
  isFinite,
  isObject,
  scalarOr,
  textOr,
  type Json,
  type JsonObject,
} from "../../json.ts";
import { scalarText } from "./place.ts";

/** Stored array that was measured. */
export interface MeasuredArray {
  readonly array: string;
  readonly units: string;
  readonly axes: readonly string[];
  readonly channelAxis: number | null;
  readonly worldUnits: string;
}

/** One line of a plot: values in order; `null` where there is none. */
export interface MeasuredValues {
  readonly channel: number | null;
  readonly name: string | null;
  readonly stored: readonly string[];
  readonly decoded: readonly (number | null)[];
  readonly missing: readonly boolean[];
}

export interface Profile extends MeasuredArray {
  readonly kind: "profile";
  readonly distance: readonly number[];
  readonly index: readonly (readonly number[] | null)[];
  readonly channels: readonly MeasuredValues[];
}

export interface Series extends MeasuredArray {
  readonly kind: "series";
  readonly timeAxis: number;
  readonly timeUnits: string;
  readonly index: readonly number[];
  readonly step: number;
  readonly time: readonly number[];
  readonly coordinate: readonly (number | null)[];
  readonly text: readonly (string | null)[];
  readonly channels: readonly MeasuredValues[];
}

export interface RegionStatistics {
  readonly channel: number | null;
  readonly name: string | null;
  readonly elements: number;
  readonly count: number;
  readonly missing: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly std: number | null;
}

export interface Region extends MeasuredArray {
  readonly kind: "region";
  /** Index of the first element and after the last, per axis. */
  readonly selection: readonly (readonly [start: number, end: number])[];
  readonly mask: "all" | "cells" | "box";
  /** Axes of the cells, and rows of them: index, first, after the last; null if there are too many or none. */
  readonly spans: {
    readonly axes: readonly [number, number];
    readonly rows: readonly (readonly [number, number, number])[];
  } | null;
  readonly channels: readonly RegionStatistics[];
}

/** Values at points. */
export interface PointValues extends MeasuredArray {
  readonly kind: "points";
  readonly index: readonly (readonly number[] | null)[];
  readonly channels: readonly MeasuredValues[];
}

/** Answers that the page shows as results. */
export type ShownMeasured = Profile | Series | Region;
export type Measured = ShownMeasured | PointValues;

/** Reads the result of a measurement of this kind. Throws an `Error` that names what is wrong. */
export function parseMeasured(kind: ShownMeasured["kind"], result: Json | undefined): ShownMeasured;
export function parseMeasured(kind: Measured["kind"], result: Json | undefined): Measured;
export function parseMeasured(kind: Measured["kind"], result: Json | undefined): Measured {
  if (!isObject(result)) throw new Error("expected the result of a measurement, found something else");
  const of = parseArray(result);
  const channels = isArray(result.channels) ? result.channels.filter(isObject) : [];
  switch (kind) {
    case "profile":
      return {
        kind,
        ...of,
        distance: numbers(result.distance),
        index: list(result.index).map((index) => (index === null ? null : counts(index))),
        channels: channels.map(parseValues),
      };
    case "points":
      return {
        kind,
        ...of,
        index: list(result.index).map((index) => (index === null ? null : counts(index))),
        channels: channels.map(parseValues),
      };
    case "series":
      return {
        kind,
        ...of,
        timeAxis: isCount(result.time_axis) ? result.time_axis : 0,
        timeUnits: textOr(result.time_units, ""),
        index: counts(result.index),
        step: isCount(result.step) ? result.step : 1,
        time: counts(result.time),
        coordinate: list(result.coordinate).map(scalarOrNull),
        text: list(result.text).map((text) => (typeof text === "string" ? text : null)),
        channels: channels.map(parseValues),
      };
    case "region":
      return { kind, ...of, ...parseRegion(result), channels: channels.map(parseStatistics) };
  }
}

function parseArray(result: JsonObject): MeasuredArray {
  return {
    array: textOr(result.array, ""),
    units: textOr(result.units, ""),
    axes: list(result.axes).map((name) => textOr(name, "")),
    channelAxis: isCount(result.channel_axis) ? result.channel_axis : null,
    worldUnits: textOr(result.world_units, ""),
  };
}

function parseValues(values: JsonObject): MeasuredValues {
  return {
    channel: isCount(values.channel) ? values.channel : null,
    name: typeof values.name === "string" ? values.name : null,
    stored: list(values.stored).map(scalarText),
    decoded: list(values.decoded).map(scalarOrNull),
    missing: list(values.missing).map((is) => is === true),
  };
}

function parseStatistics(values: JsonObject): RegionStatistics {
  const count = (value: Json | undefined) => (isCount(value) ? value : 0);
  return {
    channel: isCount(values.channel) ? values.channel : null,
    name: typeof values.name === "string" ? values.name : null,
    elements: count(values.elements),
    count: count(values.count),
    missing: count(values.missing),
    min: scalarOrNull(values.min),
    max: scalarOrNull(values.max),
    mean: scalarOrNull(values.mean),
    std: scalarOrNull(values.std),
  };
}

function parseRegion(result: JsonObject): Pick<Region, "selection" | "mask" | "spans"> {
  const selection = list(result.selection).map(counts);
  const { spans } = result;
  const axes = isObject(spans) ? counts(spans.axes) : [];
  const rows = isObject(spans) ? list(spans.rows).map(counts) : [];
  return {
    selection: selection.map(([start = 0, end = 0]) => [start, end] as const),
    mask: result.mask === "cells" || result.mask === "box" ? result.mask : "all",
    spans:
      axes.length === 2
        ? {
            axes: [axes[0] ?? 0, axes[1] ?? 0],
            rows: rows.map(([row = 0, first = 0, end = 0]) => [row, first, end] as const),
          }
        : null,
  };
}

function list(value: Json | undefined): readonly Json[] {
  return isArray(value) ? value : [];
}

function counts(value: Json | undefined): number[] {
  return list(value).filter(isCount);
}

function numbers(value: Json | undefined): number[] {
  return list(value).filter(isFinite);
}

function scalarOrNull(value: Json | undefined): number | null {
  return value === null || value === undefined ? null : scalarOr(value, Number.NaN);
}
