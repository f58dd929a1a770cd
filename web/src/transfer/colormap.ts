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
