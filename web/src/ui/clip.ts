//! The clipping box: a range along each axis of world space along which the volume has more than one voxel.

import type { Actions, Component, State } from "../app/state.ts";
import { isThick } from "../dataset/world.ts";
import type { Vec3, View } from "../view/schema.ts";
import { el, textButton } from "./dom.ts";
import { rangeSlider, type Range } from "./range-slider.ts";

const NAMES = ["x", "y", "z"] as const;

export function clipControl(actions: Actions): Component {
  let clip: View["clip"] = null;
  const sliders = NAMES.map((name, axis) =>
    rangeSlider(
      name,
      (range) => {
        clip = clipped(clip, axis, range);
        actions.change({ clip }, true);
      },
      actions.rest,
    ),
  );
  const whole = textButton("Whole volume", () => {
    actions.change({ clip: null });
  });
  const element = el(
    "section",
    { class: "group" },
    el("div", { class: "group-head" }, el("h2", {}, "Clipping"), whole),
    ...sliders.map((slider) => slider.element),
  );
  const update = (state: State) => {
    clip = state.view.clip;
    whole.disabled = clip === null;
    const thick = state.array ? isThick(state.array) : [];
    sliders.forEach((slider, axis) => {
      slider.element.hidden = thick[axis] === false;
      slider.set([clip?.[0][axis] ?? 0, clip?.[1][axis] ?? 1]);
    });
  };
  return { element, update };
}

/** Clipping box with another range along one axis; null for the whole volume. */
export function clipped(clip: View["clip"], axis: number, [from, to]: Range): View["clip"] {
  const [low, high] = clip ?? [[0, 0, 0] as const, [1, 1, 1] as const];
  const corners = [replaced(low, axis, Math.max(0, from)), replaced(high, axis, Math.min(1, to))] as const;
  return corners[0].every((x) => x === 0) && corners[1].every((x) => x === 1) ? null : corners;
}

function replaced([x, y, z]: Vec3, axis: number, value: number): Vec3 {
  return [axis === 0 ? value : x, axis === 1 ? value : y, axis === 2 ? value : z];
}
