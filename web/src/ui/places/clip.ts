//! The clipping box: a range along each axis of world space along which the volume has more than one voxel, by slider and by
//! coordinate, and whether the box and the slices have handles in the picture.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import type { Typed } from "../../dataset/position.ts";
import { isThick } from "../../dataset/world.ts";
import { clipAxis } from "../../layout/place.ts";
import type { AxisNumber } from "../../layout/space.ts";
import type { Vec3, View } from "../../view/schema.ts";
import { checkbox, el, textButton } from "../dom.ts";
import type { HandleSettings } from "../handles/settings.ts";
import { placeInput } from "./place-input.ts";
import { rangeSlider, type Range } from "./range-slider.ts";

const NAMES = ["x", "y", "z"] as const;
/** Least length of the box, share of the whole. */
const LEAST = 1e-3;

export function clipControl(actions: Actions, settings: HandleSettings): Component {
  let clip: View["clip"] = null;
  let state: State | null = null;
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
  const fields = NAMES.map((name, axis) => {
    const number = axis as AxisNumber;
    const parse = (text: string): Typed<number> =>
      state?.dataset && state.array
        ? clipAxis(state.dataset, state.array, number).parse(text)
        : { problem: texts.typed.noData };
    const field = (end: 0 | 1, label: string) =>
      placeInput(label, parse, (share) => {
        const [low, high] = rangeOf(clip, axis);
        const range: Range =
          end === 0 ? [Math.min(share, high - LEAST), high] : [low, Math.max(share, low + LEAST)];
        actions.change({ clip: clipped(clip, axis, range) });
      });
    const [from, to] = [field(0, texts.places.lowEndOfBox(name)), field(1, texts.places.highEndOfBox(name))];
    const element = el("div", { class: "clip-places" }, from.element, texts.places.to, to.element);
    return { from, to, element };
  });
  const whole = textButton(texts.places.wholeVolume, () => {
    actions.change({ clip: null });
  });
  const handles = checkbox(texts.places.handles, (isOn) => {
    settings.isOn = isOn;
  });
  handles.element.title = texts.places.handlesHint;
  const box = checkbox(texts.places.clipBox, (isOn) => {
    settings.hasBox = isOn;
  });
  box.element.title = texts.places.clipBoxHint;
  const element = el(
    "section",
    { class: "group" },
    el("div", { class: "group-head" }, el("h2", {}, texts.places.clipping), whole),
    ...sliders.flatMap((slider, axis) => [slider.element, ...(fields[axis] ? [fields[axis].element] : [])]),
    el("div", { class: "clip-handles" }, handles.element, box.element),
  );
  const showSettings = () => {
    handles.set(settings.isOn);
    box.set(settings.hasBox || clip !== null);
    const input = box.element.querySelector("input");
    if (input) input.disabled = !settings.isOn || clip !== null;
  };
  settings.onChange(showSettings);
  const update = (next: State) => {
    state = next;
    const { array, dataset, view } = next;
    clip = view.clip;
    whole.disabled = clip === null;
    showSettings();
    const thick = array ? isThick(array) : [];
    sliders.forEach((slider, axis) => {
      const isHidden = thick[axis] === false;
      slider.element.hidden = isHidden;
      const [low, high] = rangeOf(clip, axis);
      slider.set([low, high]);
      const own = fields[axis];
      if (!own || !array || !dataset) return;
      own.element.hidden = isHidden;
      const reading = clipAxis(dataset, array, axis as AxisNumber);
      own.from.set(reading.text(low));
      own.to.set(reading.text(high));
    });
  };
  return { element, update };
}

function rangeOf(clip: View["clip"], axis: number): Range {
  return [clip?.[0][axis] ?? 0, clip?.[1][axis] ?? 1];
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
