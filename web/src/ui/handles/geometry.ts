//! Handles of slices, of the clip box and of oblique planes: where they lie in the world, what a drag on the screen moves them to, and
//! the change of the view that follows. Pure.

import { texts } from "../../texts/texts.ts";
import { basis, heightAtTarget, type Size } from "../../camera/camera.ts";
import { add, cross, dot, length, normalize, rotate, scale, sub } from "../../camera/vec.ts";
import { isThick } from "../../dataset/world.ts";
import { formatNumber } from "../../dataset/labels.ts";
import { spaceShape, type ArrayInfo, type Dataset } from "../../dataset/dataset.ts";
import { atOffset, isOblique, offsetOf, obliqueThrough, reach, type Oblique } from "../../layout/oblique.ts";
import { clipAxis, fileIndex, placeAxis, placeText, worldBounds } from "../../layout/place.ts";
import {
  axisNumber,
  centerOf,
  column,
  lastVoxel,
  mapOf,
  others,
  planeName,
  worldOf,
  type AxisNumber,
} from "../../layout/space.ts";
import { rayThrough, type Ray, type ScreenPoint } from "../../session/together/space.ts";
import type { Camera, Vec3, View, ViewPatch } from "../../view/schema.ts";

/** Part of the view that a handle moves. */
export type HandleTarget =
  | { readonly kind: "clip"; readonly axis: AxisNumber; readonly end: 0 | 1 }
  | { readonly kind: "slice"; readonly index: number }
  | { readonly kind: "offset"; readonly index: number }
  | { readonly kind: "turn"; readonly index: number; readonly about: Vec3; readonly name: "tilt" | "swing" };

export interface Handle {
  readonly key: string;
  readonly target: HandleTarget;
  /** Place at which it is drawn. */
  readonly place: Vec3;
  /** Direction in which a drag increases its value; of a turn that of the normal. */
  readonly direction: Vec3;
  /** World units by which it moves when its value grows by one; of a turn its distance from the axis, by radians. */
  readonly perUnit: number;
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Change by an arrow key. */
  readonly step: number;
  readonly name: string;
  readonly text: string;
}

/** Least part of the volume that the clip box keeps along an axis. */
const LEAST_SHARE = 0.005;
/** Change of an end of the clip box by an arrow key. */
const CLIP_STEP = 0.01;
/** Steps of an oblique plane from one end of the volume to the other. */
const OFFSET_STEPS = 200;
const TURN_STEP_RAD = Math.PI / 36;
/** Distance of the handles that turn an oblique plane from its middle, as a share of half its extent. */
const TURN_REACH = 0.55;

/** Returns the handles of a view; those of the clip box if `hasBox`. */
export function handlesOf(
  dataset: Dataset,
  array: ArrayInfo,
  view: Pick<View, "slices" | "clip">,
  hasBox: boolean,
): readonly Handle[] {
  const slices = view.slices.flatMap((slice, index): Handle[] => {
    if (slice.hidden === true) return [];
    if (isOblique(slice)) return obliqueHandles(array, slice, index);
    const handle = sliceHandle(dataset, array, axisNumber(slice.axis), slice.at, index);
    return handle ? [handle] : [];
  });
  return hasBox ? [...clipHandles(dataset, array, view.clip), ...slices] : slices;
}

function sliceHandle(
  dataset: Dataset,
  array: ArrayInfo,
  axis: AxisNumber,
  at: number,
  index: number,
): Handle | null {
  if (spaceShape(array)[axis] < 2) return null;
  const step = column(mapOf(array), axis);
  const last = lastVoxel(array);
  const coordinate = placeText(placeAxis(dataset, array, axis), at);
  const own = fileIndex(array, axis, at);
  return {
    key: `slice ${index}`,
    target: { kind: "slice", index },
    place: worldOf(array, withAt(rimOf(last, axis), axis, at)),
    direction: normalize(step),
    perUnit: length(step),
    value: at,
    low: 0,
    high: last[axis],
    step: 1,
    name: texts.handles.slice(planeName(array, axis)),
    text: [String(Number(own.index.toFixed(2))), coordinate].filter((part) => part !== "").join(" · "),
  };
}

