//! Message over the picture: why there is no picture or no update, with an action that helps.

import { statsShown, type Actions, type Component, type State } from "../app/state.ts";
import { isDrawable, isOneLayer } from "../dataset/dataset.ts";
import { applyPreset, OPAQUE, PRESETS, isAnythingVisible } from "../transfer/edit.ts";
import { el, setText, textButton } from "./dom.ts";

interface Notice {
  readonly tone: "busy" | "bad" | "hint";
  readonly title: string;
  readonly text: string;
  readonly action: "retry" | "token" | "opacity" | null;
}

export function notice(actions: Actions): Component {
  const title = el("h2", {});
  const text = el("p", {});
  const retry = textButton("Connect now", actions.connectNow, "button");
  const opacity = textButton("Use a simple ramp", () => undefined, "button");
  const token = tokenForm(actions);
  const spinner = el(
    "div",
    { class: "bar open-ended", "aria-hidden": "true" },
    el("span", { class: "bar-fill" }),
  );
  const element = el(
    "div",
    { class: "panel notice", role: "status" },
    title,
    text,
    spinner,
    token,
    retry,
    opacity,
  );
  let current: State | null = null;
  const isFlat = () => current?.array != null && isOneLayer(current.array);
  opacity.addEventListener("click", () => {
    const shape = isFlat() ? OPAQUE : PRESETS[0]?.shape;
    if (shape) actions.edit((now) => applyPreset(now, shape));
  });
  const show = () => {
    const what = current ? noticeFor(current, performance.now()) : null;
    element.hidden = what === null;
    if (!what || !current) return;
    element.dataset.tone = what.tone;
    element.classList.toggle("aside", what.tone === "hint" || current.frame !== null);
    setText(title, what.title);
    setText(text, what.text);
    spinner.hidden = what.tone !== "busy";
    token.hidden = what.action !== "token";
    retry.hidden = what.action !== "retry";
    opacity.hidden = what.action !== "opacity";
    setText(opacity, isFlat() ? "Show every value" : "Use a simple ramp");
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

/** Notice for the present state, if there is any. */
function noticeFor(state: State, nowMillis: number): Notice | null {
  const { connection } = state;
  switch (connection.kind) {
    case "connecting":
      return state.frame
        ? null
        : { tone: "busy", title: "Connecting", text: "Connecting to the server…", action: null };
    case "waiting": {
      const seconds = Math.max(0, Math.ceil((connection.untilMillis - nowMillis) / 1000));
      const title = state.frame ? "Connection lost" : "The server cannot be reached";
      const text = `${sentence(connection.reason)} Trying again ${seconds > 0 ? `in ${seconds} s` : "now"}.`;
      return { tone: "bad", title, text, action: "retry" };
    }
    case "refused":
      if (state.together.removedBy !== null) return removed(state.together.removedBy);
      return refusal(connection.reason, connection.needsToken);
    case "unsupported":
      return { tone: "bad", title: "The viewer cannot run here", text: connection.reason, action: null };
    case "open":
      return connection.isSilent ? silent() : opened(state);
  }
}

function silent(): Notice {
  const text =
    "The server has sent nothing for some seconds: it is busy or down, or the network is interrupted. The page keeps trying.";
  return { tone: "bad", title: "The server does not respond", text, action: "retry" };
}

function removed(by: string): Notice {
  const text = `${by} removed you. To come back, ask for a new link, or enter its token.`;
  return { tone: "bad", title: "You are no longer in the session", text, action: "token" };
}

function refusal(reason: string, needsToken: boolean): Notice {
  if (!needsToken)
    return { tone: "bad", title: "The server cannot show this", text: sentence(reason), action: "retry" };
  const text = `${sentence(reason)} Open the link that the server printed, or enter its token.`;
  return { tone: "bad", title: "Access needs a token", text, action: "token" };
}

function opened(state: State): Notice | null {
  const { dataset, view, fidelity } = state;
  if (dataset && !dataset.arrays.some(isDrawable)) {
    const text = "None of its arrays has a spatial axis with more than one element.";
    return { tone: "bad", title: "Nothing to draw in this data set", text, action: null };
  }
  if (!state.frame) {
    const text = fidelity?.text ?? (dataset ? "Waiting for the first picture…" : "Reading the description…");
    if (fidelity?.state === "failed") return { tone: "bad", title: "No picture", text, action: null };
    return { tone: "busy", title: dataset ? `Opening ${dataset.name}` : "Connected", text, action: null };
  }
  const histogram = statsShown(state)?.stats.histogram ?? null;
  // Without a histogram of this step and channel the notice is unknown.
  const isKnown = histogram !== null || state.stats === null;
  if (isKnown && view.transfer && !isAnythingVisible(view.transfer, histogram)) {
    const text = "Every value that occurs is fully transparent. Raise a point of the opacity curve.";
    return { tone: "hint", title: "Nothing visible with this transfer function", text, action: "opacity" };
  }
  return null;
}

function tokenForm(actions: Actions): HTMLFormElement {
  const input = el("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": "Token",
    placeholder: "Token",
  });
  const form = el(
    "form",
    { class: "token" },
    input,
    el("button", { type: "submit", class: "button" }, "Connect"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim() !== "") actions.useToken(input.value.trim());
  });
  return form;
}

/** Makes a sentence of a message, which begins in lower case and has no final period. */
function sentence(message: string): string {
  const text = message.trim();
  if (text === "") return "";
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
