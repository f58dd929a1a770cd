//! Cutting the volume away in front of its slices, so that they can be seen inside of it: the clip box ends just before each slice on
//! the side of the camera. It follows slices and camera while it is switched on. Pure, except for `Cutaway`.

import type { Actions, State } from "../../app/state.ts";
import { basis } from "../../camera/camera.ts";
import { dot, sub } from "../../camera/vec.ts";
import { spaceShape, type ArrayInfo } from "../../dataset/dataset.ts";
import { volumeAxisOf } from "../../layout/place.ts";
import { axisNumber, worldOf, lastVoxel, type AxisNumber } from "../../layout/space.ts";
import type { Camera, Slice, Vec3, View } from "../../view/schema.ts";
import type { HandleSettings } from "./settings.ts";

/** Distance of the cut from the middle of the slice's voxels, as a share of a voxel: the slice stays inside of the box. */
const BEFORE_SLICE = 1e-3;
/** Least part of the volume that stays. */
const LEAST_SHARE = 1e-3;

/** Returns true if slices of an array can be cut free: the clip box has the directions of the axes that have slices. */
export function canCut(array: ArrayInfo): boolean {
  return ([0, 1, 2] as const).every((world) => volumeAxisOf(array, world) !== null);
}

/** Returns the clip box that ends before the slices, as the camera sees them; null if there is nothing to cut. */
export function cutClip(array: ArrayInfo, slices: readonly Slice[], camera: Camera): View["clip"] {
  const low: [number, number, number] = [0, 0, 0];
  const high: [number, number, number] = [1, 1, 1];
  for (const world of [0, 1, 2] as const) {
    const along = volumeAxisOf(array, world);
    const own = slices.filter((slice) => isAcross(slice, along?.axis ?? null));
    const size = along ? spaceShape(array)[along.axis] : 0;
    const [slice] = own;
    // Between two slices across one axis nothing of the volume could stay.
    if (!along || !slice || own.length > 1 || size < 2) continue;
    const facing = sideOf(array, along.axis, slice.at, camera);
    const isAbove = facing > 0 !== along.isReversed;
    const shift = (facing > 0 ? BEFORE_SLICE : -BEFORE_SLICE) + 0.5;
    const share = (slice.at + shift) / size;
    const cut = along.isReversed ? 1 - share : share;
    if (isAbove) high[world] = Math.max(cut, LEAST_SHARE);
    else low[world] = Math.min(cut, 1 - LEAST_SHARE);
  }
  const isWhole = low.every((x) => x === 0) && high.every((x) => x === 1);
  return isWhole ? null : [low, high];
}

function isAcross(slice: Slice, axis: AxisNumber | null): boolean {
  return slice.normal === undefined && slice.hidden !== true && axisNumber(slice.axis) === axis;
}

/** Returns 1 if the camera sees a slice from the side of higher indices, otherwise -1. */
function sideOf(array: ArrayInfo, axis: AxisNumber, at: number, camera: Camera): 1 | -1 {
  const middle: [number, number, number] = [...lastVoxel(array)].map((last) => last / 2) as [
    number,
    number,
    number,
  ];
  middle[axis] = at;
  const here = worldOf(array, middle);
  middle[axis] = at + 1;
  const step: Vec3 = sub(worldOf(array, middle), here);
  const toward = "orthographic" in camera.projection ? basis(camera).forward : sub(here, camera.eye);
  return dot(step, toward) < 0 ? 1 : -1;
}

/** Keeps the clip box at the slices while the person wants it. */
export class Cutaway {
  readonly #actions: Actions;
  readonly #settings: HandleSettings;
  /** Box that was set here, as text; empty if none was. */
  #set = "";

  constructor(actions: Actions, settings: HandleSettings, state: () => State) {
    this.#actions = actions;
    this.#settings = settings;
    settings.onChange(() => {
      this.update(state());
    });
  }

  update({ view, array, role, isSettling }: State): void {
    if (!array || role === "watch" || isSettling) return;
    if (!this.#settings.cuts) {
      // The box that was made here goes; one that somebody has changed since stays.
      if (this.#set !== "" && this.#set === JSON.stringify(view.clip)) this.#actions.change({ clip: null });
      this.#set = "";
      return;
    }
    if (!view.camera || !canCut(array)) return;
    const clip = cutClip(array, view.slices, view.camera);
    const text = JSON.stringify(clip);
    if (text === this.#set || text === JSON.stringify(view.clip)) {
      this.#set = text;
      return;
    }
    this.#set = text;
    this.#actions.change({ clip }, false, true);
  }
}
