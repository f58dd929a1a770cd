//! Row above the first picture: what it shows where there are several, and the axis of an image of a volume.

import { texts } from "../texts/texts.ts";
import type { Actions, State } from "../app/state.ts";
import { crosshairOf, isHidden, withShown } from "../layout/crosshair.ts";
import type { Layouts } from "../layout/layouts.ts";
import { indexText } from "../layout/place.ts";
import { planeName, type AxisNumber } from "../layout/space.ts";
import { checkbox, el, setText, textButton } from "../ui/dom.ts";
import { cellBar } from "./cell-bar.ts";
import { enlargeButton } from "./enlarge.ts";
import { isVolume } from "./pane-views.ts";

export interface MainBar {
  readonly element: HTMLElement;
  update(state: State): void;
}

/** `enlarge` shows this picture alone, or all again. */
export function mainBar(actions: Actions, layouts: Layouts, enlarge: () => void): MainBar {
  const name = el("span", { class: "pane-name" });
  let slices: State["view"]["slices"] = [];
  const planes = checkbox(texts.panes.planes, (isOn) => {
    actions.change({ slices: withShown(slices, isOn) });
  });
  planes.element.title = texts.panes.planesHint;
  const axes = ([2, 1, 0] as readonly AxisNumber[]).map((axis) => {
    const button = textButton("", () => {
      layouts.set("image", axis);
    });
    return { axis, button };
  });
  const place = el("output", { class: "pane-place" });
  const cell = cellBar((part, isMoving) => {
    if (part.array === undefined) actions.change(part, isMoving);
    else actions.showArray(part.array);
  });
  const buttons = el(
    "span",
    { class: "pane-axes", role: "group", "aria-label": texts.panes.axisOfTheImage },
    ...axes.map((a) => a.button),
  );
  const element = el(
    "div",
    { class: "pane-bar", title: texts.panes.enlargeHint },
    name,
    planes.element,
    buttons,
    place,
    cell.element,
    enlargeButton(enlarge),
  );
  const update = (state: State) => {
    const { view, array, dataset } = state;
    const { layout } = layouts;
    const isSlice = layout === "image" && array !== null && isVolume(array);
    const isGrid = layout !== "planes" && view.grid !== null;
    ({ slices } = view);
    element.hidden = array === null || (layout !== "planes" && !isSlice && !isGrid);
    setText(name, layout === "planes" ? texts.panes.volume : "");
    name.hidden = layout !== "planes";
    planes.element.hidden = layout !== "planes";
    planes.set(!isHidden(view.slices));
    buttons.hidden = place.hidden = !isSlice;
    cell.element.hidden = !isGrid;
    if (!array || !dataset) return;
    if (isGrid) cell.show(state, view);
    for (const { axis, button } of axes) {
      setText(button, planeName(array, axis));
      button.setAttribute("aria-pressed", String(axis === layouts.axis));
    }
    const axis = layouts.axis;
    setText(place, indexText(array, axis, crosshairOf(view.slices, array)[axis]));
  };
  return { element, update };
}