/** Place of the handle of a slice, voxels: at its rim, where those of other slices and of the clip box are not. */
function rimOf([x, y, z]: Vec3, axis: AxisNumber): Vec3 {
  if (axis === 0) return [0, 0.75 * y, z];
  return axis === 1 ? [x, 0, 0.75 * z] : [0.75 * x, 0, 0];
}

function obliqueHandles(array: ArrayInfo, plane: Oblique, index: number): Handle[] {
  const normal = normalize(plane.normal);
  const far = reach(array, normal);
  const offset = offsetOf(array, plane);
  const middle = add(centerOf(array), scale(normal, offset));
  const [across, down] = inPlane(normal);
  const turn = (name: "tilt" | "swing", along: Vec3): Handle => {
    const arm = TURN_REACH * reach(array, along);
    // Turning about it moves the handle toward the normal.
    const about = cross(along, normal);
    const degrees = name === "tilt" ? tiltOf(normal) : swingOf(normal);
    return {
      key: `${name} ${index}`,
      target: { kind: "turn", index, about, name },
      place: add(middle, scale(along, arm)),
      direction: normal,
      perUnit: arm,
      value: 0,
      low: -Math.PI,
      high: Math.PI,
      step: TURN_STEP_RAD,
      name: name === "tilt" ? texts.handles.tilt : texts.handles.swing,
      text: `${degrees.toFixed(0)}°`,
    };
  };
  const move: Handle = {
    key: `offset ${index}`,
    target: { kind: "offset", index },
    place: middle,
    direction: normal,
    perUnit: 1,
    value: offset,
    low: -far,
    high: far,
    step: (2 * far) / OFFSET_STEPS,
    name: texts.handles.oblique,
    text: `${formatNumber(offset)} ${array.worldUnits}`.trim(),
  };
  return [move, turn("tilt", down), turn("swing", across)];
}

/** Degrees between a plane's normal and the z axis, and of the normal about it. */
const tiltOf = (normal: Vec3) => (Math.acos(Math.min(1, Math.max(-1, normal[2]))) * 180) / Math.PI;
const swingOf = (normal: Vec3) => (Math.atan2(normal[1], normal[0]) * 180) / Math.PI;

/** Directions in a plane: level, and upward. */
export function inPlane(normal: Vec3): readonly [across: Vec3, up: Vec3] {
  const across = normalize(cross([0, 0, 1], normal), [1, 0, 0]);
  return [across, normalize(cross(normal, across), [0, 1, 0])];
}

function clipHandles(dataset: Dataset, array: ArrayInfo, clip: View["clip"]): Handle[] {
  const [low, high] = clip ?? [[0, 0, 0] as const, [1, 1, 1] as const];
  const thick = isThick(array);
  const [from, to] = worldBounds(array);
  const at = (share: Vec3): Vec3 => {
    const along = (a: AxisNumber) => from[a] + share[a] * (to[a] - from[a]);
    return [along(0), along(1), along(2)];
  };
  const middle = scale(add(low, high), 0.5);
  return ([0, 1, 2] as const).flatMap((axis) => {
    if (!thick[axis]) return [];
    const reading = clipAxis(dataset, array, axis);
    return ([0, 1] as const).map((end): Handle => {
      const share = end === 0 ? low[axis] : high[axis];
      const direction: [number, number, number] = [0, 0, 0];
      direction[axis] = 1;
      return {
        key: `clip ${axis} ${end}`,
        target: { kind: "clip", axis, end },
        place: at(withAt(middle, axis, share)),
        direction,
        perUnit: to[axis] - from[axis],
        value: share,
        low: end === 0 ? 0 : low[axis] + LEAST_SHARE,
        high: end === 0 ? high[axis] - LEAST_SHARE : 1,
        step: CLIP_STEP,
        name: (end === 0 ? texts.handles.boxFrom : texts.handles.boxTo)("xyz"[axis] ?? ""),
        text: reading.text(share),
      };
    });
  });
}

