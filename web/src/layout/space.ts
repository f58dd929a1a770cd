//! Geometry of the volume that an array is drawn as: voxels `[x, y, z]` of level 0 and the world, and how a plane across
//! one of its axes is seen head on. Pure.

import { texts } from "../texts/texts.ts";
import { add, cross, dot, length, normalize, scale, sub } from "../camera/vec.ts";
import { isSpatial, spaceShape, type Affine, type ArrayInfo, type Dataset } from "../dataset/dataset.ts";
import { apply } from "../dataset/world.ts";
import { SPACE_AXES, type SpaceAxis, type Vec3 } from "../view/schema.ts";

/** Number of an axis of the volume: x, y, z. */
export type AxisNumber = 0 | 1 | 2;
export const AXIS_NUMBERS: readonly AxisNumber[] = [0, 1, 2];

export function axisNumber(axis: SpaceAxis): AxisNumber {
  return SPACE_AXES.indexOf(axis) as AxisNumber;
}

/** Viewing direction on a plane, and the direction that is up; perpendicular unit vectors of the world. */
export interface Stance {
  readonly forward: Vec3;
  readonly up: Vec3;
}

const IDENTITY: Affine = [
  [1, 0, 0, 0],
  [0, 1, 0, 0],
  [0, 0, 1, 0],
];

export function mapOf(array: ArrayInfo): Affine {
  return array.levels[0]?.worldFromVoxel ?? IDENTITY;
}

/** Returns the step of the world from one voxel to the next along an axis. */
export function column(map: Affine, axis: AxisNumber): Vec3 {
  return [map[0]?.[axis] ?? 0, map[1]?.[axis] ?? 0, map[2]?.[axis] ?? 0];
}

export function worldOf(array: ArrayInfo, voxel: Vec3): Vec3 {
  return apply(mapOf(array), voxel);
}

/** Returns the position in voxels of a place in the world; null for a volume without a thickness. */
export function voxelOf(array: ArrayInfo, world: Vec3): Vec3 | null {
  const map = mapOf(array);
  const [a, b, c] = [column(map, 0), column(map, 1), column(map, 2)];
  const volume = dot(a, cross(b, c));
  if (!(Math.abs(volume) > 0)) return null;
  const from = sub(world, apply(map, [0, 0, 0]));
  return [dot(from, cross(b, c)) / volume, dot(from, cross(c, a)) / volume, dot(from, cross(a, b)) / volume];
}

/** Returns the last voxel along x, y, z. */
export function lastVoxel(array: ArrayInfo): Vec3 {
  const [x, y, z] = spaceShape(array);
  return [Math.max(0, x - 1), Math.max(0, y - 1), Math.max(0, z - 1)];
}

/** Returns the only axis with a single voxel; null if there is none, or there are several. */
export function flatAxis(array: ArrayInfo): AxisNumber | null {
  const shape = spaceShape(array);
  const thin = AXIS_NUMBERS.filter((axis) => shape[axis] < 2);
  return thin.length === 1 ? (thin[0] ?? null) : null;
}

/** Returns the number of axes of the volume with several voxels. */
export function thickAxes(array: ArrayInfo): number {
  return spaceShape(array).filter((size) => size > 1).length;
}

/** Names of axes of maps of the Earth whose rows run northward; same list as in the node. */
const NORTHWARDS: readonly string[] = [
  ...["lat", "latitude", "rlat", "nlat", "south_north"],
  ...["north", "northing", "nj", "j", "yc"],
];

/**
 * True if rows run downward and slices away from the viewer, as in images: the file does not place them in the world. Same
 * rule as in the node.
 */
export function hasImageRows(dataset: Dataset, array: ArrayInfo): boolean {
  const isMicroscopy = dataset.format.startsWith("OME");
  const isPlaced = array.axes.some(
    (axis) =>
      (isSpatial(axis.kind) && axis.coordinates.kind !== "index" && !isMicroscopy) ||
      NORTHWARDS.includes(axis.name.toLowerCase()),
  );
  if (isPlaced || array.hasCoordinates === true) return false;
  if (!array.axes.some((axis) => isSpatial(axis.kind))) return true;
  return isUpright(mapOf(array));
}

/** True for a map that neither turns nor mirrors. */
function isUpright(map: Affine): boolean {
  return AXIS_NUMBERS.every((row) =>
    AXIS_NUMBERS.every((axis) => {
      const entry = map[row]?.[axis] ?? 0;
      return row === axis ? entry >= 0 : entry === 0;
    }),
  );
}

