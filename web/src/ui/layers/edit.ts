//! Changes of the list of layers, without a page: the last layer is drawn over the others.

import { texts } from "../../texts/texts.ts";
import {
  isContinuous,
  isDrawable,
  isSpatial,
  spaceShape,
  type ArrayInfo,
  type Dataset,
} from "../../dataset/dataset.ts";
import { worldBox } from "../../dataset/world.ts";
import { mapOf } from "../../layout/space.ts";
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

/** Returns the layers with the color of geometry chosen for it: that of its file, or the viewer's. */
export function withoutColor(layers: Layers, index: number): Layers {
  return layers.map((layer, i) => {
    if (i !== index) return layer;
    const kept = Object.entries(layer).filter(([name]) => name !== "color");
    return Object.fromEntries(kept);
  });
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
  if (!isDrawable(array) || thick < 2 || !areOfOneSpace) return false;
  return isPlaced(array) && isPlaced(shown) ? meet(array, shown) : areAlike(array, shown);
}

/** True if the file places an array in space: by coordinates, by a transform or by units of lengths. */
function isPlaced(array: ArrayInfo): boolean {
  const hasSpace = array.axes.some(({ kind }) => isSpatial(kind));
  const hasCoordinates = array.axes.some(
    ({ kind, coordinates }) => isSpatial(kind) && coordinates.kind !== "index",
  );
  const isTransformed = mapOf(array).some((row, i) => row.some((entry, k) => entry !== (i === k ? 1 : 0)));
  const isNamed = array.worldUnits !== "" || array.hasCoordinates === true;
  return hasSpace && (hasCoordinates || isTransformed || isNamed);
}

/**
 * True for arrays of the same shape. Arrays that nothing places in space are tables of identifiers or boxes as often as fields: such a
 * one lies over an array only if it has as many voxels along each axis.
 */
function areAlike(a: ArrayInfo, b: ArrayInfo): boolean {
  const hasSpace = (array: ArrayInfo) => array.axes.some(({ kind }) => isSpatial(kind));
  return hasSpace(a) === hasSpace(b) && JSON.stringify(spaceShape(a)) === JSON.stringify(spaceShape(b));
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
