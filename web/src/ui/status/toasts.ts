//! Short messages that disappear after some seconds.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { el, iconButton, textButton } from "../dom.ts";

export function toasts(actions: Actions): Component {
  const element = el("div", { class: "toasts", role: "log", "aria-live": "polite" });
  let key = "";
  const update = (state: State) => {
    const next = state.toasts.map((toast) => toast.id).join(" ");
    if (next === key) return;
    key = next;
    element.replaceChildren(
      ...state.toasts.map((toast) => {
        const box = el("div", { class: `panel toast ${toast.severity}` }, el("p", {}, toast.text));
        if (toast.action) box.append(textButton(toast.action.label, toast.action.run));
        const dismiss = iconButton("close", texts.toasts.dismiss, "", () => {
          actions.dismiss(toast.id);
        });
        dismiss.classList.add("small");
        box.append(dismiss);
        return box;
      }),
    );
  };
  return { element, update };
}
