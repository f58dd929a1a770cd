//! Panel of the people in the session: the list of participants, following and presenting, chat, notes and bookmarks.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { el, iconButton } from "../dom.ts";
import { bookmarkList } from "./bookmarks.ts";
import { chat } from "./chat.ts";
import { noteList } from "./notes.ts";
import { peopleList } from "./people.ts";

export function togetherPanel(actions: Actions): Component {
  const { together } = actions;
  const components = [peopleList(together), chat(together), noteList(together), bookmarkList(together)];
  const close = iconButton("close", texts.together.hideThePeoplePanel, "T", together.togglePanel);
  close.classList.add("small", "side-close");
  const element = el(
    "aside",
    { class: "panel together", id: "together", "aria-label": texts.together.people },
    close,
    ...components.map((component) => component.element),
  );
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    together.togglePanel();
    document.querySelector<HTMLElement>("[aria-controls=together]")?.focus();
  });
  const update = (state: State) => {
    const isOpen = state.together.isOpen && state.connection.kind !== "refused";
    const hasOpened = isOpen && element.hidden;
    element.hidden = !isOpen;
    if (!isOpen) return;
    for (const component of components) component.update(state);
    if (hasOpened) close.focus({ preventScroll: true });
  };
  element.hidden = true;
  return { element, update };
}
