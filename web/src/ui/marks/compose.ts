//! All marks of a view as shapes: the marks that belong to a place (axes, letters) first, then those that can yield. Pure.

import type { State } from "../../app/state.ts";
import { statsShown } from "../../app/state.ts";
import type { Size } from "../../camera/camera.ts";
import { calendarOf } from "../../dataset/labels.ts";
import type { ArrayInfo, Dataset } from "../../dataset/dataset.ts";
import { axisMarks, boxOutline } from "./axes.ts";
import { arrowShapes } from "../vectors/field.ts";
import { captionMarks, positionTexts, titleText } from "./caption.ts";
import { colorKey, colorMarks, layerKey } from "./color-bar.ts";
import { convexHull, Layout } from "./layout.ts";
import { lensOf } from "./lens.ts";
import { orientationMarks } from "./orientation.ts";
import { scaleMarks } from "./scale-bar.ts";
import type { MarkSettings } from "./settings.ts";
import type { Box, Measure, Shape } from "./shapes.ts";
import { volumeOf } from "./volume.ts";

/** Calendar of the time axis of an array. */
function calendarOfTime(dataset: Dataset, array: ArrayInfo): string {
  const time = array.axes.find((axis) => / since /i.test(axis.units));
  return time ? calendarOf(dataset, array, time) : array.calendar;
}

/**
 * Marks of a state in a picture of this size, pixels of the page, beside `panels`. A stereo pair has none that belong to a place, because
 * it shows two.
 */
export function composeMarks(
  state: State,
  settings: MarkSettings,
  size: Size,
  panels: readonly Box[],
  measure: Measure,
): Shape[] {
  const { dataset, array, view } = state;
  if (!dataset || !array) return [];
  const volume = volumeOf(array, calendarOfTime(dataset, array));
  const lens = view.camera && view.stereo === null ? lensOf(view.camera, size) : null;
  const corners = volume && lens ? boxOutline(volume, lens, view.clip) : null;
  const layout = new Layout(size, panels, corners ? convexHull(corners) : []);
  const shapes: Shape[] = [];
  const { field } = state.arrows;
  if (field && lens) shapes.push(...arrowShapes(field, lens, layout, measure));
  if (settings.axes && volume && lens) shapes.push(...axisMarks(volume, lens, view.clip, layout, measure));
  if (settings.orientation && volume && lens) shapes.push(...orientationMarks(volume, lens, layout, measure));
  if (settings.title || settings.time) {
    const title = settings.title ? [{ text: titleText(dataset, array), isBold: true }] : [];
    const times = settings.time ? positionTexts(dataset, array, view) : [];
    shapes.push(
      ...captionMarks([...title, ...times.map((text) => ({ text, isBold: false }))], layout, measure),
    );
  }
  if (settings.colors) {
    const key = colorKey(dataset, array, view, statsShown(state)?.stats ?? null, state.colormaps);
    const ofLayer = layerKey(dataset, view.layers, state.colormaps);
    for (const one of [key, ofLayer])
      if (one) shapes.push(...colorMarks(one, state.colormaps, layout, measure));
  }
  if (settings.scale && volume && lens) shapes.push(...scaleMarks(volume, lens, layout, measure));
  return shapes;
}