/** Returns the change of the view that moves a handle to a value, within its limits. */
export function moveHandle(
  handle: Handle,
  value: number,
  array: ArrayInfo,
  view: Pick<View, "slices" | "clip">,
): ViewPatch {
  const bounded = Math.min(Math.max(value, handle.low), handle.high);
  const { target } = handle;
  if (target.kind === "clip") {
    const [low, high] = view.clip ?? [[0, 0, 0] as const, [1, 1, 1] as const];
    const corners =
      target.end === 0
        ? ([withAt(low, target.axis, bounded), high] as const)
        : ([low, withAt(high, target.axis, bounded)] as const);
    const isWhole = corners[0].every((x) => x === 0) && corners[1].every((x) => x === 1);
    return { clip: isWhole ? null : corners };
  }
  const slices = view.slices.map((slice, index) => {
    if (index !== target.index) return slice;
    if (target.kind === "slice") return { ...slice, at: Math.round(bounded) };
    if (!isOblique(slice)) return slice;
    const moved =
      target.kind === "offset"
        ? atOffset(array, slice, bounded)
        : turnedAbout(array, slice, target.about, bounded);
    return { ...slice, ...moved };
  });
  return { slices };
}

/** Turns a plane about a line in it through the middle of the volume's part of it. */
function turnedAbout(array: ArrayInfo, plane: Oblique, about: Vec3, angleRad: number): Oblique {
  const normal = normalize(plane.normal);
  const middle = add(centerOf(array), scale(normal, offsetOf(array, plane)));
  return obliqueThrough(array, rotate(normal, normalize(about), angleRad), middle);
}

/** Sine of the least angle between the viewing direction and that of a drag, below which pixels do not tell how far. */
const LEAST_SINE = 0.12;

/** Returns the value of a handle that was at `handle.value` when the pointer was at `from`, and has been dragged to `to`. */
export function draggedValue(
  handle: Handle,
  camera: Camera,
  size: Size,
  from: ScreenPoint,
  to: ScreenPoint,
): number {
  if (handle.target.kind !== "turn")
    return (
      handle.value + dragAlong(handle, camera, size, from, to) / Math.max(handle.perUnit, Number.MIN_VALUE)
    );
  return handle.value + dragAround(handle, handle.target.about, camera, size, from, to);
}

/** Distance along the handle's direction between the places nearest to the two rays. */
function dragAlong(
  { place, direction }: Handle,
  camera: Camera,
  size: Size,
  from: ScreenPoint,
  to: ScreenPoint,
): number {
  const { forward } = basis(camera);
  const ray = rayThrough(camera, size, to);
  const sine = length(cross(normalize(ray.direction), direction));
  // Seen along the direction, upward means away from the viewer.
  if (sine < LEAST_SINE)
    return (from.y - to.y) * worldPerPixel(camera, size, place) * (dot(direction, forward) < 0 ? -1 : 1);
  return nearestOn(place, direction, ray) - nearestOn(place, direction, rayThrough(camera, size, from));
}

/** Angle about an axis through the middle of a plane by which the handle has been dragged toward the normal. */
function dragAround(
  handle: Handle,
  about: Vec3,
  camera: Camera,
  size: Size,
  from: ScreenPoint,
  to: ScreenPoint,
): number {
  const { place, direction: normal, perUnit: arm } = handle;
  const along = normalize(cross(normal, about));
  const center = sub(place, scale(along, arm));
  const angle = (at: ScreenPoint): number | null => {
    const ray = rayThrough(camera, size, at);
    const facing = dot(normalize(ray.direction), normalize(about));
    if (Math.abs(facing) < LEAST_SINE) return null;
    const t = dot(sub(center, ray.origin), about) / dot(ray.direction, about);
    const offset = sub(add(ray.origin, scale(ray.direction, t)), center);
    return Math.atan2(dot(offset, normal), dot(offset, along));
  };
  const [before, after] = [angle(from), angle(to)];
  if (before === null || after === null)
    return dragAlong(handle, camera, size, from, to) / Math.max(arm, Number.MIN_VALUE);
  const turned = after - before;
  return turned - 2 * Math.PI * Math.round(turned / (2 * Math.PI));
}

