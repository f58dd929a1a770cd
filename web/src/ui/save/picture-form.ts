//! Form for a picture of any size.

import { texts } from "../../texts/texts.ts";
import type { State } from "../../app/state.ts";
import { BACKGROUNDS } from "../../app/theme.ts";
import type { Size } from "../../camera/camera.ts";
import type { JsonObject } from "../../json.ts";
import type { ShownPane } from "../../panes/panes.ts";
import type { Vec3, View } from "../../view/schema.ts";
import { checkbox, el } from "../dom.ts";
import { choice, field, numberInput } from "./fields.ts";
import { around, MAX_SIDE, pictureSizes, placesIn, readSide } from "./sizes.ts";

/** Backgrounds of a saved picture, by the names that `corridor render` has for them. */
const CHOICES: readonly (readonly [name: string, label: string, color: Vec3 | null])[] = [
  ["shown", texts.save.asShown, null],
  ["transparent", texts.save.transparent, null],
  ...BACKGROUNDS.map(({ name, color }) => [name, texts.display.backgrounds[name], color] as const),
];

/** Picture that the form asks for. */
export interface PictureWish {
  readonly size: Size;
  readonly view: View;
  readonly isTransparent: boolean;
  readonly hasMarks: boolean;
  /** Pictures to put side by side. */
  readonly panes: readonly ShownPane[];
}

export interface PictureForm {
  readonly element: HTMLElement;
  update(state: State, panes: readonly ShownPane[]): void;
  /** Null for a size that a picture cannot have. */
  wish(state: State): PictureWish | null;
}

/** The form; `changed` is called after every change. */
export function pictureForm(changed: () => void): PictureForm {
  let panes: readonly ShownPane[] = [];
  let screen: Size = { width: 1, height: 1 };
  const which = choice(texts.save.pictures, () => {
    fillSizes();
    changed();
  });
  const sizes = choice(texts.save.size, () => {
    applySize();
    changed();
  });
  const [width, height] = [
    numberInput(texts.save.width, 1, MAX_SIDE, 1),
    numberInput(texts.save.height, 1, MAX_SIDE, 1),
  ];
  const typed = () => {
    sizes.select.value = "own";
    changed();
  };
  width.addEventListener("input", typed);
  height.addEventListener("input", typed);
  const background = choice(texts.save.background, changed);
  background.setOptions(CHOICES.map(([value, label]) => ({ value, label })));
  let hasMarks = true;
  const marks = checkbox(texts.save.annotations, (isOn) => {
    hasMarks = isOn;
    changed();
  });
  marks.set(hasMarks);
  const element = el(
    "div",
    { class: "save-form" },
    which.element,
    sizes.element,
    field(texts.save.pixels, el("span", { class: "save-size" }, width, el("span", {}, "×"), height)),
    background.element,
    marks.element,
  );

  const chosen = (): readonly ShownPane[] => {
    const value = which.value();
    return value === "all" ? panes : panes.slice(Number(value), Number(value) + 1);
  };
  /** Size of the chosen pictures on the screen, in its own pixels. */
  const shownSize = (): Size => {
    const shown = chosen();
    if (panes.length < 2 || shown.length === 0) return screen;
    const { width: w, height: h } = around(shown.map(({ place }) => place));
    const ratio = window.devicePixelRatio;
    return { width: Math.max(1, Math.round(w * ratio)), height: Math.max(1, Math.round(h * ratio)) };
  };
  const applySize = () => {
    const size = pictureSizes(shownSize()).find(({ id }) => id === sizes.value())?.size;
    if (!size) return;
    width.value = String(size.width);
    height.value = String(size.height);
  };
  const fillSizes = () => {
    const own = { value: "own", label: texts.save.other };
    sizes.setOptions([...pictureSizes(shownSize()).map(({ id, label }) => ({ value: id, label })), own]);
    applySize();
  };

  return {
    element,
    update(state, shown) {
      panes = shown;
      screen = state.screen;
      which.element.hidden = panes.length < 2;
      which.setOptions([
        { value: "all", label: texts.save.all(panes.length.toString()) },
        ...panes.map(({ name }, number) => ({ value: String(number), label: name })),
      ]);
      fillSizes();
    },
    wish({ view }) {
      const [w, h] = [readSide(width.value), readSide(height.value)];
      if (w === null || h === null) return null;
      const name = background.value();
      const color = CHOICES.find(([own]) => own === name)?.[2] ?? null;
      const shown = chosen();
      const [only] = shown;
      const own = shown.length === 1 ? (only?.view ?? view) : view;
      return {
        size: { width: w, height: h },
        view: color ? { ...own, background: color } : own,
        isTransparent: name === "transparent",
        hasMarks,
        panes: shown.length > 1 ? shown : [],
      };
    },
  };
}

/** Fields of a view for the node; null goes back to the default. */
export function allFields(view: View): JsonObject {
  return Object.fromEntries(Object.entries(view).filter(([name]) => name !== "other"));
}

/** Parameters of `still`. */
export function stillParameters(wish: PictureWish, participant: number | null): JsonObject {
  const places = placesIn(
    wish.panes.map(({ place }) => place),
    wish.size,
  );
  const panes = wish.panes.map(({ view }, number) => ({
    view: allFields({ ...(view ?? wish.view), background: wish.view.background }),
    ...places[number],
  }));
  return {
    ...(participant === null ? {} : { participant }),
    view: allFields(wish.view),
    ...wish.size,
    annotations: wish.hasMarks,
    transparent: wish.isTransparent,
    panes: panes,
  };
}
