//! Listens to the keyboard and runs commands. Controls with the focus get their keys first.

import { commandOf, type CommandId, type KeyPress } from "./table.ts";

/** Runs a command; returns false if it does not apply now, which leaves the key to the browser. */
export type KeyHandler = (press: KeyPress) => boolean | undefined;
/** A handler for every command of the table. */
export type KeyHandlers = Readonly<Record<CommandId, KeyHandler>>;

type ControlKind = "text" | "slider" | "toggle" | "button" | "none";

/** Kinds of controls by selector; the first that matches counts. */
const KINDS: readonly (readonly [selector: string, kind: ControlKind])[] = [
  ["select, textarea, [role=textbox]", "text"],
  ["input[type=range], [role=slider]", "slider"],
  ["input[type=checkbox], input[type=radio], input[type=color]", "toggle"],
  ["input", "text"],
  ["button, a, summary", "button"],
];

/** True if a control that has the focus uses a key itself. */
export function usesKey(control: ControlKind, key: string): boolean {
  switch (control) {
    case "text":
      return true;
    case "slider":
      return /^(Arrow|Page|Home$|End$)/.test(key);
    case "toggle":
      return key === " " || key.startsWith("Arrow");
    case "button":
      return key === " " || key === "Enter";
    case "none":
      return false;
  }
}

export function listenToKeys(handlers: KeyHandlers): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !(event.target instanceof Element)) return;
    const focused = event.target;
    // A dialog that was just closed may keep the focus until the next picture of the page.
    const dialog = focused.closest<HTMLDialogElement>("dialog");
    if (dialog?.open) return;
    const control = dialog ? "none" : (KINDS.find(([selector]) => focused.closest(selector))?.[1] ?? "none");
    if (usesKey(control, event.key)) return;
    const command = commandOf(event);
    if (command === null || handlers[command](event) === false) return;
    event.preventDefault();
  });
}