/** Place on a line, as a distance from `origin`, that is nearest to a ray. */
function nearestOn(origin: Vec3, direction: Vec3, ray: Ray): number {
  const d = normalize(ray.direction);
  const between = sub(ray.origin, origin);
  const b = dot(direction, d);
  return (dot(between, direction) - b * dot(between, d)) / Math.max(1 - b * b, Number.EPSILON);
}

/** World units of a pixel at the depth of a place. */
export function worldPerPixel(camera: Camera, size: Size, place: Vec3): number {
  const perPixel = heightAtTarget(camera) / Math.max(1, size.height);
  if ("orthographic" in camera.projection) return perPixel;
  const { forward } = basis(camera);
  const atTarget = dot(sub(camera.target, camera.eye), forward);
  return (
    (perPixel * Math.max(0, dot(sub(place, camera.eye), forward))) / Math.max(atTarget, Number.MIN_VALUE)
  );
}

/** Corners of what a handle moves, in order, for its outline: a slice, a face of the clip box, or nothing. */
export function outlineOf(
  handle: Handle,
  array: ArrayInfo,
  view: Pick<View, "slices" | "clip">,
): readonly Vec3[] {
  const { target } = handle;
  if (target.kind === "clip") {
    const [from, to] = worldBounds(array);
    const [low, high] = view.clip ?? [[0, 0, 0] as const, [1, 1, 1] as const];
    const [i, j] = others(target.axis);
    const share = target.end === 0 ? low[target.axis] : high[target.axis];
    return rectangle(i, j, low, high).map((corner) => {
      const own = withAt(corner, target.axis, share);
      const at = (a: AxisNumber) => from[a] + own[a] * (to[a] - from[a]);
      return [at(0), at(1), at(2)];
    });
  }
  const slice = view.slices[target.index];
  if (!slice) return [];
  if (isOblique(slice)) return obliqueOutline(array, slice);
  const axis = axisNumber(slice.axis);
  const [i, j] = others(axis);
  const last = lastVoxel(array);
  const low: Vec3 = [-0.5, -0.5, -0.5];
  const high: Vec3 = [last[0] + 0.5, last[1] + 0.5, last[2] + 0.5];
  return rectangle(i, j, low, high).map((corner) => worldOf(array, withAt(corner, axis, slice.at)));
}

function rectangle(i: AxisNumber, j: AxisNumber, low: Vec3, high: Vec3): Vec3[] {
  const corner = (a: number, b: number) => withAt(withAt(low, i, a), j, b);
  return [corner(low[i], low[j]), corner(high[i], low[j]), corner(high[i], high[j]), corner(low[i], high[j])];
}

/** Edges of a box by the numbers of their corners, whose bits are the ends along x, y and z. */
const EDGES: readonly (readonly [number, number])[] = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((corner) =>
  [1, 2, 4].flatMap((bit): [number, number][] => ((corner & bit) === 0 ? [[corner, corner | bit]] : [])),
);

/** Corners of the polygon in which a plane cuts the volume, in order around it. */
export function obliqueOutline(array: ArrayInfo, plane: Oblique): readonly Vec3[] {
  const last = lastVoxel(array);
  const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => {
    const end = (a: AxisNumber) => ((bits >> a) & 1 ? last[a] + 0.5 : -0.5);
    return worldOf(array, [end(0), end(1), end(2)]);
  });
  const normal = normalize(plane.normal);
  const height = (p: Vec3) => dot(sub(p, plane.point), normal);
  const points = EDGES.flatMap(([one, other]): Vec3[] => {
    const [a, b] = [corners[one], corners[other]];
    if (!a || !b) return [];
    const [from, to] = [height(a), height(b)];
    return from * to < 0 ? [add(a, scale(sub(b, a), from / (from - to)))] : [];
  });
  if (points.length < 3) return [];
  const middle = scale(points.reduce(add), 1 / points.length);
  const [across, up] = inPlane(normal);
  const angle = (p: Vec3) => Math.atan2(dot(sub(p, middle), up), dot(sub(p, middle), across));
  return points.sort((a, b) => angle(a) - angle(b));
}

function withAt(v: Vec3, axis: AxisNumber, value: number): Vec3 {
  const next: [number, number, number] = [...v];
  next[axis] = value;
  return next;
}
