//! Toolbar at the top right: actions on the picture as a whole, and on the page. On a narrow page only the first ones are shown, the
//! others after a button.

import type { Actions, Component, State } from "../../app/state.ts";
import { hintOf } from "../../keys/table.ts";
import { texts } from "../../texts/texts.ts";
import { displayMenu } from "./display.ts";
import { el, iconButton } from "../dom.ts";
import { togetherButtons } from "../together/tools.ts";

const words = texts.toolbar;

export function toolbar(actions: Actions): Component {
  const reset = iconButton("reset", words.resetCamera, hintOf("resetCamera"), actions.resetCamera);
  reset.dataset.primary = "";
  const projection = iconButton("box", words.projection, hintOf("projection"), actions.toggleProjection);
  const save = iconButton("camera", words.save, hintOf("save"), actions.openSave);
  save.setAttribute("aria-haspopup", "dialog");
  const panel = iconButton("panel", words.panel, hintOf("panel"), actions.togglePanel);
  panel.setAttribute("aria-controls", "side");
  const together = togetherButtons(actions);
  const open = iconButton("open", words.open, hintOf("open"), actions.openData);
  const fullscreen = iconButton(
    "fullscreen",
    words.fullscreen,
    hintOf("fullscreen"),
    actions.toggleFullscreen,
  );
  const display = displayMenu(actions);
  const more = iconButton("more", words.more, "", () => {
    expand(!element.classList.contains("expanded"));
  });
  more.classList.add("more");
  const element = el(
    "nav",
    { class: "panel toolbar", "aria-label": words.label },
    open,
    reset,
    projection,
    save,
    iconButton("link", words.link, hintOf("copyLink"), () => {
      actions.copyLink(false);
    }),
    ...together.elements,
    display.element,
    fullscreen,
    iconButton("help", words.help, hintOf("help"), actions.openHelp),
    panel,
    more,
  );
  const expand = (isExpanded: boolean) => {
    element.classList.toggle("expanded", isExpanded);
    more.setAttribute("aria-expanded", String(isExpanded));
  };
  expand(false);
  element.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest("button") : null;
    const isMenu =
      button?.hasAttribute("aria-haspopup") === true || button?.closest(".menu, .marks-menu") != null;
    if (button && button !== more && !isMenu) expand(false);
  });
  document.addEventListener("pointerdown", (event) => {
    if (event.target instanceof Node && !element.contains(event.target)) expand(false);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    expand(false);
  });
  document.addEventListener("fullscreenchange", () => {
    fullscreen.setAttribute("aria-pressed", String(document.fullscreenElement !== null));
  });
  let hadPeople = false;
  const update = (state: State) => {
    const { camera } = state.view;
    if (state.together.isOpen && !hadPeople) expand(false);
    hadPeople = state.together.isOpen;
    element.hidden = state.array === null && !(state.mayOpen && state.connection.kind === "open");
    projection.setAttribute("aria-pressed", String(camera !== null && "orthographic" in camera.projection));
    panel.setAttribute("aria-expanded", String(state.isPanelOpen));
    save.disabled = state.frame === null;
    open.hidden = !state.mayOpen || state.role !== "own";
    display.update(state);
    together.update(state);
  };
  return { element, update };
}