/** Returns the axis of the world that is most nearly perpendicular to planes across an axis of the volume. */
export function worldAxis(array: ArrayInfo, axis: AxisNumber): AxisNumber {
  const map = mapOf(array);
  // The direction perpendicular to the plane, not the axis itself, if the axes are oblique to each other.
  const [i, j] = others(axis);
  const normal = cross(column(map, i), column(map, j)).map(Math.abs);
  return normal.indexOf(Math.max(...normal)) as AxisNumber;
}

/** Returns the two other axes, in ascending order. */
export function others(axis: AxisNumber): readonly [AxisNumber, AxisNumber] {
  if (axis === 0) return [1, 2];
  return axis === 1 ? [0, 2] : [0, 1];
}

/** Returns the name of the planes across an axis: a medical one for patients, otherwise that of the axis. */
export function planeName(array: ArrayInfo, axis: AxisNumber): string {
  if (array.legend.isAnatomical) return texts.places.medicalPlanes[worldAxis(array, axis)] ?? "";
  return axisName(array, axis);
}

/** Returns the name in the file of an axis of the volume. */
export function axisName(array: ArrayInfo, axis: AxisNumber): string {
  return array.axes[axisIndex(array, axis)]?.name ?? SPACE_AXES[axis];
}

/** Returns the index among the array's axes of an axis of the volume; -1 if the array does not have it. */
export function axisIndex(array: ArrayInfo, axis: AxisNumber): number {
  const hasSpace = array.axes.some(({ kind }) => isSpatial(kind));
  return hasSpace
    ? array.axes.findIndex(({ kind }) => kind === SPACE_AXES[axis])
    : array.axes.length - 1 - axis;
}

/** Directions for patients, as radiologists look: axial from the feet, coronal from the front, sagittal from the left. */
const PATIENT: readonly Stance[] = [
  { forward: [1, 0, 0], up: [0, 0, 1] },
  { forward: [0, -1, 0], up: [0, 0, 1] },
  { forward: [0, 0, 1], up: [0, 1, 0] },
];
/** Directions for other data in the world: from the right, from the front, from above. */
const WORLD: readonly Stance[] = [
  { forward: [-1, 0, 0], up: [0, 0, 1] },
  { forward: [0, 1, 0], up: [0, 0, 1] },
  { forward: [0, 0, -1], up: [0, 1, 0] },
];

/** Returns how planes across an axis are seen. Images have row 0 on top and column 0 at the left; maps have north up. */
export function stanceOn(dataset: Dataset, array: ArrayInfo, axis: AxisNumber): Stance {
  const map = mapOf(array);
  const [columns, rows] = others(axis).map((other) => column(map, other)) as [Vec3, Vec3];
  // For a plane across x, the columns of a file `[z, y, x]` are y and the rows are z.
  const across = normalize(columns, [1, 0, 0]);
  const down = normalize(rows, [0, 1, 0]);
  const normal = normalize(cross(across, down), [0, 0, 1]);
  if (hasImageRows(dataset, array)) return upright(normal, scale(down, -1));
  const nearest = worldAxis(array, axis);
  const wanted = (array.legend.isAnatomical ? PATIENT : WORLD)[nearest] ?? {
    forward: [0, 0, -1],
    up: [0, 1, 0],
  };
  return upright(dot(normal, wanted.forward) < 0 ? scale(normal, -1) : normal, wanted.up);
}

/** Makes `up` perpendicular to the viewing direction. */
function upright(forward: Vec3, up: Vec3): Stance {
  const rest = sub(up, scale(forward, dot(up, forward)));
  return { forward, up: length(rest) > 1e-9 ? normalize(rest) : up };
}

/** Returns the half extents of the volume, to the right and upward as seen on a plane. */
export function halfExtents(array: ArrayInfo, { forward, up }: Stance): readonly [right: number, up: number] {
  const map = mapOf(array);
  const shape = spaceShape(array);
  const right = cross(forward, up);
  const along = (direction: Vec3) =>
    AXIS_NUMBERS.reduce<number>(
      (sum, axis) => sum + (Math.abs(dot(column(map, axis), direction)) * shape[axis]) / 2,
      0,
    );
  return [along(right), along(up)];
}

/** Returns the center of the volume. */
export function centerOf(array: ArrayInfo): Vec3 {
  return worldOf(array, scale(lastVoxel(array), 0.5));
}

/** Returns the smallest distance of neighboring voxels in planes across an axis, world units. */
export function spacingIn(array: ArrayInfo, axis: AxisNumber): number {
  const map = mapOf(array);
  const shape = spaceShape(array);
  const steps = others(axis).filter((other) => shape[other] > 1);
  return Math.min(...steps.map((other) => length(column(map, other))));
}

/** Moves a place by a multiple of a direction. */
export function moved(place: Vec3, direction: Vec3, by: number): Vec3 {
  return add(place, scale(direction, by));
}
