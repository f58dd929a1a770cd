//! All keys of the page, in one table: the handlers (`handlers.ts`) and the help are made from it, so a key in the help has an effect, and
//! a key with an effect is in the help. Keys of single controls, such as the points of the opacity curve, belong to these.

import { texts } from "../texts/texts.ts";

/** Groups of the help, in its order. */
export type KeyGroup = "camera" | "arrangement" | "time" | "picture" | "page" | "people";

export interface KeyBinding {
  /** Values of `KeyboardEvent.key`, letters in lower case. */
  readonly keys: readonly string[];
  /** Shift must be held, or must not be; unset: either. Signs such as `?` need it or not by the keyboard's layout. */
  readonly shift?: boolean;
  /** Ctrl (or Cmd) must be held; otherwise it must not be. */
  readonly ctrl?: boolean;
  /** Keys of which the help shows the caps, if others than `keys`. */
  readonly caps?: readonly string[];
  readonly group: KeyGroup;
}

const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] as const;

export const KEYS = {
  turn: { keys: ARROWS, shift: false, group: "camera" },
  pan: { keys: ARROWS, shift: true, caps: ["Shift", ...ARROWS], group: "camera" },
  zoomIn: { keys: ["+", "="], caps: ["+"], group: "camera" },
  zoomOut: { keys: ["-", "_"], caps: ["−"], group: "camera" },
  resetCamera: { keys: ["r"], group: "camera" },
  axisView: { keys: ["1", "2", "3", "4", "5", "6"], caps: ["1", "…", "6"], group: "camera" },
  projection: { keys: ["o"], group: "camera" },
  space: { keys: ["v"], group: "arrangement" },
  image: { keys: ["i"], group: "arrangement" },
  planes: { keys: ["m"], group: "arrangement" },
  grid: { keys: ["g"], group: "arrangement" },
  nextSlice: { keys: ["PageUp"], group: "arrangement" },
  previousSlice: { keys: ["PageDown"], group: "arrangement" },
  play: { keys: [" "], group: "time" },
  timeBack: { keys: [","], group: "time" },
  timeForward: { keys: ["."], group: "time" },
  readCenter: { keys: ["c"], group: "picture" },
  save: { keys: ["s"], group: "picture" },
  copyLink: { keys: ["l"], group: "picture" },
  background: { keys: ["b"], group: "picture" },
  panel: { keys: ["p"], group: "page" },
  open: { keys: ["d"], group: "page" },
  fullscreen: { keys: ["f"], group: "page" },
  help: { keys: ["?", "h"], group: "page" },
  people: { keys: ["t"], group: "people" },
  laser: { keys: ["x"], group: "people" },
  undo: { keys: ["z"], ctrl: true, shift: false, caps: ["Control", "Z"], group: "people" },
  redo: { keys: ["z"], ctrl: true, shift: true, caps: ["Control", "Shift", "Z"], group: "people" },
  redoToo: { keys: ["y"], ctrl: true, caps: ["Control", "Y"], group: "people" },
} as const satisfies Record<string, KeyBinding>;

export type CommandId = keyof typeof KEYS;
export const COMMANDS = Object.keys(KEYS) as CommandId[];

/** A pressed key with its modifiers; an event of the keyboard is one. */
export interface KeyPress {
  readonly key: string;
  readonly shiftKey: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
}

/** Returns the command of a key; null if there is none. */
export function commandOf(press: KeyPress): CommandId | null {
  if (press.altKey) return null;
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  const isCtrl = press.ctrlKey || press.metaKey;
  const matches = (binding: KeyBinding) =>
    binding.keys.includes(key) &&
    (binding.ctrl ?? false) === isCtrl &&
    (binding.shift === undefined || binding.shift === press.shiftKey);
  return COMMANDS.find((id) => matches(KEYS[id])) ?? null;
}

/** Returns the names on the key caps of a command. */
export function capsOf(id: CommandId): readonly string[] {
  const { caps, keys }: KeyBinding = KEYS[id];
  const names: Readonly<Record<string, string | undefined>> = texts.keyCaps;
  return (caps ?? keys).map((key) => names[key] ?? (key.length === 1 ? key.toUpperCase() : key));
}

/** Returns the key of a command for the tooltip of its button, such as `Ctrl+Z`. */
export function hintOf(id: CommandId): string {
  const { ctrl }: KeyBinding = KEYS[id];
  return ctrl === true ? capsOf(id).join("+") : (capsOf(id)[0] ?? "");
}
