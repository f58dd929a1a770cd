//! Toolbar at the top right: actions on the picture as a whole.

import type { Actions, Component, State } from "../app/state.ts";
import { el, iconButton } from "./dom.ts";
import { togetherButtons } from "./together/tools.ts";

export function toolbar(actions: Actions): Component {
  const projection = iconButton("box", "Orthographic projection", "O", actions.toggleProjection);
  const save = iconButton("camera", "Save a picture or film", "S", actions.openSave);
  save.setAttribute("aria-haspopup", "dialog");
  const panel = iconButton("panel", "Appearance panel", "P", actions.togglePanel);
  panel.setAttribute("aria-controls", "side");
  const together = togetherButtons(actions);
  const element = el(
    "nav",
    { class: "panel toolbar", "aria-label": "Picture" },
    iconButton("reset", "Reset the camera", "R", actions.resetCamera),
    projection,
    save,
    iconButton("link", "Copy a link to this view", "L", () => {
      actions.copyLink(false);
    }),
    ...together.elements,
    iconButton("help", "Keys and gestures", "?", actions.openHelp),
    panel,
  );
  const update = (state: State) => {
    const { camera } = state.view;
    element.hidden = state.array === null;
    projection.setAttribute("aria-pressed", String(camera !== null && "orthographic" in camera.projection));
    panel.setAttribute("aria-expanded", String(state.isPanelOpen));
    save.disabled = state.frame === null;
    together.update(state);
  };
  return { element, update };
}
