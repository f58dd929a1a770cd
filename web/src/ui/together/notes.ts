//! Notes pinned to places of the data.

import { texts } from "../../texts/texts.ts";
import type { Component, State } from "../../app/state.ts";
import type { TogetherActions } from "../../app/together.ts";
import { MAX_NOTE_TEXT_BYTES, type PinnedNote } from "../../session/together/content.ts";
import { textOr } from "../../json.ts";
import { el, setText, textButton } from "../dom.ts";
import { keyedList } from "./list.ts";

export function noteList(actions: TogetherActions): Component {
  const pin = textButton(texts.together.pinToAPlace, actions.togglePinning, "button");
  pin.title = texts.together.pinHint;
  const whole = textButton(texts.together.noteOnThisView, actions.draftNote, "button");
  const draft = textForm(texts.together.noteText, texts.together.pin, actions.saveDraft, actions.cancelDraft);
  const list = el("ol", { class: "notes" });
  const rows = keyedList<PinnedNote, State>(list, (note) => note.id, row(actions));
  const json = textButton(texts.together.saveAsJson, () => {
    actions.saveNotes("json");
  });
  const markdown = textButton(texts.together.saveAsMarkdown, () => {
    actions.saveNotes("markdown");
  });
  const hint = el("p", { class: "hint", role: "status" });
  const exports = el("div", { class: "together-actions" }, json, markdown);
  const tools = el("div", { class: "together-actions" }, pin, whole);
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, texts.together.notes),
    tools,
    hint,
    draft.element,
    list,
    exports,
  );
  let isDrafting = false;
  const update = (state: State) => {
    const { content, draftPlace, isPinning } = state.together;
    tools.hidden = state.role === "watch";
    pin.setAttribute("aria-pressed", String(isPinning));
    setText(hint, hintFor(state));
    hint.hidden = hint.textContent === "";
    draft.element.hidden = draftPlace === undefined;
    if (draftPlace !== undefined && !isDrafting) draft.open("");
    isDrafting = draftPlace !== undefined;
    rows(content.notes, state);
    exports.hidden = content.notes.length === 0;
  };
  return { element, update };
}

function hintFor(state: State): string {
  const { content, draftPlace, isPinning } = state.together;
  if (isPinning) return texts.together.clickThePlace;
  if (draftPlace) return texts.together.notePlace(draftPlace.map((x) => Number(x.toPrecision(4))).join(", "));
  if (draftPlace === null) return texts.together.onTheWholeView;
  return content.notes.length === 0 ? texts.together.notesStay : "";
}

function row(actions: TogetherActions) {
  return (first: PinnedNote) => {
    let note = first;
    const go = el("button", { type: "button", class: "note-go" });
    go.addEventListener("click", () => {
      actions.flyTo(note.view);
    });
    const facts = el("span", { class: "person-facts" });
    const form = textForm(
      texts.together.noteText,
      texts.together.save,
      (text) => {
        actions.edit({ op: "edit_note", id: note.id, text });
        form.element.hidden = true;
      },
      () => {
        form.element.hidden = true;
      },
    );
    form.element.hidden = true;
    const edit = textButton(texts.together.edit, () => {
      form.element.hidden = false;
      form.open(note.text);
    });
    const remove = textButton(texts.together.delete, () => {
      actions.edit({ op: "delete_note", id: note.id });
    });
    const element = el("li", { class: "note" }, go, facts, edit, remove, form.element);
    const update = (next: PinnedNote, state: State) => {
      note = next;
      setText(go, next.text);
      go.title = texts.together.showThisView;
      const isChangeable = state.role === "own" || (state.role !== "watch" && next.author.id === state.you);
      edit.hidden = remove.hidden = !isChangeable;
      setText(
        facts,
        [next.author.name, textOr(next.view.array, ""), timeOf(next)].filter(Boolean).join(", "),
      );
      element.style.setProperty("--person", next.author.color);
    };
    return { element, update };
  };
}

function timeOf(note: PinnedNote): string {
  return typeof note.view.time === "number" && note.view.time > 0
    ? texts.together.timeOf(note.view.time)
    : "";
}

/** A text area with buttons to save and to cancel. Ctrl+Enter saves, Escape cancels. */
function textForm(label: string, action: string, save: (text: string) => void, cancel: () => void) {
  const area = el("textarea", {
    rows: 3,
    "aria-label": label,
    placeholder: label,
    maxlength: MAX_NOTE_TEXT_BYTES / 4,
  });
  const submit = el("button", { type: "submit", class: "button" }, action);
  const element = el(
    "form",
    { class: "note-form" },
    area,
    el("div", { class: "together-actions" }, submit, textButton(texts.together.cancel, cancel)),
  );
  const send = () => {
    const text = area.value.trim();
    if (text !== "") save(text);
  };
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    else if (event.key === "Escape") cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const open = (text: string) => {
    area.value = text;
    setTimeout(() => {
      area.focus();
    });
  };
  return { element, open };
}
