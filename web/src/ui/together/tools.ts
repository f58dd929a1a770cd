//! Buttons of the toolbar, bar and keys: people, undo and redo; whom one follows; the question for a name.

import { texts } from "../../texts/texts.ts";
import { hintOf } from "../../keys/table.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import type { TogetherActions } from "../../app/together.ts";
import { el, iconButton, setText, textButton } from "../dom.ts";

export interface ToolButtons {
  readonly elements: readonly HTMLElement[];
  readonly update: (state: State) => void;
}

export function togetherButtons({ together }: Actions): ToolButtons {
  const undo = iconButton("undo", texts.together.undo, hintOf("undo"), together.undo);
  const redo = iconButton("redo", texts.together.redo, hintOf("redo"), together.redo);
  const people = iconButton("people", texts.together.people, "T", together.togglePanel);
  people.setAttribute("aria-controls", "together");
  const count = el("span", { class: "count" });
  people.append(count);
  const update = (state: State) => {
    const { isOpen, unread, undo: steps, redo: undone } = state.together;
    undo.disabled = steps === 0 || state.role === "watch";
    redo.disabled = undone === 0 || state.role === "watch";
    people.setAttribute("aria-expanded", String(isOpen));
    setText(count, unread > 0 ? String(Math.min(unread, 99)) : "");
    count.hidden = unread === 0;
    people.setAttribute(
      "aria-label",
      unread > 0 ? texts.together.newMessages(unread) : texts.together.people,
    );
  };
  return { elements: [undo, redo, people], update };
}

/** Bar that says whose view is shown, or that one presents. */
export function followBar(actions: TogetherActions): Component {
  const text = el("span", {});
  let isPresenting = false;
  const stop = textButton(texts.together.stop, () => {
    if (isPresenting) actions.present(null);
    else actions.follow(null);
  });
  const element = el("div", { class: "panel follow-bar", role: "status" }, text, stop);
  const update = (state: State) => {
    const leader = state.participants.find((person) => person.id === state.together.leader);
    const own = state.participants.find((person) => person.id === state.you);
    isPresenting = own?.presents === true;
    const followers = state.participants.filter((person) => person.follows === state.you).length;
    element.hidden = state.connection.kind !== "open" || (!leader && !isPresenting);
    if (element.hidden) return;
    element.style.setProperty("--person", (isPresenting ? own : leader)?.color ?? "");
    const { following, presentedBy, presentingTo } = texts.together;
    const whose = leader?.presents === true ? presentedBy : following;
    setText(text, isPresenting ? presentingTo(followers) : whose(leader?.name ?? ""));
    setText(stop, isPresenting ? texts.together.end : texts.together.stop);
  };
  element.hidden = true;
  return { element, update };
}

/** Question for a name: once, when it is first of use to others. */
export function nameQuestion(actions: TogetherActions): Component {
  const input = el("input", {
    type: "text",
    "aria-label": texts.together.yourName,
    placeholder: texts.together.yourName,
    maxlength: 60,
    autocomplete: "name",
  });
  const form = el(
    "form",
    { class: "panel name-question", "aria-label": texts.together.yourName },
    el("label", {}, texts.together.nameQuestion),
    el(
      "div",
      { class: "together-form" },
      input,
      el("button", { type: "submit", class: "button" }, texts.together.save),
      textButton(texts.together.skip, () => {
        actions.rename("");
      }),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    actions.rename(input.value);
  });
  const update = (state: State) => {
    const isAlone = state.participants.length < 2;
    form.hidden =
      state.together.name !== null || isAlone || state.together.isOpen || state.connection.kind !== "open";
  };
  form.hidden = true;
  return { element: form, update };
}

/** Listens to the pointer over the picture: its position for others, and clicks that pin notes. */
export function listenToPointer(
  canvas: HTMLCanvasElement,
  target: {
    pointAt(at: { x: number; y: number } | null): void;
    clickAt(at: { x: number; y: number }): boolean;
  },
): void {
  const at = (event: PointerEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointermove", (event) => {
    target.pointAt(at(event));
  });
  canvas.addEventListener("pointerleave", () => {
    target.pointAt(null);
  });
  // Before the gestures, which would begin a rotation.
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button === 0 && target.clickAt(at(event))) event.stopImmediatePropagation();
    },
    { capture: true },
  );
}
