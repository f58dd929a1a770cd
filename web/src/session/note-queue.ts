//! Notes that wait for the network. States, such as the view, are merged: only the newest matters. Steps, such as an edit or
//! undo, are all sent, in order. Pure.

import type { Note } from "./messages.ts";

/** Most steps that wait; a person makes no more during an interruption. */
const MAX_STEPS = 200;

/** Notes of which each one counts. */
const STEPS: readonly Note["kind"][] = ["edit", "undo", "redo", "follow", "present", "role", "remove"];
/** Steps that depend on the view before them: later changes of the view are not merged with earlier ones. */
const STEPS_OF_VIEW: readonly Note["kind"][] = ["undo", "redo", "follow", "present"];

export class NoteQueue {
  #waiting: readonly Note[] = [];

  /** Adds a note. A state takes the place of an older one of its kind. */
  push(note: Note): void {
    if (STEPS.includes(note.kind)) {
      const steps = this.#waiting.filter((other) => STEPS.includes(other.kind));
      // Edits that are dropped are sent again after a reconnection.
      if (steps.length < MAX_STEPS) this.#waiting = [...this.#waiting, note];
      return;
    }
    const at = this.#waiting.findLastIndex(
      (other) => other.kind === note.kind || (note.kind === "view" && STEPS_OF_VIEW.includes(other.kind)),
    );
    const older = this.#waiting[at];
    const isReplaced = older?.kind === note.kind;
    const others = isReplaced ? this.#waiting.toSpliced(at, 1) : this.#waiting;
    this.#waiting = [...others, isReplaced ? merged(older, note) : note];
  }

  /** Takes the oldest note; null if none waits. */
  take(): Note | null {
    const [first, ...others] = this.#waiting;
    this.#waiting = others;
    return first ?? null;
  }
}

/** Merges two notes of a kind: a note of the view has only the fields that changed, and `shown` includes all older frames. */
function merged(older: Note, newer: Note): Note {
  if (older.kind === "view" && newer.kind === "view") {
    const { automatic, ...note } = { ...newer, view: { ...older.view, ...newer.view } };
    return automatic === true && older.automatic === true ? { ...note, automatic } : note;
  }
  if (older.kind === "shown" && newer.kind === "shown") {
    return { ...newer, frame: Math.max(older.frame, newer.frame) };
  }
  return newer;
}
