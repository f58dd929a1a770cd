//! The help: keys from the table that the handlers use, gestures and devices, in a dialog with a filter.

import { texts } from "../../texts/texts.ts";
import { capsOf, COMMANDS, KEYS, type KeyBinding } from "../../keys/table.ts";
import { el, iconButton, setText } from "../dom.ts";

/** One line of the help. */
export interface HelpRow {
  readonly group: keyof typeof texts.help.groups;
  /** Names on key caps; empty for a gesture. */
  readonly caps: readonly string[];
  readonly gesture: string;
  readonly does: string;
}

export function helpRows(): readonly HelpRow[] {
  const keys = COMMANDS.map((id): HelpRow => {
    const { group }: KeyBinding = KEYS[id];
    return { group, caps: capsOf(id), gesture: "", does: texts.keys[id] };
  });
  const moves =
    (group: HelpRow["group"]) =>
    ([gesture, does]: readonly [string, string]): HelpRow => ({ group, caps: [], gesture, does });
  return [
    ...keys,
    ...texts.help.gestures.map(moves("gestures")),
    ...texts.help.devices.map(moves("devices")),
  ];
}

/** Returns the rows that have every word of a search, in any order. */
export function filterHelp(rows: readonly HelpRow[], search: string): readonly HelpRow[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const textOf = ({ group, caps, gesture, does }: HelpRow) =>
    [texts.help.groups[group], ...caps, gesture, does].join(" ").toLowerCase();
  return rows.filter((row) => words.every((word) => textOf(row).includes(word)));
}

export function helpDialog(): HTMLDialogElement {
  const close = iconButton("close", texts.help.close, texts.keyCaps.Escape, () => {
    dialog.close();
  });
  const search = el("input", {
    type: "search",
    class: "search",
    "aria-label": texts.help.filter,
    placeholder: texts.help.filter,
    autocomplete: "off",
    spellcheck: "false",
    autofocus: true,
  });
  const rows = helpRows();
  const elements = rows.map(rowElement);
  const groups = (Object.keys(texts.help.groups) as HelpRow["group"][]).map((group) => {
    const own = elements.filter((_, i) => rows[i]?.group === group);
    const section = el("section", {}, el("h3", {}, texts.help.groups[group]), el("dl", {}, ...own));
    return { group, section };
  });
  const none = el("p", { class: "hint", role: "status" });
  const show = () => {
    const found = new Set(filterHelp(rows, search.value));
    rows.forEach((row, i) => {
      const element = elements[i];
      if (element) element.hidden = !found.has(row);
    });
    for (const { group, section } of groups) section.hidden = ![...found].some((row) => row.group === group);
    setText(none, found.size === 0 ? texts.help.none : "");
  };
  search.addEventListener("input", show);
  const dialog = el(
    "dialog",
    { class: "panel help", "aria-labelledby": "help-title" },
    el("div", { class: "help-head" }, el("h2", { id: "help-title" }, texts.help.title), close),
    search,
    none,
    el("div", { class: "help-columns" }, ...groups.map(({ section }) => section)),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside its content
  });
  dialog.addEventListener("close", () => {
    search.value = "";
    show();
  });
  return dialog;
}

function rowElement({ caps, gesture, does }: HelpRow): HTMLElement {
  const term = caps.length > 0 ? el("span", { class: "keys" }, ...caps.map(keyCap)) : el("span", {}, gesture);
  return el("div", { class: "help-row" }, el("dt", {}, term), el("dd", {}, does));
}

function keyCap(name: string): HTMLElement {
  return name === "…" ? el("span", {}, name) : el("kbd", {}, name);
}
