//! Content that all participants share: chat, notes pinned to places, bookmarks. It is a function of the changes in the
//! order of the server; own edits are applied at once and take their place in that order when the server confirms them. Pure.

import { isArray, isCount, isFinite, isObject, textOr, type Json, type JsonObject } from "../../json.ts";
import type { Vec3 } from "../../view/schema.ts";

/** Bounds of the node (`crates/session/src/together`). */
export const MAX_CHAT_LINES = 200;
export const MAX_CHAT_LINE_BYTES = 2000;
export const MAX_NOTES = 256;
export const MAX_NOTE_TEXT_BYTES = 4000;
export const MAX_BOOKMARKS = 64;
export const MAX_BOOKMARK_NAME_BYTES = 120;
export const MAX_THUMBNAIL_BYTES = 16 * 1024;

/** Most own edits that wait for the server's answer: a person does not make more during an interruption. */
export const MAX_PENDING_EDITS = 100;
/** Most changes that wait for an earlier one. */
const MAX_EARLY_CHANGES = 1024;

export interface Author {
  readonly id: number;
  readonly name: string;
  readonly color: string;
}

export interface ChatLine {
  readonly id: string;
  readonly author: Author;
  readonly atMillis: number;
  readonly text: string;
}

export interface PinnedNote extends ChatLine {
  /** Point in world space; null for a note on the whole view. */
  readonly place: Vec3 | null;
  readonly view: JsonObject;
}

export interface Bookmark {
  readonly id: string;
  readonly author: Author;
  readonly name: string;
  /** JPEG as a `data:` URL; empty if there is none. */
  readonly thumbnail: string;
  readonly view: JsonObject;
}

export interface SharedContent {
  readonly chat: readonly ChatLine[];
  readonly notes: readonly PinnedNote[];
  readonly bookmarks: readonly Bookmark[];
}

export type SharedEdit =
  | { readonly op: "say"; readonly text: string }
  | {
      readonly op: "add_note";
      readonly text: string;
      readonly place: Vec3 | null;
      readonly view: JsonObject;
    }
  | { readonly op: "edit_note"; readonly id: string; readonly text: string }
  | { readonly op: "delete_note"; readonly id: string }
  | {
      readonly op: "add_bookmark";
      readonly name: string;
      readonly thumbnail: string;
      readonly view: JsonObject;
    }
  | { readonly op: "rename_bookmark"; readonly id: string; readonly name: string }
  | { readonly op: "move_bookmark"; readonly id: string; readonly before: string | null }
  | { readonly op: "delete_bookmark"; readonly id: string };

export interface SharedChange {
  readonly rev: number;
  readonly author: Author;
  readonly seq: number;
  readonly atMillis: number;
  readonly edit: SharedEdit;
}

export interface SharedUpdate {
  /** Number of the newest change. */
  readonly rev: number;
  /** Number of the newest own edit that the server accepted or refused. */
  readonly heard: number;
  /** The whole content, or only the changes. */
  readonly content: SharedContent | null;
  readonly changes: readonly SharedChange[];
}

export const EMPTY_CONTENT: SharedContent = { chat: [], notes: [], bookmarks: [] };

/** Returns the content after a change; the same if the change is impossible, for example on a deleted note. */
export function applied(content: SharedContent, change: SharedChange): SharedContent {
  const { author, atMillis, edit, seq } = change;
  const id = `${author.id}-${seq}`;
  const { chat, notes, bookmarks } = content;
  switch (edit.op) {
    case "say":
      return {
        ...content,
        chat: [...chat, { id, author, atMillis, text: edit.text }].slice(-MAX_CHAT_LINES),
      };
    case "add_note": {
      if (notes.length >= MAX_NOTES) return content;
      const { text, place, view } = edit;
      return { ...content, notes: [...notes, { id, author, atMillis, text, place, view }] };
    }
    case "edit_note": {
      const changed = notes.map((note) =>
        note.id === edit.id ? { ...note, text: edit.text, atMillis } : note,
      );
      return { ...content, notes: changed };
    }
    case "delete_note":
      return { ...content, notes: notes.filter((note) => note.id !== edit.id) };
    case "add_bookmark": {
      if (bookmarks.length >= MAX_BOOKMARKS) return content;
      const { name, thumbnail, view } = edit;
      return { ...content, bookmarks: [...bookmarks, { id, author, name, thumbnail, view }] };
    }
    case "rename_bookmark": {
      const renamed = bookmarks.map((b) => (b.id === edit.id ? { ...b, name: edit.name } : b));
      return { ...content, bookmarks: renamed };
    }
    case "move_bookmark":
      return { ...content, bookmarks: moved(bookmarks, edit.id, edit.before) };
    case "delete_bookmark":
      return { ...content, bookmarks: bookmarks.filter((b) => b.id !== edit.id) };
  }
}

