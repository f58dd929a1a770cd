//! Fields of a view: types, limits, defaults and controls. Made from crates/view/src/fields.rs by
//! `CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated`; change that file, not this one.

export type Vec3 = readonly [number, number, number];

/** A value and its opacity, 0 to 1. */
export type OpacityPoint = readonly [value: number, alpha: number];

/**
 * Perspective, by its full vertical angle in radians, or parallel rays, by the height of the picture in
 * world units.
 */
export type Projection =
  | { readonly perspective: { readonly fov_y_rad: number } }
  | { readonly orthographic: { readonly height_world: number } };

/** Camera in world space. May carry members of a newer schema. */
export interface Camera {
  /** Position of the eye. */
  readonly eye: Vec3;
  /** Point that it looks at. */
  readonly target: Vec3;
  /** Approximate up direction of the picture; any length. */
  readonly up: Vec3;
  /** Perspective or parallel. */
  readonly projection: Projection;
}

/**
 * Scale of the values of a transfer function. `linear`: Equal differences are equally far apart. `log`:
 * Equal ratios are equally far apart; values of 0 and less are transparent, or have the lowest color
 * where opacity is not used. The range must lie above 0. `symlog`: Logarithm on both sides of zero:
 * sign(v) log(1 + |v| / c), nearly linear up to c, a thousandth of the largest magnitude of the range.
 */
export const VALUE_SCALES = ["linear","log","symlog"] as const;
export type ValueScale = (typeof VALUE_SCALES)[number];

/** Transfer function over decoded values. May carry members of a newer schema. */
export interface Transfer {
  /** Values at the ends of the color map. */
  readonly range: readonly [low: number, high: number];
  /** Name of the color map; with `_r` at its end it is reversed. */
  readonly map: string;
  /** Whether the color map is reversed, in addition to `_r` in its name; false where omitted. */
  readonly reversed?: boolean;
  /** Scale of the values, for colors and between points of opacity; linear where omitted. */
  readonly scale?: ValueScale;
  /**
   * Opacity over one smallest voxel spacing of level 0, by value: points in ascending order, linear on
   * the scale between.
   */
  readonly opacity: readonly OpacityPoint[];
}

/**
 * Other array whose values determine all colors; its voxels have the same positions. May carry members
 * of a newer schema.
 */
export interface ColorBy {
  /** Its name. */
  readonly array: string;
  /** Index on its axes that are neither space nor time, by name; as in the view where not named. */
  readonly at: Readonly<Record<string, number>>;
  /** Decoded values at the ends of the color map; null: the server chooses. */
  readonly range: readonly [low: number, high: number] | null;
  /** Name of the color map; null: the server chooses. */
  readonly map: string | null;
}

/** Isosurface: all points with one decoded value. May carry members of a newer schema. */
export interface Surface {
  /** Decoded value. */
  readonly value: number;
  /** Color, sRGB. */
  readonly color: Vec3;
  /** Opacity, 0 to 1; it does not depend on the voxel spacing. */
  readonly opacity: number;
}

/**
 * Axis of the drawn volume. `x`: Axis x; the last axis of an array without spatial axes. `y`: Axis y, or
 * the one before. `z`: Axis z, or the one before that.
 */
export const SPACE_AXES = ["x","y","z"] as const;
export type SpaceAxis = (typeof SPACE_AXES)[number];

/**
 * Plane through the volume, opaque in the colors of the transfer function: across an axis, or with
 * `normal` in any direction. May carry members of a newer schema.
 */
export interface Slice {
  /** Axis that it lies across; of an oblique plane one that is roughly perpendicular, for older programs. */
  readonly axis: SpaceAxis;
  /** Index on that axis at level 0; between whole numbers values are interpolated, except for labels. */
  readonly at: number;
  /**
   * Direction perpendicular to an oblique plane, world space, of any length; `axis` and `at` are then
   * ignored.
   */
  readonly normal?: Vec3;
  /** Point of an oblique plane, world space; needed with `normal`. */
  readonly point?: Vec3;
  /** True if voxels are drawn as areas of one color; otherwise values are interpolated. */
  readonly nearest?: boolean;
  /** True if the plane is remembered but not drawn. */
  readonly hidden?: boolean;
}

