//! Initials of participants in their colors.

import { texts } from "../../texts/texts.ts";
import type { Component, State } from "../../app/state.ts";
import type { Participant } from "../../session/messages.ts";
import { initials } from "../../session/together/identity.ts";
import { el, setText } from "../dom.ts";
import { keyedList } from "./list.ts";

/** Most avatars in the header; the panel lists all. */
const MAX_AVATARS = 6;

interface Avatar {
  readonly element: HTMLElement;
  readonly update: (person: Participant) => void;
}

export function avatar(first: Participant): Avatar {
  const element = el("span", { class: "avatar", "aria-hidden": "true" });
  const update = (person: Participant) => {
    setText(element, initials(person.name));
    element.style.setProperty("--person", person.color);
    element.classList.toggle("away", person.isAway);
    element.classList.toggle("presents", person.presents);
  };
  update(first);
  return { element, update };
}

/** Avatars of the others, in the header. */
export function avatars(): Component {
  const list = el("span", { class: "avatars" });
  const more = el("span", { class: "avatars-more" });
  const element = el("p", { class: "header-people" }, list, more);
  const rows = keyedList<Participant, State>(list, (person) => String(person.id), avatar);
  const update = (state: State) => {
    const others = state.participants.filter((person) => person.id !== state.you);
    element.hidden = others.length === 0;
    rows(others.slice(0, MAX_AVATARS), state);
    const names = others.map((person) => person.name).join(", ");
    element.title = texts.together.with(names);
    const hidden = others.length - MAX_AVATARS;
    setText(more, hidden > 0 ? texts.together.andMore(hidden) : others.length === 1 ? names : "");
    list.setAttribute("role", "img");
    list.setAttribute("aria-label", texts.together.with(names));
  };
  return { element, update };
}