function moved(list: readonly Bookmark[], id: string, before: string | null): readonly Bookmark[] {
  const one = list.find((b) => b.id === id);
  if (!one || before === id) return list;
  const others = list.filter((b) => b.id !== id);
  const to = others.findIndex((b) => b.id === before);
  return others.toSpliced(to < 0 ? others.length : to, 0, one);
}

interface PendingEdit {
  readonly seq: number;
  readonly atMillis: number;
  readonly edit: SharedEdit;
}

/** Content as the server confirmed it, own edits that it has not answered yet, and both together. */
export class ContentSync {
  #confirmed: SharedContent = EMPTY_CONTENT;
  /** Number of the newest confirmed change; null before the first update. */
  #rev: number | null = null;
  #early = new Map<number, SharedChange>();
  #pending: readonly PendingEdit[] = [];
  #me: Author = { id: 0, name: "", color: "" };
  #seq = 0;
  #heard = 0;

  /** The content to show. */
  get content(): SharedContent {
    const shown = (content: SharedContent, { seq, atMillis, edit }: PendingEdit) =>
      applied(content, { rev: 0, author: this.#me, seq, atMillis, edit });
    return this.#pending.reduce(shown, this.#confirmed);
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  /** Sets the own name and color, for the display of own edits. */
  setAuthor(me: Author): void {
    this.#me = me;
  }

  /**
   * Begins a connection as participant `me`, of whom the server has edits up to `heard`. Returns the edits to send again;
   * those of another participant, as whom this page was known before, are dropped and counted.
   */
  joined(me: number, heard: number): { readonly resend: readonly PendingEdit[]; readonly dropped: number } {
    this.#rev = null;
    this.#early.clear();
    const isSame = me === this.#me.id;
    const kept = isSame ? this.#pending.filter((edit) => edit.seq > heard) : [];
    const dropped = isSame ? 0 : this.#pending.length;
    this.#me = { ...this.#me, id: me };
    this.#pending = kept;
    this.#heard = heard;
    this.#seq = Math.max(heard, ...kept.map((edit) => edit.seq));
    return { resend: kept, dropped };
  }

  /** Applies an own edit at once; returns its number, or null if too many wait for the server. */
  edit(edit: SharedEdit, atMillis: number): number | null {
    if (this.#pending.length >= MAX_PENDING_EDITS) return null;
    this.#seq += 1;
    this.#pending = [...this.#pending, { seq: this.#seq, atMillis, edit }];
    return this.#seq;
  }

  /** Applies an update; returns false if the whole content must be requested again. Updates may overtake one another. */
  receive(update: SharedUpdate): boolean {
    if (update.content && (this.#rev === null || update.rev >= this.#rev)) {
      this.#confirmed = update.content;
      this.#rev = update.rev;
    }
    for (const change of update.changes) this.#early.set(change.rev, change);
    while (this.#rev !== null) {
      const next = this.#early.get(this.#rev + 1);
      if (!next) break;
      this.#confirmed = applied(this.#confirmed, next);
      this.#rev = next.rev;
    }
    const rev = this.#rev;
    if (rev !== null) for (const known of this.#early.keys()) if (known <= rev) this.#early.delete(known);
    // An answered edit stays visible until the change itself has arrived.
    this.#heard = Math.max(this.#heard, update.heard);
    if (rev !== null && rev >= update.rev)
      this.#pending = this.#pending.filter((edit) => edit.seq > this.#heard);
    if (this.#early.size <= MAX_EARLY_CHANGES) return true;
    this.#early.clear();
    return false;
  }
}

/** Reads an update: the numbers of its item, and its bulk. */
export function parseUpdate(numbers: JsonObject, bulk: Json): SharedUpdate {
  if (!isObject(bulk) || !isCount(numbers.rev) || !isCount(numbers.heard))
    throw new Error("expected an update of the shared content, found something else");
  const { rev, heard } = numbers;
  const content = isObject(bulk.content) ? parseContent(bulk.content) : null;
  const changes = isArray(bulk.changes) ? bulk.changes.flatMap(parseChange) : [];
  return { rev, heard, content, changes };
}

function parseContent(value: JsonObject): SharedContent {
  const list = (json: Json | undefined) => (isArray(json) ? json.filter(isObject) : []);
  const line = (json: JsonObject): ChatLine => ({
    id: textOr(json.id, ""),
    author: parseAuthor(json.author),
    atMillis: isCount(json.at_millis) ? json.at_millis : 0,
    text: textOr(json.text, ""),
  });
  const saved = (json: JsonObject) => (isObject(json.view) ? json.view : {});
  return {
    chat: list(value.chat).map(line),
    notes: list(value.notes).map((json) => ({
      ...line(json),
      place: parsePlace(json.place),
      view: saved(json),
    })),
    bookmarks: list(value.bookmarks).map((json) => ({
      id: textOr(json.id, ""),
      author: parseAuthor(json.author),
      name: textOr(json.name, ""),
      thumbnail: parseThumbnail(json.thumbnail),
      view: saved(json),
    })),
  };
}

/** Reads a change; one of a newer node that is unknown here has no effect. */
function parseChange(value: Json): SharedChange[] {
  if (!isObject(value) || !isCount(value.rev) || !isCount(value.seq)) return [];
  const { rev, seq } = value;
  const atMillis = isCount(value.at_millis) ? value.at_millis : 0;
  const edit = isObject(value.edit) ? parseEdit(value.edit) : { op: "delete_note" as const, id: "" };
  return [{ rev, seq, atMillis, author: parseAuthor(value.author), edit }];
}

function parseEdit(value: JsonObject): SharedEdit {
  const [text, id, name] = [textOr(value.text, ""), textOr(value.id, ""), textOr(value.name, "")];
  const view = isObject(value.view) ? value.view : {};
  switch (value.op) {
    case "say":
      return { op: "say", text };
    case "add_note":
      return { op: "add_note", text, place: parsePlace(value.place), view };
    case "edit_note":
      return { op: "edit_note", id, text };
    case "add_bookmark":
      return { op: "add_bookmark", name, thumbnail: parseThumbnail(value.thumbnail), view };
    case "rename_bookmark":
      return { op: "rename_bookmark", id, name };
    case "move_bookmark":
      return { op: "move_bookmark", id, before: typeof value.before === "string" ? value.before : null };
    case "delete_bookmark":
      return { op: "delete_bookmark", id };
    default:
      return { op: "delete_note", id: value.op === "delete_note" ? id : "" };
  }
}

function parseAuthor(value: Json | undefined): Author {
  if (!isObject(value)) return { id: 0, name: "", color: "" };
  return {
    id: isCount(value.id) ? value.id : 0,
    name: textOr(value.name, ""),
    color: parseColor(value.color),
  };
}

/** Reads a color as `#rrggbb`; gray for anything else. */
export function parseColor(value: Json | undefined): string {
  return typeof value === "string" && /^#[0-9a-f]{6}$/i.test(value) ? value : "#a7aeb8";
}

/** Reads a point in world space; null for anything else. */
export function parsePlace(value: Json | undefined): Vec3 | null {
  if (!isArray(value) || value.length !== 3) return null;
  const [x, y, z] = value;
  return isFinite(x) && isFinite(y) && isFinite(z) ? [x, y, z] : null;
}

function parseThumbnail(value: Json | undefined): string {
  const text = textOr(value, "");
  return text.length <= MAX_THUMBNAIL_BYTES && text.startsWith("data:image/jpeg;base64,") ? text : "";
}