/**
 * Drawing of the labels of a layer. `filled`: All voxels of a label. `outlined`: On planes and images
 * only voxels beside another label; in volumes as filled.
 */
export const LAYER_LABELS = ["filled","outlined"] as const;
export type LayerLabels = (typeof LAYER_LABELS)[number];

/**
 * Drawing of the faces of geometry. `solid`: Lit faces. `wireframe`: Edges of faces. `points`: Corners
 * of faces.
 */
export const LAYER_FACES = ["solid","wireframe","points"] as const;
export type LayerFaces = (typeof LAYER_FACES)[number];

/**
 * Layer over the array: another array or geometry; it has exactly one of `array` and `geometry`. May
 * carry members of a newer schema.
 */
export interface Layer {
  /** Name of the array. */
  readonly array?: string;
  /** Name of the geometry: surfaces, lines, points or texts. */
  readonly geometry?: string;
  /** Name in lists; that of the array or geometry where omitted. */
  readonly name?: string;
  /** False if the layer is remembered but not drawn. */
  readonly visible?: boolean;
  /** Opacity of the whole layer, 0 to 1; 1 where omitted. */
  readonly opacity?: number;
  /** Array: index on its axes that are neither space nor time, by name; as in the view where not named. */
  readonly at?: Readonly<Record<string, number>>;
  /** Color and opacity by value of the array, or of the vertices; null: chosen to suit the values. */
  readonly transfer?: Transfer | null;
  /** Array: its values are labels, drawn like this; where omitted, arrays of labels are filled. */
  readonly labels?: LayerLabels;
  /** Geometry: drawing of its faces; solid where omitted. */
  readonly drawn?: LayerFaces;
  /** Geometry: color where no values give colors, sRGB; chosen where omitted. */
  readonly color?: Vec3;
  /** Geometry: name of the values of its vertices that give the colors; null: none. */
  readonly by?: string | null;
  /** Geometry: width of points and lines, pixels; chosen where omitted. */
  readonly size?: number;
}

/**
 * Drawing of the volume besides isosurfaces and slices. `composite`: All that the transfer function
 * shows. `surfaces`: Nothing but isosurfaces and slices. `maximum`: Largest value along each ray, in its
 * color; opacity is not used. `minimum`: Smallest value along each ray, in its color; opacity is not
 * used.
 */
export const MODES = ["composite","surfaces","maximum","minimum"] as const;
export type Mode = (typeof MODES)[number];

/**
 * Arrangement of the pictures in the viewer. `space`: One three-dimensional picture. `image`: One plane,
 * seen head on with parallel rays. `planes`: Three orthogonal planes and a three-dimensional picture,
 * linked by a crosshair.
 */
export const LAYOUTS = ["space","image","planes"] as const;
export type Layout = (typeof LAYOUTS)[number];

/** Differences of one cell of a grid from the view. May carry members of a newer schema. */
export interface Cell {
  /** Name of the array; as in the view if missing. */
  readonly array?: string;
  /** Index on the time axis; as in the view if missing. */
  readonly time?: number;
  /** Index on axes that are neither space nor time, by name; as in the view where not named. */
  readonly at?: Readonly<Record<string, number>>;
}

/**
 * Grid of pictures of one data set; the first cell shows the view itself. May carry members of a newer
 * schema.
 */
export interface Grid {
  /** Number of rows, from 1. */
  readonly rows: number;
  /** Number of columns, from 1. */
  readonly columns: number;
  /** True (the default) if all cells have the camera of the view. */
  readonly tied?: boolean;
  /** Differences of the cells after the first, row by row. */
  readonly cells?: readonly Cell[];
}

