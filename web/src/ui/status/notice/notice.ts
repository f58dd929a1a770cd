//! Message over the picture: why there is no picture or no update, with an action that helps.

import type { Actions, Component, State } from "../../../app/state.ts";
import { isOneLayer } from "../../../dataset/dataset.ts";
import { texts } from "../../../texts/texts.ts";
import { applyPreset, OPAQUE, PRESETS } from "../../../transfer/edit.ts";
import { el, setText, textButton } from "../../dom.ts";
import { noticeFor, type NoticeAction } from "./state.ts";

const words = texts.notices;

export function notice(actions: Actions): Component {
  let current: State | null = null;
  const title = el("h2", {});
  const text = el("p", {});
  const isFlat = () => current?.array != null && isOneLayer(current.array);
  const helping: Readonly<Record<Exclude<NoticeAction, "token">, () => void>> = {
    retry: actions.connectNow,
    opacity: () => {
      const shape = isFlat() ? OPAQUE : PRESETS[0]?.shape;
      if (shape) actions.edit((now) => applyPreset(now, shape));
    },
    clip: () => {
      actions.change({ clip: null });
    },
    camera: actions.resetCamera,
    volume: () => {
      actions.change({ mode: "composite" });
    },
    open: actions.openData,
  };
  let action: NoticeAction | null = null;
  const help = textButton(
    "",
    () => {
      if (action !== null && action !== "token") helping[action]();
    },
    "button",
  );
  const token = tokenForm(actions);
  const spinner = el(
    "div",
    { class: "bar open-ended", "aria-hidden": "true" },
    el("span", { class: "bar-fill" }),
  );
  const element = el("div", { class: "panel notice", role: "status" }, title, text, spinner, token, help);
  const show = () => {
    const what = current ? noticeFor(current, performance.now()) : null;
    element.hidden = what === null;
    if (!what || !current) return;
    element.dataset.tone = what.tone;
    element.classList.toggle("aside", what.tone === "hint" || current.frame !== null);
    setText(title, what.title);
    setText(text, what.text);
    spinner.hidden = what.tone !== "busy";
    ({ action } = what);
    token.hidden = action !== "token";
    help.hidden = action === null || action === "token" || (action === "open" && !current.mayOpen);
    if (action !== null && action !== "token") setText(help, labelOf(action, isFlat()));
  };
  let timer: ReturnType<typeof setInterval> | undefined;
  const update = (state: State) => {
    current = state;
    show();
    clearInterval(timer);
    if (state.connection.kind === "waiting") timer = setInterval(show, 250);
  };
  return { element, update };
}

function labelOf(action: Exclude<NoticeAction, "token">, isFlat: boolean): string {
  const { opaque, ramp, ...others } = words.actions;
  return action === "opacity" ? (isFlat ? opaque : ramp) : others[action];
}

function tokenForm(actions: Actions): HTMLFormElement {
  const input = el("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": words.token.label,
    placeholder: words.token.label,
  });
  const form = el(
    "form",
    { class: "token" },
    input,
    el("button", { type: "submit", class: "button" }, words.token.connect),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim() !== "") actions.useToken(input.value.trim());
  });
  return form;
}
