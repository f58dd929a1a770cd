//! Buttons of the arrangements of the pictures, and the size of the grid of linked pictures.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import type { Layouts } from "../../layout/layouts.ts";
import { resizedGrid } from "../../panes/pane-views.ts";
import { MAX_GRID_SIDE, type Layout } from "../../view/schema.ts";
import { el, setOptions, svg } from "../dom.ts";

/** Name, key and icon of each arrangement. */
const BUTTONS: readonly {
  readonly layout: Layout;
  readonly label: string;
  readonly key: string;
  readonly path: string;
}[] = [
  {
    layout: "space",
    label: texts.layout.space,
    key: "V",
    path: "M10 3l6 3.4v7.2L10 17l-6-3.4V6.4zM4 6.4l6 3.4 6-3.4M10 9.8V17",
  },
  {
    layout: "image",
    label: texts.layout.image,
    key: "I",
    path: "M3.5 5h13v10h-13zM3.5 12.5l3.5-3 3 2.5 3-3.5 3.5 3",
  },
  {
    layout: "planes",
    label: texts.layout.planes,
    key: "M",
    path: "M3.5 3.5h13v13h-13zM10 3.5v13M3.5 10h13",
  },
];

const SIZES = Array.from({ length: MAX_GRID_SIDE ** 2 }, (_, i) => ({
  rows: Math.floor(i / MAX_GRID_SIDE) + 1,
  columns: (i % MAX_GRID_SIDE) + 1,
}));

export function layoutBar(actions: Actions, layouts: Layouts): Component {
  const buttons = BUTTONS.map(({ layout, label, key, path }) => {
    const icon = svg(
      "svg",
      { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" },
      svg("path", { d: path }),
    );
    const button = el(
      "button",
      { type: "button", class: "icon-button", "aria-label": label, "data-layout": layout },
      icon,
    );
    button.addEventListener("click", () => {
      layouts.set(layout);
    });
    return { layout, button, hint: `${label} (${key})` };
  });
  const size = el("select", {
    id: "grid",
    "aria-label": texts.layout.grid,
    title: texts.layout.gridHint,
  });
  let state: State | null = null;
  size.addEventListener("change", () => {
    const [rows = 1, columns = 1] = size.value.split("x").map(Number);
    if (state?.dataset && state.array)
      layouts.setGrid(resizedGrid(state.view.grid, rows, columns, state.dataset, state.array, state.view));
  });
  const tied = el(
    "button",
    {
      type: "button",
      class: "text-button",
      id: "tied",
      title: texts.layout.tiedHint,
    },
    texts.layout.tied,
  );
  tied.addEventListener("click", () => {
    const grid = state?.view.grid;
    if (grid) actions.change({ grid: { ...grid, tied: grid.tied === false } });
  });
  const element = el("div", {
    class: "layout-bar",
    role: "group",
    "aria-label": texts.layout.arrangement,
  });
  element.append(...buttons.map(({ button }) => button), el("label", { class: "select" }, size), tied);
  const update = (next: State) => {
    state = next;
    const { grid } = next.view;
    const { layout } = layouts;
    for (const { layout: own, button, hint } of buttons) {
      button.disabled = !layouts.isPossible(own);
      button.title = button.disabled ? texts.layout.notPossible(hint) : hint;
      button.setAttribute("aria-pressed", String(own === layout));
    }
    setOptions(
      size,
      SIZES.map(({ rows, columns }) => ({ value: `${rows}x${columns}`, label: `${rows} × ${columns}` })),
      grid ? `${grid.rows}x${grid.columns}` : "1x1",
    );
    size.disabled = layout === "planes";
    size.title = size.disabled ? texts.layout.noGridOfPlanes : texts.layout.gridHint;
    tied.hidden = grid === null || layout === "planes";
    tied.setAttribute("aria-pressed", String(grid?.tied !== false));
  };
  return { element, update };
}