/** Fields of a view; see docs/view.md. */
export interface ViewFields {
  /** Name of the array to draw; empty where there is only one. */
  readonly array: string;
  /** Index on the time axis. */
  readonly time: number;
  /** Index on each axis that is neither space nor time, by name; 0 where not named. */
  readonly at: Readonly<Record<string, number>>;
  /** Level to draw, 0 is full resolution; null: the finest that is visible and fits into memory. */
  readonly level: number | null;
  /** Camera in world space; null: one that sees the whole volume. */
  readonly camera: Camera | null;
  /** Transfer function: color and opacity by value; null: chosen to suit the values. */
  readonly transfer: Transfer | null;
  /**
   * Other array whose values determine all colors, including those of isosurfaces and slices; null: the
   * values of the drawn array. Visibility and opacity still come from the drawn array; where the other
   * array has no value, nothing is drawn. Not with mode `maximum` or `minimum`.
   */
  readonly color_by: ColorBy | null;
  /** Isosurfaces. */
  readonly surfaces: readonly Surface[];
  /** Slices across the axes of the volume. */
  readonly slices: readonly Slice[];
  /**
   * Layers over the array, drawn in this order: other arrays, also of other resolution and position in
   * the same space, and geometry.
   */
  readonly layers: readonly Layer[];
  /** Drawing of the volume besides isosurfaces and slices. */
  readonly mode: Mode;
  /**
   * Lighting of the volume by the gradient of its values, with a light at the camera; null: on for
   * volumes of continuous values, off for images, maps and labels. Isosurfaces are always lit.
   */
  readonly shading: boolean | null;
  /** Strength of the light on isosurfaces, and on the volume with `shading`, from 0 (flat colors) to 1. */
  readonly lighting: number;
  /**
   * Ambient occlusion of the volume with `shading`: the share of the light that places lose which opaque
   * surroundings enclose, from 0 to 1 [default: 0.7].
   */
  readonly occlusion: number;
  /**
   * Depth cue of isosurfaces, and of the volume with `shading`: the share of the light that the farthest
   * places lose, from 0 to 1 [default: 0.3].
   */
  readonly depth_cue: number;
  /** Draw the grids of an adaptive mesh as lines, in one color for each level. */
  readonly grids: boolean;
  /**
   * Stereo pair, side by side in one picture, the left eye's on the left: the distance of the eyes
   * divided by their distance to the point that the camera looks at; null: one picture. For perspective
   * cameras only.
   */
  readonly stereo: number | null;
  /**
   * Part of the volume that is drawn: lowest and highest corner `[x, y, z]`, shares from 0 to 1; null:
   * all of it.
   */
  readonly clip: readonly [low: Vec3, high: Vec3] | null;
  /** Background, sRGB. */
  readonly background: Vec3;
  /**
   * Arrangement of the pictures in the viewer; null: chosen by the viewer from the shape of the array.
   * Pictures of `corridor render` do not depend on it.
   */
  readonly layout: Layout | null;
  /**
   * Several pictures of the data set in a grid in the viewer; null: one. Pictures of `corridor render`
   * do not depend on it.
   */
  readonly grid: Grid | null;
}

/** Values of a field of a simple type; null is also allowed if `isNullable`. */
export type SimpleField = { readonly isNullable: boolean } & (
  | { readonly kind: "text" | "flag" | "color" }
  | { readonly kind: "index"; readonly last: number | null }
  | { readonly kind: "choice"; readonly names: readonly string[] }
  | {
      readonly kind: "number";
      readonly low: number | null;
      readonly high: number | null;
      readonly isAboveLow: boolean;
      readonly isBelowHigh: boolean;
    }
);

/** Names of the fields that have values of a type. */
type FieldsOf<T> = { [Name in keyof ViewFields]: ViewFields[Name] extends T ? Name : never }[keyof ViewFields];

/** Control of a field: a box to tick, or a slider. */
export type FieldControl =
  | {
      readonly kind: "switch";
      readonly field: FieldsOf<boolean | null>;
      readonly label: string;
      readonly title: string;
    }
  | {
      readonly kind: "slider";
      readonly field: FieldsOf<number>;
      readonly label: string;
      readonly title: string;
      readonly low: number;
      readonly high: number;
      readonly step: number;
    };

