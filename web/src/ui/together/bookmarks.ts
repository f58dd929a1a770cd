//! Bookmarks: saved views with thumbnails, which can be ordered, played as a path and saved as a journey.

import { texts } from "../../texts/texts.ts";
import type { Component, State } from "../../app/state.ts";
import type { TogetherActions } from "../../app/together.ts";
import { MAX_BOOKMARK_NAME_BYTES, type Bookmark } from "../../session/together/content.ts";
import { el, setText, textButton } from "../dom.ts";
import { keyedList } from "./list.ts";

export function bookmarkList(actions: TogetherActions): Component {
  const name = el("input", {
    type: "text",
    "aria-label": texts.together.nameOfTheBookmark,
    placeholder: texts.together.nameOfThisView,
    maxlength: MAX_BOOKMARK_NAME_BYTES / 4,
    autocomplete: "off",
  });
  const form = el(
    "form",
    { class: "together-form" },
    name,
    el("button", { type: "submit", class: "button" }, texts.together.save),
  );
  let count = 0;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = name.value.trim();
    actions.addBookmark(given === "" ? texts.together.nameOfNewBookmark(count + 1) : given);
    name.value = "";
  });
  const list = el("ol", { class: "bookmarks" });
  const rows = keyedList<Bookmark, State>(list, (bookmark) => bookmark.id, row(actions));
  const play = textButton(texts.together.playAsAPath, actions.togglePath, "button");
  const save = textButton(texts.together.saveJourney, actions.saveJourney);
  save.title = texts.together.journeyHint;
  const tools = el("div", { class: "together-actions" }, play, save);
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, texts.together.bookmarks),
    form,
    list,
    tools,
  );
  const update = (state: State) => {
    const { content, isPlayingPath } = state.together;
    count = content.bookmarks.length;
    form.hidden = state.role === "watch";
    rows(content.bookmarks, state);
    tools.hidden = count === 0;
    play.hidden = state.role === "watch" || (count < 2 && !isPlayingPath);
    setText(play, isPlayingPath ? texts.together.stop : texts.together.playAsAPath);
  };
  return { element, update };
}

function row(actions: TogetherActions) {
  return (first: Bookmark) => {
    let bookmark = first;
    let all: readonly Bookmark[] = [];
    const picture = el("img", { class: "thumbnail", alt: "" });
    const name = el("span", { class: "bookmark-name" });
    const go = el("button", { type: "button", class: "bookmark-go" }, picture, name);
    go.addEventListener("click", () => {
      actions.flyTo(bookmark.view);
    });
    const move = (by: -1 | 1) => () => {
      const at = all.findIndex((other) => other.id === bookmark.id);
      const before = by < 0 ? all[at - 1] : all[at + 2];
      if (at + by < 0 || at + by >= all.length) return;
      actions.edit({ op: "move_bookmark", id: bookmark.id, before: before?.id ?? null });
    };
    const up = textButton("↑", move(-1));
    const down = textButton("↓", move(1));
    const input = el("input", { type: "text", maxlength: MAX_BOOKMARK_NAME_BYTES / 4 });
    const rename = textButton(texts.together.rename, () => {
      input.value = bookmark.name;
      input.hidden = false;
      input.focus();
      input.select();
    });
    const finish = (isSaved: boolean) => {
      if (input.hidden) return;
      input.hidden = true;
      const text = input.value.trim();
      if (isSaved && text !== "" && text !== bookmark.name)
        actions.edit({ op: "rename_bookmark", id: bookmark.id, name: text });
    };
    input.hidden = true;
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      finish(event.key === "Enter");
      rename.focus();
    });
    input.addEventListener("blur", () => {
      finish(true);
    });
    const remove = textButton(texts.together.delete, () => {
      actions.edit({ op: "delete_bookmark", id: bookmark.id });
    });
    const element = el(
      "li",
      { class: "bookmark" },
      go,
      el("div", { class: "bookmark-tools" }, up, down, rename, remove),
      input,
    );
    const update = (next: Bookmark, state: State) => {
      bookmark = next;
      all = state.together.content.bookmarks;
      if (picture.getAttribute("src") !== next.thumbnail) picture.setAttribute("src", next.thumbnail);
      picture.hidden = next.thumbnail === "";
      setText(name, next.name);
      go.title = texts.together.savedBy(next.author.name);
      const mayOrder = state.role !== "watch";
      const isChangeable = state.role === "own" || (mayOrder && next.author.id === state.you);
      up.hidden = down.hidden = !mayOrder;
      up.disabled = all[0]?.id === next.id;
      down.disabled = all.at(-1)?.id === next.id;
      rename.hidden = remove.hidden = !isChangeable;
      up.setAttribute("aria-label", texts.together.moveUp(next.name));
      down.setAttribute("aria-label", texts.together.moveDown(next.name));
      input.setAttribute("aria-label", texts.together.newNameOf(next.name));
    };
    return { element, update };
  };
}
