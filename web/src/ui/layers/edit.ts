//! Changes of the list of layers, without a page: the last layer is drawn over the others.

import { texts } from "../../texts/texts.ts";
import { isContinuous, isDrawable, spaceShape, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import { worldBox } from "../../dataset/world.ts";
import { MAX_LAYERS, type Layer } from "../../view/schema.ts";

export type Layers = readonly Layer[];

/** Opacity of a new layer: what is below can still be seen. */
const NEW_OPACITY = 0.5;

/** Name of a layer for people. */
export function layerTitle(layer: Layer): string {
  return layer.name || layer.array || layer.geometry || texts.layers.unnamed;
}

export function isVisible(layer: Layer): boolean {
  return layer.visible ?? true;
}

export function opacityOf(layer: Layer): number {
  return layer.opacity ?? 1;
}

/** Adds an array over all other layers; labels are filled. Unchanged if the list is full. */
export function addArray(layers: Layers, array: ArrayInfo): Layers {
  if (layers.length >= MAX_LAYERS) return layers;
  const labels = isContinuous(array) ? {} : { labels: "filled" as const };
  const own = array.meaning === "labels" ? labels : {};
  return [...layers, { array: array.name, visible: true, opacity: NEW_OPACITY, ...own }];
}

export function setLayer(layers: Layers, index: number, fields: Partial<Layer>): Layers {
  return layers.map((layer, i) => (i === index ? { ...layer, ...fields } : layer));
}

export function removeLayer(layers: Layers, index: number): Layers {
  return layers.filter((_, i) => i !== index);
}

/** Moves a layer over (`by` 1) or under (-1) its neighbor. Unchanged at the ends. */
export function moveLayer(layers: Layers, index: number, by: 1 | -1): Layers {
  const [own, other] = [layers[index], layers[index + by]];
  if (!own || !other) return layers;
  return layers.map((layer, i) => (i === index ? other : i === index + by ? own : layer));
}

/** Arrays of a data set that lie in the space of the one shown, and can be drawn over it. */
export function fittingArrays(dataset: Dataset, shown: ArrayInfo): ArrayInfo[] {
  return dataset.arrays.filter((array) => array.number !== shown.number && fits(array, shown));
}

function fits(array: ArrayInfo, shown: ArrayInfo): boolean {
  const thick = spaceShape(array).filter((size) => size > 1).length;
  const areOfOneSpace =
    array.worldUnits === "" || shown.worldUnits === "" || array.worldUnits === shown.worldUnits;
  return isDrawable(array) && thick >= 2 && areOfOneSpace && meet(array, shown);
}

/** True if the boxes around two arrays in world space meet. */
function meet(a: ArrayInfo, b: ArrayInfo): boolean {
  const [own, other] = [worldBox(a), worldBox(b)];
  if (!own || !other) return false;
  return own.center.every((center, axis) => {
    const apart = Math.abs(center - (other.center[axis] ?? 0));
    return apart < ((own.extent[axis] ?? 0) + (other.extent[axis] ?? 0)) / 2;
  });
}
