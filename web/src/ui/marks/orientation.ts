//! Orientation: letters at the borders for medical data, and a cross of the axes of the world in a corner, whose arms can be clicked. Pure.

import { texts } from "../../texts/texts.ts";
import type { Vec3 } from "../../view/schema.ts";
import { isHeadOn } from "./axes.ts";
import type { Layout } from "./layout.ts";
import type { Lens } from "./lens.ts";
import { GAP, LINE, type Box, type Measure, type Shape } from "./shapes.ts";
import type { Volume } from "./volume.ts";

/** Letters of the directions of a person, towards -x and +x, and so on. */
const LETTERS: readonly (readonly [string, string])[] = [
  ["L", "R"],
  ["P", "A"],
  ["I", "S"],
];
/** Smallest component of a direction that has a letter. */
const LEAST = 0.35;
const MAX_LETTERS = 2;
/** Places that are tried for a letter, from the border inwards. */
const MAX_STEPS = 8;
/** Colors of the axes x, y, z: distinct, also for most color-blind viewers, on light and dark grounds. */
const COLORS = ["#d55e00", "#2b9348", "#3a86e0"] as const;
const ARM = 26;
const DISK = 8;
/** Longest name of an axis on an arm. */
const MAX_NAME = 2;

/** Letters of a direction in anatomical space, the largest part first: `R`, `RA`. */
export function lettersOf(direction: Vec3): string {
  const parts = direction.map((part, axis) => ({
    size: Math.abs(part),
    letter: LETTERS[axis]?.[part > 0 ? 1 : 0] ?? "",
  }));
  const shown = parts.filter(({ size }) => size >= LEAST).sort((a, b) => b.size - a.size);
  return shown
    .slice(0, MAX_LETTERS)
    .map(({ letter }) => letter)
    .join("");
}

export function orientationMarks(volume: Volume, lens: Lens, layout: Layout, measure: Measure): Shape[] {
  const letters = volume.isAnatomical ? borderLetters(lens, layout, measure) : [];
  return [...letters, ...axisCross(volume, lens, layout)];
}

function borderLetters({ right, up }: Lens, layout: Layout, measure: Measure): Shape[] {
  const opposite = (v: Vec3): Vec3 => [-v[0], -v[1], -v[2]];
  const sides = [
    { text: lettersOf(opposite(right)), inwards: { x: 1, y: 0 } },
    { text: lettersOf(right), inwards: { x: -1, y: 0 } },
    { text: lettersOf(up), inwards: { x: 0, y: 1 } },
    { text: lettersOf(opposite(up)), inwards: { x: 0, y: -1 } },
  ];
  return sides.map(({ text, inwards }): Shape => {
    const half = { x: measure(text) / 2 + 3, y: LINE / 2 };
    /** In the middle of a border of `area`, or some steps inwards. */
    const placed = (area: Box, step: number) => {
      const [wide, high] = [area.right - area.left, area.bottom - area.top];
      const at = {
        x: (area.left + area.right) / 2 - inwards.x * (wide / 2 - half.x - GAP - step * LINE),
        y: (area.top + area.bottom) / 2 - inwards.y * (high / 2 - half.y - step * LINE),
      };
      const [left, right] = [at.x - half.x, at.x + half.x];
      return { at, box: { left, right, top: at.y - half.y, bottom: at.y + half.y } };
    };
    // At the border of the picture if no panel is there, and beside the texts of axes, which are placed before.
    const places = [layout.area, layout.free].flatMap((area) =>
      Array.from({ length: MAX_STEPS }, (_, step) => placed(area, step)),
    );
    const { at, box } = places.find((place) => layout.isFree(place.box)) ?? placed(layout.free, 0);
    layout.take(box);
    return { kind: "text", at, text, anchor: "middle", isBold: true };
  });
}

function axisCross(volume: Volume, lens: Lens, layout: Layout): Shape[] {
  const side = 2 * (ARM + DISK + 2);
  const notOverData = (box: Parameters<Layout["take"]>[0]) => !layout.isOverData(box);
  const place =
    layout.corner(["right", "bottom"], [side, side], notOverData) ??
    layout.corner(["right", "bottom"], [side, side]);
  if (!place) return [];
  layout.take(place);
  const center = { x: (place.left + place.right) / 2, y: (place.top + place.bottom) / 2 };
  const arms = ([0, 1, 2] as const).map((axis) => ({
    axis,
    x: lens.right[axis],
    y: -lens.up[axis],
    /** Towards the eye. */
    toward: -lens.forward[axis],
  }));
  // The nearest arm is drawn last. Looking along it from there again looks from the other side.
  const isSeenStraight = (toward: number) => toward > 0.9998;
  return arms
    .toSorted((a, b) => a.toward - b.toward)
    .flatMap(({ axis, x, y, toward }): Shape[] => {
      const tip = { x: center.x + x * ARM, y: center.y + y * ARM };
      const side = isSeenStraight(toward) ? `−${nameOf(volume, axis, lens)}` : wordOf(volume, axis, lens);
      return [
        { kind: "line", from: center, to: tip, color: COLORS[axis], width: 2.5 },
        {
          kind: "disk",
          at: tip,
          radius: DISK,
          color: COLORS[axis],
          text: nameOf(volume, axis, lens),
          title: texts.marks.lookFrom(side),
          axisView: 2 * axis + (isSeenStraight(toward) ? 1 : 0),
        },
      ];
    });
}

function nameOf(volume: Volume, axis: 0 | 1 | 2, lens: Lens): string {
  if (volume.isAnatomical) return LETTERS[axis]?.[1] ?? "";
  if (volume.isMap && axis < 2) return axis === 0 ? "E" : "N";
  if (volume.isMap && isHeadOn(volume, lens)) return "z";
  const own = volume.axes.find(({ world, count }) => world === axis && count > 1)?.name ?? "";
  return own !== "" && own.length <= MAX_NAME ? own : ("xyz"[axis] ?? "");
}

function wordOf(volume: Volume, axis: 0 | 1 | 2, lens: Lens): string {
  if (volume.isAnatomical) return texts.marks.sides[axis] ?? "";
  return `+${nameOf(volume, axis, lens)}`;
}
