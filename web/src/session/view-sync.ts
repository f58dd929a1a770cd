//! Synchronization of the view with the node: own changes are numbered and sent in batches, changes of the node are
//! applied, and neither overwrites newer ones. Pure; the page calls `takeNote` once per animation frame.

import type { Json } from "../json.ts";
import { parseView, viewToJson } from "../view/parse.ts";
import { EMPTY_VIEW, type View, type ViewPatch } from "../view/schema.ts";
import type { Note } from "./messages.ts";

/**
 * Step of the sequence numbers of own changes. The node numbers its changes by one in between, so that the order is
 * always known.
 */
export const SEQ_STEP = 1024;

export class ViewSync {
  #view: View = EMPTY_VIEW;
  #pending: ViewPatch = {};
  #moving = false;
  #sentMoving = false;
  #seq = 0;
  /** Number of the last change that altered the picture. */
  #alteredSeq = 0;
  readonly #fieldSeq = new Map<string, number>();

  get view(): View {
    return this.#view;
  }

  /** True if the frame of view `seq` shows the newest change, by this person or by others. */
  isCurrent(seq: number): boolean {
    return seq >= this.#alteredSeq && Object.keys(this.#pending).length === 0;
  }

  /** Starts with the view of a new connection; then sends the fields again that the user or the link has chosen. */
  joined(view: Json, wanted: ViewPatch): void {
    this.#seq = 0;
    this.#alteredSeq = 0;
    this.#fieldSeq.clear();
    this.#pending = {};
    this.#sentMoving = false;
    this.#view = { ...EMPTY_VIEW, ...parseView(view).patch };
    if (Object.keys(wanted).length > 0) this.change(wanted, false);
  }

  /** Applies an own change; `moving` while more are expected immediately. */
  change(patch: ViewPatch, moving: boolean): void {
    this.#view = { ...this.#view, ...patch };
    this.#pending = { ...this.#pending, ...patch };
    this.#moving = moving;
  }

  /** Ends an interaction: the node may render at full quality. */
  rest(): void {
    this.#moving = false;
  }

  /** Applies a change by the node or another participant; keeps own changes that the node has not received. */
  incoming(seq: number, view: Json): void {
    this.#seq = Math.max(this.#seq, seq);
    // Frames with lower numbers show the view before.
    this.#alteredSeq = Math.max(this.#alteredSeq, seq);
    const { patch } = parseView(view);
    const isTheirs = ([name]: [string, unknown]) =>
      !(name in this.#pending) && (this.#fieldSeq.get(name) ?? 0) <= seq;
    this.#view = { ...this.#view, ...Object.fromEntries(Object.entries(patch).filter(isTheirs)) };
  }

  /** Returns the note with all changes since the last call; null if there are none. */
  takeNote(): Note | null {
    const fields = Object.keys(this.#pending);
    if (fields.length === 0 && this.#moving === this.#sentMoving) return null;
    // The end of a movement does not alter the picture, so nothing waits for its number.
    this.#seq += SEQ_STEP;
    if (fields.length > 0) this.#alteredSeq = this.#seq;
    for (const field of fields) this.#fieldSeq.set(field, this.#seq);
    const note: Note = {
      kind: "view",
      seq: this.#seq,
      view: viewToJson(this.#pending),
      moving: this.#moving,
    };
    this.#pending = {};
    this.#sentMoving = this.#moving;
    return note;
  }
}
