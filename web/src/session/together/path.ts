//! Smooth path of the camera through bookmarks, for playing them in the page, and the same cameras as a journey for
//! `corridor render --journey`. Pure.

import { basis, distance, toggleProjection } from "../../camera/camera.ts";
import { add, length, normalize, scale, sub } from "../../camera/vec.ts";
import type { JsonObject } from "../../json.ts";
import { parseView, viewToJson } from "../../view/parse.ts";
import { wholeView, type Camera, type Projection, type Vec3, type ViewPatch } from "../../view/schema.ts";
import type { Bookmark } from "./content.ts";

/** Time from one bookmark to the next. */
export const LEG_MILLIS = 2500;

export interface Stop {
  readonly camera: Camera;
  /** The other fields of the view, which change when the stop is reached. */
  readonly rest: ViewPatch;
}

/** Returns the stops of a path: the bookmarks that have a camera. All have the projection of the first one. */
export function stopsOf(bookmarks: readonly Bookmark[]): readonly Stop[] {
  const stops = bookmarks.flatMap(({ view }) => {
    const { camera, ...rest } = parseView(view).patch;
    return camera ? [{ camera, rest }] : [];
  });
  const isParallel = (camera: Camera) => "orthographic" in camera.projection;
  const [first] = stops;
  if (!first) return [];
  return stops.map((stop) =>
    isParallel(stop.camera) === isParallel(first.camera)
      ? stop
      : { ...stop, camera: toggleProjection(stop.camera) },
  );
}

/**
 * Returns the change of the view at a place of the path: the camera, and at a stop after the one `reached` before all of the view that
 * the stop shows. `array` is that of stops without one.
 */
export function viewAt(stops: readonly Stop[], at: number, reached: number, array: string): ViewPatch | null {
  const camera = cameraAt(stops, at);
  const passed = Math.floor(at);
  const stop = passed > reached ? stops[passed] : undefined;
  return camera && { ...(stop ? wholeView(stop.rest, array) : {}), camera };
}

/** Returns the camera at a place of the path: whole numbers are the stops. */
export function cameraAt(stops: readonly Stop[], at: number): Camera | null {
  const last = stops.length - 1;
  const leg = Math.min(Math.max(0, Math.floor(at)), Math.max(0, last - 1));
  const share = Math.min(1, Math.max(0, at - leg));
  const camera = (i: number) => stops[Math.min(Math.max(0, i), last)]?.camera;
  const [before, from, to, after] = [camera(leg - 1), camera(leg), camera(leg + 1), camera(leg + 2)];
  if (!before || !from || !to || !after) return null;
  if (share === 0) return from;
  if (share === 1) return to;
  const four = [before, from, to, after] as const;
  const numbers = (of: (camera: Camera) => number): number =>
    spline(of(four[0]), of(four[1]), of(four[2]), of(four[3]), share);
  const vectors = (of: (camera: Camera) => Vec3): Vec3 => [
    numbers((c) => of(c)[0]),
    numbers((c) => of(c)[1]),
    numbers((c) => of(c)[2]),
  ];
  const target = vectors((c) => c.target);
  // Opposite directions cancel out in the middle of the leg: then the way leads over the up direction.
  const toEye = normalize(
    vectors((c) => scale(basis(c).forward, -1)),
    basis(from).up,
  );
  const away = Math.exp(numbers((c) => Math.log(distance(c))));
  const up = vectors((c) => basis(c).up);
  return {
    ...from,
    eye: add(target, scale(toEye, away)),
    target,
    up: length(up) > 1e-6 ? normalize(up) : basis(from).right,
    projection: projectionAt(from, to, share),
  };
}

function projectionAt(from: Camera, to: Camera, share: number): Projection {
  const [a, b] = [from.projection, to.projection];
  if ("perspective" in a && "perspective" in b) {
    const [p, q] = [a.perspective.fov_y_rad, b.perspective.fov_y_rad];
    return { perspective: { fov_y_rad: p + (q - p) * share } };
  }
  if ("orthographic" in a && "orthographic" in b) {
    const [p, q] = [a.orthographic.height_world, b.orthographic.height_world];
    return { orthographic: { height_world: p * (q / p) ** share } };
  }
  return a;
}

/** Catmull-Rom spline from `b` to `c`. */
function spline(a: number, b: number, c: number, d: number, share: number): number {
  const [from, to] = [(c - a) / 2, (d - b) / 2];
  const t2 = share * share;
  const t3 = t2 * share;
  return (2 * t3 - 3 * t2 + 1) * b + (t3 - 2 * t2 + share) * from + (3 * t2 - 2 * t3) * c + (t3 - t2) * to;
}

/** Returns the journey for `corridor render --journey`: views with cameras of one projection. */
export function journeyOf(bookmarks: readonly Bookmark[]): readonly JsonObject[] {
  return stopsOf(bookmarks).map(({ camera, rest }) => viewToJson({ ...rest, camera }));
}

/** Distance between two cameras' eyes relative to their distance from the target; for tests of smoothness. */
export function stepBetween(a: Camera, b: Camera): number {
  return length(sub(a.eye, b.eye)) / distance(a);
}
