//! Values of a line as the node answers `measure` with the kind `plot`, and the text that saves them. Pure.

import { isArray, isCount, isObject, scalarOr, textOr, type Json } from "../../json.ts";
import { scalarText } from "../probe/place.ts";

export interface PlotColumns {
  readonly array: string;
  readonly units: string;
  readonly axis: string;
  readonly axisUnits: string;
  readonly axisNumber: number;
  /** Index per axis of the first value. */
  readonly index: readonly number[];
  readonly size: number;
  readonly count: number;
  /** Indices that a column covers: of more than one it has the least and the largest value. */
  readonly perColumn: number;
  readonly coordinate: readonly (number | null)[];
  readonly text: readonly (string | null)[];
  readonly low: readonly (number | null)[];
  readonly high: readonly (number | null)[];
  readonly missing: readonly number[];
  readonly stored: readonly string[];
}

/** Reads an answer. Throws an `Error` that names what is wrong. */
export function parseColumns(value: Json | undefined): PlotColumns {
  if (!isObject(value)) throw new Error("expected the values of a line, found something else");
  const list = (name: string) => {
    const found = value[name];
    if (!isArray(found)) throw new Error(`expected a list \`${name}\` in the values of a line`);
    return found;
  };
  const count = (name: string) => {
    const found = value[name];
    if (!isCount(found)) throw new Error(`expected a number \`${name}\` in the values of a line`);
    return found;
  };
  const low = list("low").map(numberOrNull);
  const columns = {
    array: textOr(value.array, ""),
    units: textOr(value.units, ""),
    axis: textOr(value.axis, "axis"),
    axisUnits: textOr(value.axis_units, ""),
    axisNumber: count("axis_number"),
    index: list("index").map((i) => (isCount(i) ? i : 0)),
    size: count("size"),
    count: count("count"),
    perColumn: Math.max(1, count("per_column")),
    coordinate: list("coordinate").map(numberOrNull),
    text: list("text").map((text) => (typeof text === "string" ? text : null)),
    low,
    high: list("high").map(numberOrNull),
    missing: list("missing").map((n) => (isCount(n) ? n : 0)),
    stored: list("stored").map(scalarText),
  };
  const isEven = [columns.coordinate, columns.text, columns.high, columns.missing].every(
    (other) => other.length === low.length,
  );
  if (!isEven) throw new Error("expected lists of the same length in the values of a line");
  return columns;
}

function numberOrNull(value: Json): number | null {
  const number = value === null ? Number.NaN : scalarOr(value, Number.NaN);
  return Number.isFinite(number) ? number : null;
}

/** Index of the first value of a column. */
export function indexOf(columns: PlotColumns, column: number): number {
  return (columns.index[columns.axisNumber] ?? 0) + column * columns.perColumn;
}

/** True if lines can share the rows of a table: their columns stand for the same indices of the same axis. */
export function areOfOnePart(lines: readonly PlotColumns[]): boolean {
  const [first] = lines;
  return first === undefined || lines.every((line) => isOfPart(line, first));
}

function isOfPart(line: PlotColumns, first: PlotColumns): boolean {
  return (
    line.axis === first.axis &&
    indexOf(line, 0) === indexOf(first, 0) &&
    line.perColumn === first.perColumn &&
    line.low.length === first.low.length
  );
}

/** Returns the shown values of lines of one part as CSV: one row for each column of the plot, which has extremes where it stands for several indices. */
export function columnsCsv(all: readonly PlotColumns[]): string {
  const [first] = all;
  if (!first) return "";
  const lines = all.filter((line) => isOfPart(line, first));
  const hasText = first.text.some((text) => text !== null);
  const isExact = lines.every(({ perColumn }) => perColumn === 1);
  const head = [
    `${first.axis} index`,
    withUnits(first.axis, first.axisUnits),
    ...(hasText ? [`${first.axis} date`] : []),
  ];
  const names = lines.flatMap((line) => {
    const name = withUnits(line.array, line.units);
    return isExact ? [name] : [`${name} least`, `${name} largest`];
  });
  const rows = first.low.map((_, column) => {
    const place = [
      String(indexOf(first, column)),
      numberText(first.coordinate[column]),
      ...(hasText ? [first.text[column] ?? ""] : []),
    ];
    const values = lines.flatMap((line) =>
      isExact
        ? [numberText(line.low[column])]
        : [numberText(line.low[column]), numberText(line.high[column])],
    );
    return [...place, ...values];
  });
  return [[...head, ...names], ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

const withUnits = (name: string, units: string) => (units === "" ? name : `${name} [${units}]`);
const numberText = (value: number | null | undefined) =>
  value === null || value === undefined ? "" : String(value);
const csvCell = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
