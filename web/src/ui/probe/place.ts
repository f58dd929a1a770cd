//! Part of the data at a position in a picture: the answer of `pick`, read from JSON.

import { isArray, isCount, isFinite, isObject, scalarOr, textOr, type Json } from "../../json.ts";
import { MAX_LAYERS, type Vec3 } from "../../view/schema.ts";

export type Hit = "nothing" | "volume" | "extreme" | "surface" | "slice" | "image";
const HITS: readonly Hit[] = ["nothing", "volume", "extreme", "surface", "slice", "image"];

/** Position along one axis of the stored array. */
export interface AxisPosition {
  readonly name: string;
  readonly kind: string;
  readonly index: number;
  readonly size: number;
  /** Null if the file has no coordinates. */
  readonly coordinate: number | null;
  readonly units: string;
  /** Date or name of a channel. */
  readonly text: string | null;
}

/** Stored element. */
export interface PickedElement {
  readonly channel: string | null;
  readonly index: readonly number[];
  /** Value as stored, as text: 64-bit integers are exact. */
  readonly stored: string;
  readonly decoded: number | null;
  /** The decoded value in the fewest digits. */
  readonly text: string;
  readonly missing: string | null;
  readonly label: string | null;
}

export interface PickedValue {
  readonly array: string;
  readonly dtype: string;
  readonly units: string;
  readonly axes: readonly AxisPosition[];
  readonly coordinates: readonly {
    readonly name: string;
    readonly coordinate: number;
    readonly units: string;
  }[];
  readonly level: number;
  readonly elements: readonly PickedElement[];
  readonly drawn: { readonly level: number; readonly value: number } | null;
  readonly note: string | null;
}

export interface PickedPlace {
  readonly hit: Hit;
  /** Number of the isosurface or slice, from 0. */
  readonly number: number | null;
  readonly world: Vec3 | null;
  readonly worldUnits: string;
  readonly value: PickedValue | null;
  readonly colorBy: PickedValue | null;
  /** Values of the layers that reach the place, from the first to the last. */
  readonly layers: readonly { readonly layer: number; readonly value: PickedValue }[];
}

/** All values of a place: of the array, of the one that gives the colors, of layers. */
export function placeValues({ value, colorBy, layers }: PickedPlace): PickedValue[] {
  return [value, colorBy, ...layers.map((layer) => layer.value)].filter((own) => own !== null);
}

/** Reads the answer of `pick`. Throws an `Error` that names what is wrong. */
export function parsePicks(answer: Json): PickedPlace[] {
  const picks = isObject(answer) ? answer.picks : undefined;
  if (!isArray(picks)) throw new Error("expected what the picture shows, found another answer");
  return picks.map(parsePlace);
}

function parsePlace(place: Json): PickedPlace {
  const hit = isObject(place) ? HITS.find((known) => known === place.hit) : undefined;
  if (!isObject(place) || !hit) throw new Error("expected a place in the picture, found something else");
  return {
    hit,
    number: isCount(place.number) ? place.number : null,
    world: parsePoint(place.world),
    worldUnits: textOr(place.world_units, ""),
    value: parseValue(place.value),
    colorBy: parseValue(place.color_by),
    layers: parseLayers(place.layers),
  };
}

function parseLayers(value: Json | undefined): PickedPlace["layers"] {
  if (!isArray(value)) return [];
  return value.slice(0, MAX_LAYERS).flatMap((own) => {
    if (!isObject(own) || !isCount(own.layer)) return [];
    const read = parseValue(own.value);
    return read ? [{ layer: own.layer, value: read }] : [];
  });
}

/** Reads a point of world space; null if it is none. */
function parsePoint(value: Json | undefined): Vec3 | null {
  if (!isArray(value) || value.length !== 3) return null;
  const [x, y, z] = value;
  return isFinite(x) && isFinite(y) && isFinite(z) ? [x, y, z] : null;
}

function parseValue(value: Json | undefined): PickedValue | null {
  if (!isObject(value)) return null;
  const list = (items: Json | undefined) => (isArray(items) ? items.filter(isObject) : []);
  const { drawn } = value;
  return {
    array: textOr(value.array, ""),
    dtype: textOr(value.dtype, ""),
    units: textOr(value.units, ""),
    axes: list(value.axes).map((axis) => ({
      name: textOr(axis.name, ""),
      kind: textOr(axis.kind, ""),
      index: isCount(axis.index) ? axis.index : 0,
      size: isCount(axis.size) ? axis.size : 0,
      coordinate: axis.coordinate === null ? null : scalarOr(axis.coordinate, Number.NaN),
      units: textOr(axis.units, ""),
      text: typeof axis.text === "string" ? axis.text : null,
    })),
    coordinates: list(value.coordinates).map((own) => ({
      name: textOr(own.name, ""),
      coordinate: scalarOr(own.coordinate, Number.NaN),
      units: textOr(own.units, ""),
    })),
    level: isCount(value.level) ? value.level : 0,
    elements: list(value.elements).map((element) => ({
      channel: typeof element.channel === "string" ? element.channel : null,
      index: isArray(element.index) ? element.index.filter(isCount) : [],
      stored: scalarText(element.stored),
      decoded: element.decoded === null ? null : scalarOr(element.decoded, Number.NaN),
      text: textOr(element.text, ""),
      missing: typeof element.missing === "string" ? element.missing : null,
      label: typeof element.label === "string" ? element.label : null,
    })),
    drawn:
      isObject(drawn) && isCount(drawn.level) && isFinite(drawn.value)
        ? { level: drawn.level, value: drawn.value }
        : null,
    note: typeof value.note === "string" ? value.note : null,
  };
}

/** Text of a number, or of one that JSON lacks. */
export function scalarText(value: Json | undefined): string {
  return typeof value === "number" || typeof value === "string" ? String(value) : "";
}
