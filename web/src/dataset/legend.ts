//! Names and colors of labels and channels, and the kind of world space, from the attributes of an array.

import { texts } from "../texts/texts.ts";
import {
  isArray,
  isCount,
  isFinite,
  isObject,
  scalarOr,
  textOr,
  type Json,
  type JsonObject,
} from "../json.ts";

type Rgb = readonly [number, number, number];

/** A label by its value, or a channel by its index. */
export interface LegendEntry {
  readonly value: number;
  readonly name: string;
  /** sRGB; null: the color map's. */
  readonly color: Rgb | null;
}

export interface ArrayLegend {
  readonly labels: readonly LegendEntry[];
  /** Channels that are active. */
  readonly channels: readonly LegendEntry[];
  /** True if axes of world space lead to the right, to the front and up of a person. */
  readonly isAnatomical: boolean;
}

export const NO_LEGEND: ArrayLegend = { labels: [], channels: [], isAnatomical: false };

/** Maximum number of labels and of channels that are read: atlases have some hundreds. */
const MAX_ENTRIES = 4096;
/** Attribute that states the space of the world, and its value for anatomical space. */
const SPACE_ATTRIBUTE = "space";
const ANATOMICAL = "right-anterior-superior";
const PRIMARIES: ReadonlyMap<string, Rgb> = new Map<string, Rgb>([
  ["red", [255, 0, 0]],
  ["green", [0, 255, 0]],
  ["blue", [0, 0, 255]],
]);

export function parseLegend(attributes: JsonObject): ArrayLegend {
  return {
    labels: labels(attributes).slice(0, MAX_ENTRIES),
    channels: channels(attributes).slice(0, MAX_ENTRIES),
    isAnatomical: attributes[SPACE_ATTRIBUTE] === ANATOMICAL,
  };
}

/** Value of an attribute: those with a type are `{"type": ..., "value": ...}`. */
function valueOf(attribute: Json | undefined): Json {
  if (isObject(attribute) && typeof attribute.type === "string" && attribute.value !== undefined)
    return attribute.value;
  return attribute ?? null;
}

function labels(attributes: JsonObject): LegendEntry[] {
  const found = [ofFlags(attributes), ofImageLabel(attributes), ofSegments(attributes)];
  return found.find((list) => list.length > 0) ?? [];
}

/** CF: `flag_values` and `flag_meanings`. */
function ofFlags(attributes: JsonObject): LegendEntry[] {
  const values = valueOf(attributes.flag_values);
  const names = textOr(valueOf(attributes.flag_meanings), "")
    .split(/\s+/)
    .filter((name) => name !== "");
  const list = isArray(values) ? values : [values];
  return names.flatMap((name, i) => {
    const value = scalarOr(list[i], Number.NaN);
    return Number.isFinite(value) ? [{ value, name: name.replaceAll("_", " "), color: null }] : [];
  });
}

/** OME-Zarr: colors and properties of `image-label`. */
function ofImageLabel(attributes: JsonObject): LegendEntry[] {
  const about = valueOf(attributes["image-label"]);
  if (!isObject(about)) return [];
  const listed = (list: Json | undefined) =>
    isArray(list) ? list.slice(0, MAX_ENTRIES).filter(isObject) : [];
  const entries = new Map<number, { name: string; color: Rgb | null }>();
  for (const entry of listed(about.colors)) {
    const value = entry["label-value"];
    if (isFinite(value)) entries.set(value, { name: "", color: bytes(entry.rgba) });
  }
  for (const entry of listed(about.properties)) {
    const value = entry["label-value"];
    const names = ["name", "label", "class", "type"].map((key) => textOr(entry[key], ""));
    const name = names.find((text) => text !== "") ?? "";
    if (isFinite(value)) entries.set(value, { name, color: entries.get(value)?.color ?? null });
  }
  const shown = Array.from(entries, ([value, { name, color }]) => ({ value, name, color }));
  return shown.map((entry) => ({
    ...entry,
    name: entry.name === "" ? texts.values.label(entry.value) : entry.name,
  }));
}

function bytes(value: Json | undefined): Rgb | null {
  const [r, g, b] = isArray(value) ? value : [];
  const isByte = (part: Json | undefined): part is number => isCount(part) && part < 256;
  return isByte(r) && isByte(g) && isByte(b) ? [r, g, b] : null;
}

/** Segmentations of 3D Slicer in NRRD: `Segment0_Name`, `Segment0_LabelValue`, `Segment0_Color`. */
function ofSegments(attributes: JsonObject): LegendEntry[] {
  const list: LegendEntry[] = [];
  for (let i = 0; i < MAX_ENTRIES; i += 1) {
    const name = attributes[`Segment${i}_Name`];
    if (typeof name !== "string") break;
    const value = Number(textOr(attributes[`Segment${i}_LabelValue`], String(i + 1)));
    const parts = textOr(attributes[`Segment${i}_Color`], "").trim().split(/\s+/).map(Number);
    const [r = Number.NaN, g = Number.NaN, b = Number.NaN] = parts.map((part) => Math.round(part * 255));
    const isColor = [r, g, b].every((part) => part >= 0 && part <= 255);
    if (Number.isFinite(value)) list.push({ value, name, color: isColor ? [r, g, b] : null });
  }
  return list;
}

/** Active channels of OME-Zarr with their colors, or primaries by their names. */
function channels(attributes: JsonObject): LegendEntry[] {
  const omero = valueOf(attributes.omero);
  const listed = isObject(omero) && isArray(omero.channels) ? omero.channels : [];
  const found = listed.slice(0, MAX_ENTRIES).flatMap((channel, value): LegendEntry[] => {
    if (!isObject(channel) || channel.active === false) return [];
    const label = textOr(channel.label, "");
    return [
      { value, name: label === "" ? texts.values.channel(value) : label, color: hexadecimal(channel.color) },
    ];
  });
  if (found.some(({ color }) => color !== null)) return found;
  const names = valueOf(attributes.channels);
  if (!isArray(names)) return [];
  return names.flatMap((name, value) => {
    const color = PRIMARIES.get(textOr(name, ""));
    return color ? [{ value, name: textOr(name, ""), color }] : [];
  });
}

function hexadecimal(value: Json | undefined): Rgb | null {
  const match = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})(?:[0-9a-f]{2})?$/i.exec(textOr(value, ""));
  if (!match) return null;
  const part = (i: number) => Number.parseInt(match[i] ?? "0", 16);
  return [part(1), part(2), part(3)];
}
