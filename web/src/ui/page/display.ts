//! Menu of the toolbar: background of the picture, colors of the page, and controllers.

import type { Actions, Component, State } from "../../app/state.ts";
import { BACKGROUNDS, backgroundName, THEMES } from "../../app/theme.ts";
import { texts } from "../../texts/texts.ts";
import { el, iconButton, setText, textButton } from "../dom.ts";

export function displayMenu(actions: Actions): Component {
  const words = texts.display;
  const backgrounds = BACKGROUNDS.map(({ name, color }) => {
    const button = el(
      "button",
      { type: "button", class: "background-choice", "data-background": name },
      el("span", {
        class: "background-swatch",
        style: `background: rgb(${color.join(" ")})`,
        "aria-hidden": "true",
      }),
      words.backgrounds[name],
    );
    button.addEventListener("click", () => {
      actions.change({ background: color });
    });
    return { name, button };
  });
  const theme = el(
    "select",
    { id: "theme" },
    ...THEMES.map((name) => el("option", { value: name }, words.themes[name])),
  );
  theme.addEventListener("change", () => {
    const chosen = THEMES.find((name) => name === theme.value);
    if (chosen) actions.setTheme(chosen);
  });
  const gamepad = el("p", { class: "hint" });
  const mouse = textButton(words.spaceMouse, actions.connectSpaceMouse);
  const mouseState = el("p", { class: "hint" });
  const phone = textButton(words.phone, actions.inviteController);
  const menu = el(
    "div",
    { class: "panel menu display-menu", role: "group", "aria-label": words.label, hidden: true },
    el("h2", {}, words.background),
    el(
      "div",
      { class: "backgrounds", role: "group", "aria-label": words.background },
      ...backgrounds.map((b) => b.button),
    ),
    el("label", { class: "menu-row" }, el("span", {}, words.theme), el("span", { class: "select" }, theme)),
    el("h2", {}, words.controllers),
    gamepad,
    mouseState,
    mouse,
    phone,
  );
  const button = iconButton("display", words.label, "", () => {
    open(menu.hidden === true);
  });
  button.title = texts.toolbar.display;
  button.setAttribute("aria-haspopup", "true");
  const open = (isOpen: boolean) => {
    menu.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  open(false);
  const element = el("div", { class: "menu-control", id: "display" }, button, menu);
  document.addEventListener("pointerdown", (event) => {
    if (event.target instanceof Node && !element.contains(event.target)) open(false);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || menu.hidden) return;
    open(false);
    button.focus();
  });
  // In the sheet of a narrow page, which closes without it.
  element.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !element.contains(relatedTarget)) open(false);
  });
  phone.addEventListener("click", () => {
    open(false);
  });
  const update = ({ view, theme: chosen, devices }: State) => {
    const shown = backgroundName(view.background);
    for (const { name, button: choice } of backgrounds)
      choice.setAttribute("aria-pressed", String(name === shown));
    if (document.activeElement !== theme) theme.value = chosen;
    setText(gamepad, devices.gamepad === null ? words.gamepadOff : words.gamepadOn(devices.gamepad));
    mouse.hidden = devices.spaceMouse !== null || !devices.mayUseSpaceMouse;
    const found = devices.spaceMouse === null ? words.spaceMouseOff : words.spaceMouseOn(devices.spaceMouse);
    setText(mouseState, mouse.hidden ? found : "");
    mouseState.hidden = !mouse.hidden;
  };
  return { element, update };
}
