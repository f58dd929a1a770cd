//! Notes that wait for the network: at most one of each kind. Pure.

import type { Note } from "./messages.ts";

export class NoteQueue {
  readonly #waiting = new Map<Note["kind"], Note>();

  /** Adds a note, which takes the place of an older one of its kind. */
  push(note: Note): void {
    const older = this.#waiting.get(note.kind);
    this.#waiting.delete(note.kind);
    this.#waiting.set(note.kind, older ? merged(older, note) : note);
  }

  /** Takes the oldest note; null if none waits. */
  take(): Note | null {
    for (const [kind, note] of this.#waiting) {
      this.#waiting.delete(kind);
      return note;
    }
    return null;
  }
}

/** Merges two notes of a kind: a note of the view has only the fields that changed, and `shown` includes all older frames. */
function merged(older: Note, newer: Note): Note {
  if (older.kind === "view" && newer.kind === "view") {
    return { ...newer, view: { ...older.view, ...newer.view } };
  }
  if (older.kind === "shown" && newer.kind === "shown") {
    return { ...newer, frame: Math.max(older.frame, newer.frame) };
  }
  return newer;
}
