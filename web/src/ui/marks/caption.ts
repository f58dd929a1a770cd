//! Captions: the title, with data set and array, and the step of time with its date and the positions on other axes. Pure.

import { freeAxes, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import { calendarOf, positionTitle } from "../../dataset/labels.ts";
import type { View } from "../../view/schema.ts";
import type { Layout } from "./layout.ts";
import { LINE, type Measure, type Shape } from "./shapes.ts";

/** Maximum number of axes with a position. */
const MAX_AXES = 6;
/** Longest line, characters. */
const MAX_CHARACTERS = 120;

export function titleText(dataset: Dataset, array: ArrayInfo): string {
  return cut(
    [dataset.name, array.title === "" ? array.name : array.title].filter((t) => t !== "").join(" · "),
  );
}

/** Time and positions on the other axes, one line each: `2001-02-03 06:00`, `member 3 / 10`, `level 850 hPa`. */
export function positionTexts(dataset: Dataset, array: ArrayInfo, view: View): string[] {
  const axes = freeAxes(array).slice(0, MAX_AXES);
  // Time first.
  const sorted = axes.toSorted((a, b) => Number(b.axis.kind === "time") - Number(a.axis.kind === "time"));
  return sorted.map(({ axis, size }) => {
    const index = Math.min(axis.kind === "time" ? view.time : (view.at[axis.name] ?? 0), size - 1);
    const label = positionTitle(axis, index, calendarOf(dataset, array, axis), array.channels);
    const isNamed = axis.kind === "time" || (axis.kind === "channel" && array.channels.length > 0);
    if (label === "") return `${axis.name} ${index + 1} / ${size}`;
    const isBareNumber = /^[-\d.e]+( |$)/.test(label) && !/^-?\d+-\d\d/.test(label);
    return cut(isNamed && !isBareNumber ? label : `${axis.name} ${label}`);
  });
}

function cut(text: string): string {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS - 1)}…` : text;
}

/** Lines of text at the upper left; the first one is bold if it is the title. */
export function captionMarks(
  lines: readonly { readonly text: string; readonly isBold: boolean }[],
  layout: Layout,
  measure: Measure,
): Shape[] {
  const shown = lines.filter(({ text }) => text !== "");
  if (shown.length === 0) return [];
  const widest = Math.max(...shown.map(({ text }) => measure(text) * 1.08));
  const size = [widest, shown.length * LINE] as const;
  const notOverData = (box: Parameters<Layout["take"]>[0]) => !layout.isOverData(box);
  const place = layout.corner(["left", "top"], size, notOverData) ?? layout.corner(["left", "top"], size);
  if (!place) return [];
  layout.take(place);
  return shown.map(({ text, isBold }, i) => ({
    kind: "text",
    at: { x: place.left, y: place.top + (i + 0.5) * LINE },
    text,
    anchor: "start",
    isBold,
  }));
}
