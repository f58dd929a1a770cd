//! The view: what is looked at and how. Schema 1, the same value in a link's fragment, in the session and in
//! `corridor render`. Only types and constants; `parse.ts` reads it, `fragment.ts` puts it into a link.

import type { Json } from "../json.ts";

export type Vec3 = readonly [number, number, number];

/** `fov_y_rad`: full vertical angle; `height_world`: height of the picture in world units. */
export type Projection =
  | { readonly perspective: { readonly fov_y_rad: number } }
  | { readonly orthographic: { readonly height_world: number } };

/** In world space. May carry fields of a newer schema, as may [`Transfer`] and [`ColorBy`]. */
export interface Camera {
  readonly eye: Vec3;
  readonly target: Vec3;
  readonly up: Vec3;
  readonly projection: Projection;
}

/** A value and its opacity (0 to 1) over one smallest voxel spacing of level 0. */
export type OpacityPoint = readonly [value: number, alpha: number];

/** Over decoded values. The color map spans `range`; opacity is linear between points, which are sorted. */
export interface Transfer {
  readonly range: readonly [low: number, high: number];
  readonly map: string;
  readonly opacity: readonly OpacityPoint[];
}

/** Another array whose values give all colors; its voxels lie at the same places. */
export interface ColorBy {
  readonly array: string;
  /** Index on its axes that are neither space nor time, by name; as in the view where not named. */
  readonly at: Readonly<Record<string, number>>;
  /** Decoded values at the ends of the color map; null: the server fills it in, as it does the map. */
  readonly range: readonly [low: number, high: number] | null;
  readonly map: string | null;
}

/** All places of one decoded value, as a lit surface; the opacity does not depend on voxels. */
export interface Surface {
  readonly value: number;
  /** sRGB, 0 to 255. */
  readonly color: Vec3;
  readonly opacity: number;
}

export const SPACE_AXES = ["x", "y", "z"] as const;
export type SpaceAxis = (typeof SPACE_AXES)[number];

/** A plane across an axis of the volume, opaque in the colors of the transfer function. */
export interface Slice {
  readonly axis: SpaceAxis;
  /** Index of level 0. */
  readonly at: number;
}

/**
 * Ways to draw the volume besides isosurfaces and slices: as the transfer function shows it, not at all, or as the
 * largest or the smallest value along each ray, in the color of that value, behind isosurfaces and slices.
 */
export const MODES = ["composite", "surfaces", "maximum", "minimum"] as const;
export type Mode = (typeof MODES)[number];
/** Those that show values, which have their own colors and no others. */
export const EXTREME_MODES: readonly Mode[] = ["maximum", "minimum"];

export interface View {
  /** Its name; empty: the only one. */
  readonly array: string;
  readonly time: number;
  /** Index on each axis that is neither space nor time, by name. */
  readonly at: Readonly<Record<string, number>>;
  /** A forced level; null: the viewer chooses. */
  readonly level: number | null;
  /** null: the server fills in a default. */
  readonly camera: Camera | null;
  readonly transfer: Transfer | null;
  /** null: the array's own values give the colors. */
  readonly color_by: ColorBy | null;
  readonly surfaces: readonly Surface[];
  readonly slices: readonly Slice[];
  readonly mode: Mode;
  /** Light what the transfer function shows; surfaces always are. */
  readonly shading: boolean;
  /** Draw the grids of an adaptive mesh as lines. */
  readonly grids: boolean;
  /** A stereo pair: distance of the eyes as a share of that to what they look at; null: one picture. */
  readonly stereo: number | null;
  /** Two corners in fractions of the volume. */
  readonly clip: readonly [Vec3, Vec3] | null;
  /** sRGB, 0 to 255. */
  readonly background: Vec3;
  /** Fields of a newer schema: kept, passed on, not understood. */
  readonly other: Readonly<Record<string, Json>>;
}

export type ViewPatch = Partial<View>;

export const SCHEMA_VERSION = 1;
/** Most control points of an opacity curve. */
export const MAX_OPACITY_POINTS = 256;
/** Most isosurfaces. */
export const MAX_SURFACES = 20;
/** Distance of the eyes, as a share of that to what they look at, where somebody asks for a pair. */
export const DEFAULT_PARALLAX = 1 / 30;
/** Largest such share. */
export const MAX_PARALLAX = 0.5;
/** Most slices. */
export const MAX_SLICES = 16;
/** Most named positions in `at`. */
export const MAX_POSITIONS = 16;

export const EMPTY_VIEW: View = {
  array: "",
  time: 0,
  at: {},
  level: null,
  camera: null,
  transfer: null,
  color_by: null,
  surfaces: [],
  slices: [],
  mode: "composite",
  shading: false,
  grids: false,
  stereo: null,
  clip: null,
  background: [13, 14, 18],
  other: {},
};
