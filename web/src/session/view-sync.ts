//! Synchronization of the view with the node: own changes are numbered and sent in batches, changes of the node are
//! applied, and neither overwrites newer ones. Pure; the page calls `takeNote` once per animation frame.

import type { Json } from "../json.ts";
import { parseView, viewToJson } from "../view/parse.ts";
import { EMPTY_VIEW, type Camera, type View, type ViewPatch } from "../view/schema.ts";
import type { Note } from "./messages.ts";

/**
 * Step of the sequence numbers of own changes. The node numbers its changes by one in between, so that the order is
 * always known.
 */
export const SEQ_STEP = 1024;

/** Most views whose cameras are remembered until their frames arrive. */
const MOST_CAMERAS = 256;

export class ViewSync {
  #view: View = EMPTY_VIEW;
  #pending: ViewPatch = {};
  #moving = false;
  /** All pending changes are by the page itself. */
  #automatic = false;
  #sentMoving = false;
  #seq = 0;
  /** Number of the last change that altered the picture. */
  #alteredSeq = 0;
  readonly #fieldSeq = new Map<string, number>();
  /** Number of a change to another array whose consequences the node has not told; 0 if there is none. */
  #arraySeq = 0;
  /** Cameras of the last views, by increasing sequence number. */
  #cameras: { readonly seq: number; readonly camera: Camera | null }[] = [];

  get view(): View {
    return this.#view;
  }

  /** True if the frame of view `seq` shows the newest change, by this person or by others. */
  isCurrent(seq: number): boolean {
    return seq >= this.#alteredSeq && Object.keys(this.#pending).length === 0;
  }

  /** Returns the camera of the frame of view `seq`; null if it is not known. */
  cameraAt(seq: number): Camera | null {
    return this.#cameras.findLast((one) => one.seq <= seq)?.camera ?? null;
  }

  /**
   * True while the node decides what else changes with another array: until then camera, slices and time may be those of the
   * array before.
   */
  get isSettling(): boolean {
    return this.#arraySeq > 0 || "array" in this.#pending;
  }

  /** Starts with the view of a new connection; then sends the fields again that the user or the link has chosen. */
  joined(view: Json, wanted: ViewPatch, seq = 0): void {
    this.#seq = seq;
    this.#alteredSeq = seq;
    this.#fieldSeq.clear();
    this.#pending = {};
    this.#moving = false;
    this.#sentMoving = false;
    this.#arraySeq = 0;
    this.#view = { ...EMPTY_VIEW, ...parseView(view).patch };
    this.#cameras = [{ seq, camera: this.#view.camera }];
    // After a reconnection, only what was changed meanwhile.
    const changed = Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(this.#view[name as keyof View]),
    );
    if (changed.length > 0) this.change(Object.fromEntries(changed), false, seq === 0);
  }

  /** Applies an own change; `moving` while more are expected immediately; `automatic` if the person did not make it. */
  change(patch: ViewPatch, moving: boolean, automatic = false): void {
    const isFirst = Object.keys(this.#pending).length === 0;
    this.#automatic = automatic && (isFirst || this.#automatic);
    this.#view = { ...this.#view, ...patch };
    this.#pending = { ...this.#pending, ...patch };
    // What the page adds by itself does not end a movement by the person.
    if (!automatic) this.#moving = moving;
  }

  /** Ends an interaction: the node may render at full quality. */
  rest(): void {
    this.#moving = false;
  }

  /** Applies a change by the node or another participant; keeps own changes that the node has not received. */
  incoming(seq: number, view: Json): void {
    this.#seq = Math.max(this.#seq, seq);
    if (seq >= this.#arraySeq) this.#arraySeq = 0;
    // Frames with lower numbers show the view before.
    this.#alteredSeq = Math.max(this.#alteredSeq, seq);
    const { patch } = parseView(view);
    this.#remember(seq, patch.camera ?? null);
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
    this.#remember(this.#seq, this.#view.camera);
    if (fields.includes("array")) this.#arraySeq = this.#seq;
    const note: Note = {
      kind: "view",
      seq: this.#seq,
      view: viewToJson(this.#pending),
      moving: this.#moving,
      ...(this.#automatic && fields.length > 0 ? { automatic: true } : {}),
    };
    this.#automatic = false;
    this.#pending = {};
    this.#sentMoving = this.#moving;
    return note;
  }

  #remember(seq: number, camera: Camera | null): void {
    const older = this.#cameras.filter((one) => one.seq < seq);
    const newer = this.#cameras.filter((one) => one.seq > seq);
    this.#cameras = [...older, { seq, camera }, ...newer].slice(-MOST_CAMERAS);
  }
}
