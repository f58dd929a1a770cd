//! Marks over the picture, and their menu in the toolbar. The SVG takes no pointer except on the arms of the cross.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { checkbox, el, svg } from "../dom.ts";
import { composeMarks } from "./compose.ts";
import { drawSvg, font, markColors, paintMarks } from "./draw.ts";
import { MARKS } from "./settings.ts";
import { estimate, type Box, type Measure, type Shape } from "./shapes.ts";

/** Maximum number of texts whose width is remembered. */
const MAX_MEASURED = 2000;

export interface Marks extends Component {
  /** Paints the marks of a state into a saved picture of this size, pixels, if the user wants them. */
  readonly paint: (
    context: OffscreenCanvasRenderingContext2D,
    picture: { readonly width: number; readonly height: number },
    state: State,
  ) => void;
}

/** The marks over the picture on `canvas`. */
export function marksOverlay(actions: Actions, canvas: HTMLCanvasElement): Marks {
  const root = svg("svg", { class: "marks", "aria-label": texts.marks.marksOnThePicture });
  const element = el("div", { class: "marks-layer" }, root);
  const measure = measureText();
  let drawn = "";
  const update = (state: State) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const shapes = composeMarks(state, state.marks, { width, height }, panelBoxes(left, top), measure);
    const colors = markColors(state.view.background);
    // Most states leave the marks as they are; an arm keeps the focus then.
    const key = JSON.stringify([width, height, shapes, colors]);
    if (key === drawn) return;
    drawn = key;
    const focused = document.activeElement?.closest(".mark-arm")?.getAttribute("aria-label");
    root.setAttribute("viewBox", `0 0 ${Math.max(1, width)} ${Math.max(1, height)}`);
    root.setAttribute("width", String(width));
    root.setAttribute("height", String(height));
    drawSvg(root, shapes, colors, actions.axisView);
    if (focused != null)
      for (const arm of root.querySelectorAll<SVGElement>(".mark-arm"))
        if (arm.getAttribute("aria-label") === focused) arm.focus();
  };
  const paint: Marks["paint"] = (context, picture, state) => {
    if (!state.marks.saved) return;
    // The layout of the page, without its panels.
    const scale = picture.width / Math.max(1, canvas.getBoundingClientRect().width);
    const size = { width: picture.width / scale, height: picture.height / scale };
    const shapes: Shape[] = composeMarks(state, state.marks, size, [], measure);
    paintMarks(context, shapes, markColors(state.view.background), scale);
  };
  return { element, update, paint };
}

/** Panels of the page, and the title of the first of several pictures. */
const PANELS = ".overlay .panel:not(.marks-menu):not([hidden]), .paned [data-pane=main] .pane-bar";

/** Visible panels, in pixels from the upper left corner of the picture, whose place in the page is given. */
function panelBoxes(fromLeft: number, fromTop: number): Box[] {
  const panels = document.querySelectorAll<HTMLElement>(PANELS);
  return Array.from(panels, (panel) => panel.getBoundingClientRect())
    .filter(({ width, height }) => width > 0 && height > 0)
    .map(({ left, top, right, bottom }) => ({
      left: left - fromLeft,
      top: top - fromTop,
      right: right - fromLeft,
      bottom: bottom - fromTop,
    }));
}

/** Measures text with the font of the marks. */
function measureText(): Measure {
  const context = document.createElement("canvas").getContext("2d");
  if (!context) return estimate;
  context.font = font(false);
  const known = new Map<string, number>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= MAX_MEASURED) known.clear();
    const { width } = context.measureText(text);
    known.set(text, width);
    return width;
  };
}

/** Button of the toolbar, and the menu that it opens. */
export function marksMenu(actions: Actions): Component {
  const button = el("button", {
    type: "button",
    class: "icon-button",
    id: "marks-button",
    "aria-label": texts.marks.marks,
    title: texts.marks.marksHint,
    "aria-haspopup": "true",
    "aria-expanded": "false",
  });
  button.append(
    svg(
      "svg",
      { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" },
      svg("path", { d: "M4 3.5v12.5h12.5M4 6h2M4 9.5h2M4 13h2M8 16v-2M11.5 16v-2M15 16v-2" }),
    ),
  );
  let settings: State["marks"] | null = null;
  const boxes = MARKS.map(({ name, label, title }) => {
    const box = checkbox(label, (isOn) => {
      if (settings) actions.setMarks({ ...settings, [name]: isOn });
    });
    box.element.title = title;
    box.element.dataset.mark = name;
    return { name, ...box };
  });
  const menu = el(
    "div",
    { class: "panel marks-menu", role: "group", "aria-label": texts.marks.marksOnThePicture, hidden: true },
    ...boxes.map((box) => box.element),
  );
  const open = (isOpen: boolean) => {
    menu.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => {
    open(menu.hidden === true);
  });
  const element = el("div", { class: "marks-control" }, button, menu);
  document.addEventListener("pointerdown", (event) => {
    if (event.target instanceof Node && !element.contains(event.target)) open(false);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || menu.hidden) return;
    open(false);
    button.focus();
  });
  const update = ({ marks }: State) => {
    settings = marks;
    for (const { name, set } of boxes) set(marks[name]);
  };
  return { element, update };
}
