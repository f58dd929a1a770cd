//! Sizes of saved pictures and films, and the places of several pictures in one. Pure.

import { texts } from "../../texts/texts.ts";
import type { Size } from "../../camera/camera.ts";

/** Largest side of a picture, pixels. */
export const MAX_SIDE = 16_384;
/** Largest number of pixels of a film. */
export const MAX_FILM_PIXELS = 4096 * 2304;
/** Smallest side of a film, pixels. */
const MIN_FILM_SIDE = 16;

/** A choice of a size. */
export interface SizeChoice {
  readonly id: string;
  readonly label: string;
  readonly size: Size;
}

/** Text of a size. */
export function sizeText({ width, height }: Size): string {
  return `${width} × ${height}`;
}

/** Sizes for a picture with the shape of the window. */
export function pictureSizes(screen: Size): readonly SizeChoice[] {
  const times = (factor: number): Size => scaled(screen, factor);
  const largest = scaled(screen, MAX_SIDE / Math.max(screen.width, screen.height, 1));
  const choices: readonly (readonly [id: string, label: string, size: Size])[] = [
    ["1", texts.save.sizes.screen, times(1)],
    ["2", texts.save.sizes.twice, times(2)],
    ["4", texts.save.sizes.fourTimes, times(4)],
    ["most", texts.save.sizes.largest, largest],
  ];
  return choices
    .filter(([id, , size]) => id === "most" || Math.max(size.width, size.height) < MAX_SIDE)
    .map(([id, label, size]) => ({ id, label: `${label}: ${sizeText(size)}`, size }));
}

/** Sizes for a film: as on the screen, and the usual ones. */
export function filmSizes(screen: Size): readonly SizeChoice[] {
  const usual = [
    { width: 1280, height: 720 },
    { width: 1920, height: 1080 },
    { width: 3840, height: 2160 },
    { width: 1080, height: 1080 },
  ];
  const shown = filmSize(screen);
  return [
    { id: "screen", label: texts.save.asOnTheScreen(sizeText(shown)), size: shown },
    ...usual.map((size) => ({ id: sizeText(size), label: sizeText(size), size })),
  ];
}

/** The nearest size that a film can have: even, and not too large. */
export function filmSize(screen: Size): Size {
  const most = Math.sqrt(MAX_FILM_PIXELS / Math.max(1, screen.width * screen.height));
  const factor = Math.min(1, most);
  const even = (side: number) => Math.max(MIN_FILM_SIDE, 2 * Math.floor((side * factor) / 2));
  return { width: even(screen.width), height: even(screen.height) };
}

function scaled({ width, height }: Size, factor: number): Size {
  const side = (length: number) => Math.min(MAX_SIDE, Math.max(1, Math.round(length * factor)));
  return { width: side(width), height: side(height) };
}

/** Reads a side that somebody typed; null if a picture cannot have it. */
export function readSide(text: string): number | null {
  const side = Number(text);
  return Number.isSafeInteger(side) && side >= 1 && side <= MAX_SIDE ? side : null;
}

/** A place on the page, or in a picture, pixels. */
export interface Place extends Size {
  readonly left: number;
  readonly top: number;
}

/** The smallest place that contains others. */
export function around(places: readonly Place[]): Place {
  const left = Math.min(...places.map((place) => place.left));
  const top = Math.min(...places.map((place) => place.top));
  const right = Math.max(...places.map((place) => place.left + place.width));
  const bottom = Math.max(...places.map((place) => place.top + place.height));
  return { left, top, width: right - left, height: bottom - top };
}

/** Places on the page as places in a picture of `size`, in whole pixels. Places that do not overlap do not overlap there. */
export function placesIn(places: readonly Place[], size: Size): readonly Place[] {
  const whole = around(places);
  const across = size.width / Math.max(whole.width, 1e-9);
  const down = size.height / Math.max(whole.height, 1e-9);
  return places.map((place) => {
    const left = Math.round((place.left - whole.left) * across);
    const top = Math.round((place.top - whole.top) * down);
    const right = Math.round((place.left + place.width - whole.left) * across);
    const bottom = Math.round((place.top + place.height - whole.top) * down);
    return { left, top, width: right - left, height: bottom - top };
  });
}
