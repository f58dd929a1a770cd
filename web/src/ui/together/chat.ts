//! Chat of the session.

import { texts } from "../../texts/texts.ts";
import type { Component, State } from "../../app/state.ts";
import type { TogetherActions } from "../../app/together.ts";
import { MAX_CHAT_LINE_BYTES, type ChatLine } from "../../session/together/content.ts";
import { el, setText } from "../dom.ts";
import { keyedList } from "./list.ts";

/** Distance from the end, pixels, within which the list follows new lines. */
const NEAR_END_PIXELS = 40;

export function chat(actions: TogetherActions): Component {
  const list = el("ol", { class: "chat", role: "log", "aria-label": texts.together.chat, tabindex: 0 });
  const input = el("input", {
    type: "text",
    "aria-label": texts.together.messageToAll,
    placeholder: texts.together.messageToAll,
    autocomplete: "off",
    // A character has up to four bytes.
    maxlength: MAX_CHAT_LINE_BYTES / 4,
  });
  const send = el("button", { type: "submit", class: "button" }, texts.together.send);
  const form = el("form", { class: "together-form" }, input, send);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text === "") return;
    actions.edit({ op: "say", text });
    input.value = "";
  });
  const rows = keyedList<ChatLine, State>(list, (line) => line.id, row);
  const empty = el("p", { class: "hint" }, texts.together.noMessagesYet);
  const element = el("section", { class: "group" }, el("h2", {}, texts.together.chat), empty, list, form);
  let shown: readonly ChatLine[] | null = null;
  const update = (state: State) => {
    const lines = state.together.content.chat;
    if (lines === shown) return;
    shown = lines;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END_PIXELS;
    rows(lines, state);
    empty.hidden = lines.length > 0;
    list.hidden = lines.length === 0;
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  };
  return { element, update };
}

function row(line: ChatLine) {
  const author = el("b", {});
  const text = el("span", {});
  const element = el("li", {}, author, " ", text);
  const update = (next: ChatLine) => {
    setText(author, next.author.name);
    author.style.color = next.author.color;
    setText(text, next.text);
    element.title = new Date(next.atMillis).toLocaleTimeString();
  };
  update(line);
  return { element, update };
}
