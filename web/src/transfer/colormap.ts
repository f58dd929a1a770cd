//! Color maps: tables of 256 sRGB colors, given by the server so that the page and the renderer agree.

import { isObject, type Json } from "../json.ts";

const ENTRIES = 256;
/** Maximum number of maps that the page offers. */
const MAX_MAPS = 64;

/** 256 colors, three bytes each. */
export type Colormap = Uint8Array;

/** Reads `{name: base64 of 768 bytes}`; entries that do not fit are left out. */
export function parseColormaps(value: Json): ReadonlyMap<string, Colormap> {
  const maps = new Map<string, Colormap>();
  if (!isObject(value)) return maps;
  for (const [name, text] of Object.entries(value).slice(0, MAX_MAPS)) {
    const table = typeof text === "string" ? decode(text) : null;
    if (table) maps.set(name, table);
  }
  return maps;
}

function decode(base64: string): Colormap | null {
  try {
    const binary = atob(base64);
    return binary.length === 3 * ENTRIES ? Uint8Array.from(binary, (c) => c.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

/** End of the name of a reversed map. */
const REVERSED = "_r";

/** The name of a map without the end that reverses it, and whether it is reversed. */
export function mapDirection(name: string): { readonly base: string; readonly isReversed: boolean } {
  const isReversed = name.endsWith(REVERSED);
  return { base: isReversed ? name.slice(0, -REVERSED.length) : name, isReversed };
}

/** The colors of a transfer function's map, in the direction of use. */
export function findColormap(
  maps: ReadonlyMap<string, Colormap>,
  { map, reversed }: { readonly map: string; readonly reversed?: boolean },
): Colormap | undefined {
  const { base, isReversed } = mapDirection(map);
  const table = maps.get(base);
  return table && isReversed !== (reversed ?? false) ? flipped(table) : table;
}

const flippedMaps = new WeakMap<Colormap, Colormap>();

function flipped(table: Colormap): Colormap {
  const known = flippedMaps.get(table);
  if (known) return known;
  const turned = new Uint8Array(table.length);
  for (let i = 0; i < table.length; i += 3) turned.set(table.subarray(i, i + 3), table.length - 3 - i);
  flippedMaps.set(table, turned);
  return turned;
}

/** The color at `fraction` as CSS; gray by value while the table is not known. */
export function cssColor(map: Colormap | undefined, fraction: number): string {
  const entry = Math.round(Math.min(Math.max(fraction, 0), 1) * (ENTRIES - 1));
  const channel = (i: number) => map?.[3 * entry + i] ?? 40 + Math.round((entry * 200) / ENTRIES);
  return `rgb(${channel(0)} ${channel(1)} ${channel(2)})`;
}

/** `stops` colors as a CSS gradient from left to right. */
export function cssGradient(map: Colormap | undefined, stops = 24): string {
  const colors = Array.from({ length: stops }, (_, i) => cssColor(map, i / (stops - 1)));
  return `linear-gradient(to right, ${colors.join(", ")})`;
}