/** Version of the schema. */
export const SCHEMA_VERSION = 1;
/** Maximum number of control points of an opacity curve. */
export const MAX_OPACITY_POINTS = 256;
/** Maximum number of isosurfaces. */
export const MAX_SURFACES = 20;
/** Maximum number of slices. */
export const MAX_SLICES = 16;
/** Maximum number of layers. */
export const MAX_LAYERS = 8;
/** Maximum number of rows and of columns of a grid. */
export const MAX_GRID_SIDE = 3;
/** Maximum distance of the eyes, as a fraction of their distance to the camera's target. */
export const MAX_PARALLAX = 0.5;
/** Maximum number of named positions in `at`. */
export const MAX_POSITIONS = 16;

/** Default values of the fields. */
export const DEFAULTS: ViewFields = {
  array: "",
  time: 0,
  at: {},
  level: null,
  camera: null,
  transfer: null,
  color_by: null,
  surfaces: [],
  slices: [],
  layers: [],
  mode: "composite",
  shading: null,
  lighting: 1.0,
  occlusion: 0.7,
  depth_cue: 0.3,
  grids: false,
  stereo: null,
  clip: null,
  background: [13,14,18],
  layout: null,
  grid: null,
};

/** Former names of fields, which are still read. */
export const FORMER_NAMES: ReadonlyMap<string, keyof ViewFields> = new Map([
  ["colour_by", "color_by"],
]);

/** Fields of simple types. */
export const SIMPLE_FIELDS = {
  array: { kind: "text", isNullable: false },
  time: { kind: "index", last: null, isNullable: false },
  level: { kind: "index", last: 255, isNullable: true },
  mode: { kind: "choice", names: MODES, isNullable: false },
  shading: { kind: "flag", isNullable: true },
  lighting: { kind: "number", low: 0.0, high: 1.0, isAboveLow: false, isBelowHigh: false, isNullable: false },
  occlusion: { kind: "number", low: 0.0, high: 1.0, isAboveLow: false, isBelowHigh: false, isNullable: false },
  depth_cue: { kind: "number", low: 0.0, high: 1.0, isAboveLow: false, isBelowHigh: false, isNullable: false },
  grids: { kind: "flag", isNullable: false },
  stereo: { kind: "number", low: 0.0, high: 0.5, isAboveLow: true, isBelowHigh: false, isNullable: true },
  background: { kind: "color", isNullable: false },
  layout: { kind: "choice", names: LAYOUTS, isNullable: true },
} satisfies Readonly<Record<string, SimpleField>>;

/** Controls that are made from this list. */
export const CONTROLS: readonly FieldControl[] = [
  { kind: "switch", field: "shading", label: "Shading", title: "Lighting of the volume by the gradient of its values, with a light at the camera; null: on for volumes of continuous values, off for images, maps and labels. Isosurfaces are always lit." },
  { kind: "slider", field: "lighting", label: "Strength of the light", title: "Strength of the light on isosurfaces, and on the volume with `shading`, from 0 (flat colors) to 1.", low: 0.0, high: 1.0, step: 0.05 },
  { kind: "slider", field: "occlusion", label: "Ambient occlusion", title: "Ambient occlusion of the volume with `shading`: the share of the light that places lose which opaque surroundings enclose, from 0 to 1 [default: 0.7].", low: 0.0, high: 1.0, step: 0.05 },
  { kind: "slider", field: "depth_cue", label: "Depth cue", title: "Depth cue of isosurfaces, and of the volume with `shading`: the share of the light that the farthest places lose, from 0 to 1 [default: 0.3].", low: 0.0, high: 1.0, step: 0.05 },
  { kind: "switch", field: "grids", label: "Mesh grids", title: "Draw the grids of an adaptive mesh as lines, in one color for each level." },
];
