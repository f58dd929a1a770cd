//! Scale bar: a round length in the world, at the depth of the camera's target, with the prefix that fits. Pure.

import { texts } from "../../texts/texts.ts";
import { dot, normalize } from "../../camera/vec.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import { isHeadOn } from "./axes.ts";
import type { Layout } from "./layout.ts";
import type { Lens } from "./lens.ts";
import { LINE, type Measure, type Shape } from "./shapes.ts";
import { degreeText, minus, roundBelow } from "./ticks.ts";
import type { Volume } from "./volume.ts";

/** Largest share of the picture's width, and largest width in pixels. */
const MAX_SHARE = 0.3;
const MAX_PIXELS = 160;
/** Kilometers of a degree of latitude. */
const DEGREE_KM = 111.195;
/** Latitude beyond which a map's scale changes too much within a bar. */
const MAX_LATITUDE = 75;

/** Meters of units of length, by their names in files. */
const METERS: ReadonlyMap<string, number> = new Map([
  ...units(1e-10, "Å", "angstrom", "angstroms", "Angstrom"),
  ...units(1e-9, "nm", "nanometer", "nanometers", "nanometre"),
  ...units(1e-6, "um", "µm", "μm", "micron", "microns", "micrometer", "micrometers", "micrometre"),
  ...units(1e-3, "mm", "millimeter", "millimeters", "millimetre"),
  ...units(1e-2, "cm", "centimeter", "centimeters", "centimetre"),
  ...units(1, "m", "meter", "meters", "metre", "metres"),
  ...units(1e3, "km", "kilometer", "kilometers", "kilometre"),
]);

function units(meters: number, ...names: string[]): [string, number][] {
  return names.map((name) => [name, meters]);
}

/** Prefixes with their least length, in meters. From 10 cm on lengths are in centimeters, from 1 m in meters. */
const PREFIXES: readonly (readonly [least: number, meters: number, name: string])[] = [
  [1e3, 1e3, "km"],
  [1, 1, "m"],
  [0.1, 1e-2, "cm"],
  [1e-3, 1e-3, "mm"],
  [1e-6, 1e-6, "µm"],
  [0, 1e-9, "nm"],
];
/** Lengths outside of these limits keep their units, in which they are written with an exponent. */
const LIMITS = [1e-11, 1e9] as const;

/** Text of a length: 0.002 of `mm` is `2 µm`; unknown units stay. */
export function lengthText(length: number, worldUnits: string): string {
  const meters = length * (METERS.get(worldUnits.trim()) ?? Number.NaN);
  if (!(meters >= LIMITS[0] && meters < LIMITS[1]))
    return minus(`${formatNumber(length)} ${formatUnits(worldUnits)}`.trimEnd());
  const [, unit = 1, name = "m"] = PREFIXES.find(([least]) => meters >= least * (1 - 1e-9)) ?? [];
  return `${String(Number((meters / unit).toPrecision(3)))} ${name}`;
}

/** Length of the bar in pixels, and its text; null if no length is true. */
export function scaleBar(
  volume: Volume,
  lens: Lens,
  mostPixels: number,
): { readonly pixels: number; readonly text: string } | null {
  if (volume.isMap) return mapBar(volume, lens, mostPixels);
  const headOn = isHeadOn(volume, lens);
  const isAlongSight = (step: (typeof volume.axes)[number]["step"]) =>
    Math.abs(dot(normalize(step), lens.forward)) > 0.9998;
  const shown = volume.axes.filter(({ step, count }) => count > 1 && !(headOn && isAlongSight(step)));
  if (!shown.every(({ isToScale }) => isToScale) || /degree/i.test(volume.worldUnits)) return null;
  const most = lens.worldPerPixel * mostPixels;
  if (!(most > 0) || !Number.isFinite(most)) return null;
  const length = roundBelow(most);
  const isVoxels = volume.worldUnits === "" && shown.every(({ quantity }) => quantity === "index");
  return {
    pixels: length / lens.worldPerPixel,
    text: isVoxels ? texts.marks.voxels(formatNumber(length)) : lengthText(length, volume.worldUnits),
  };
}

/** On a map of degrees a length is true at one latitude only, that of the center; there is none for other directions of sight. */
function mapBar(volume: Volume, lens: Lens, mostPixels: number): { pixels: number; text: string } | null {
  const latitude = lens.camera.target[1];
  const isUpright = Math.abs(lens.right[0]) > 0.9998 && isHeadOn(volume, lens);
  if (!isUpright || Math.abs(latitude) > MAX_LATITUDE) return null;
  const kmPerPixel = lens.worldPerPixel * DEGREE_KM * Math.cos((latitude * Math.PI) / 180);
  const length = roundBelow(kmPerPixel * mostPixels);
  if (!(length > 0) || !Number.isFinite(length)) return null;
  // More than a quarter around the Earth is no length that a bar shows.
  if (length > 10_000) return null;
  const text = texts.marks.lengthAt(lengthText(length, "km"), degreeText(latitude, "latitude"));
  return { pixels: length / kmPerPixel, text };
}

export function scaleMarks(volume: Volume, lens: Lens, layout: Layout, measure: Measure): Shape[] {
  const most = Math.min(MAX_PIXELS, (layout.free.right - layout.free.left) * MAX_SHARE);
  const bar = scaleBar(volume, lens, most);
  if (!bar) return [];
  const wide = Math.max(bar.pixels, measure(bar.text));
  const size = [wide, LINE + 10] as const;
  const notOverData = (box: Parameters<Layout["take"]>[0]) => !layout.isOverData(box);
  const place =
    layout.corner(["left", "bottom"], size, notOverData) ?? layout.corner(["left", "bottom"], size);
  if (!place) return [];
  layout.take(place);
  const y = place.bottom - 3;
  const middle = (place.left + place.right) / 2;
  const [left, right] = [middle - bar.pixels / 2, middle + bar.pixels / 2];
  const line = (x1: number, y1: number, x2: number, y2: number): Shape => ({
    kind: "line",
    from: { x: x1, y: y1 },
    to: { x: x2, y: y2 },
    width: 2,
  });
  return [
    line(left, y, right, y),
    line(left, y - 4, left, y + 1),
    line(right, y - 4, right, y + 1),
    { kind: "text", at: { x: middle, y: place.top + LINE / 2 }, text: bar.text, anchor: "middle" },
  ];
}
