//! The page of a phone as controller: the picture as a touch pad, and large buttons for time and distance.

import type { Actions, Component, State } from "../../app/state.ts";
import { zoom, type Size } from "../../camera/camera.ts";
import { ControllingPhone, type ControllerCode } from "../../session/controller.ts";
import { texts } from "../../texts/texts.ts";
import { el, setIcon, setText, svg } from "../dom.ts";

const words = texts.controller;
/** Scale of one touch of the buttons for distance. */
const ZOOM_STEP = 1.25;

export interface ControllerPage {
  readonly actions: Actions;
  readonly state: () => State;
  readonly size: () => Size;
  readonly diagonal: () => number;
  readonly stepTime: (by: number) => void;
}

export function controllerBar(page: ControllerPage, { owner }: ControllerCode): Component {
  const phone = new ControllingPhone(owner);
  const status = el("p", { class: "controller-status", role: "status" });
  const near = (factor: number) => () => {
    const { camera } = page.state().view;
    if (camera) page.actions.change({ camera: zoom(camera, factor, page.diagonal(), page.size()) });
  };
  const back = button(words.back, "M13 5l-6 5 6 5M6 5v10", () => {
    page.stepTime(-1);
  });
  const play = button(words.play, "M6.5 4.5l9 5.5-9 5.5z", page.actions.togglePlay);
  const forward = button(words.forward, "M7 5l6 5-6 5M14 5v10", () => {
    page.stepTime(1);
  });
  const element = el(
    "div",
    { class: "controller" },
    status,
    el("p", { class: "controller-hint" }, words.padHint),
    el(
      "nav",
      { class: "panel controller-bar", "aria-label": words.title },
      back,
      play,
      forward,
      button(words.farther, "M4 10h12", near(ZOOM_STEP)),
      button(words.nearer, "M4 10h12M10 4v12", near(1 / ZOOM_STEP)),
      button(words.reset, "M4 10a6 6 0 1 0 2-4.5M4 3.5V7h3.5", page.actions.resetCamera),
    ),
  );
  const update = (state: State) => {
    const isOpen = state.connection.kind === "open";
    const leader = isOpen ? phone.next(state.you, state.participants) : null;
    if (leader !== null) page.actions.together.follow(leader);
    const texts = { alone: words.alone, resting: words.resting, steering: words.steering };
    setText(status, state.role === "watch" ? words.watching : texts[phone.phase]);
    status.hidden = !isOpen;
    element.dataset.phase = phone.phase;
    setIcon(play, state.isPlaying ? "pause" : "play");
  };
  return { element, update };
}

function button(label: string, path: string, run: () => void): HTMLButtonElement {
  const icon = svg(
    "svg",
    { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: path }),
  );
  const made = el(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label },
    icon,
  );
  made.addEventListener("click", run);
  return made;
}
