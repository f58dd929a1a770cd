//! People together: the part of the page's state about other participants, and the actions on it. Shared content is changed
//! here at once and confirmed by the server; see `session/together`.

import { texts } from "../texts/texts.ts";
import { pageStorage } from "./storage.ts";
import type { Size } from "../camera/camera.ts";
import type { Note, Participant } from "../session/messages.ts";
import {
  ContentSync,
  EMPTY_CONTENT,
  MAX_PENDING_EDITS,
  MAX_THUMBNAIL_BYTES,
  type PinnedNote,
  type SharedContent,
  type SharedEdit,
} from "../session/together/content.ts";
import { notesToJson, notesToMarkdown } from "../session/together/export.ts";
import { leaveResume, storedName, storeName, takeResume } from "../session/together/identity.ts";
import type { Pointer, PointerPlace } from "../session/together/items.ts";
import { journeyOf, LEG_MILLIS, stopsOf, viewAt } from "../session/together/path.ts";
import { pointerPlace, worldPoint, type ScreenPoint } from "../session/together/space.ts";
import { Throttle } from "../session/together/throttle.ts";
import { parseView, viewToJson } from "../view/parse.ts";
import { EMPTY_VIEW, wholeView, type Vec3, type View, type ViewPatch } from "../view/schema.ts";
import type { FromWorker } from "../worker/messages.ts";
import { fileNameFor, saveFile } from "./save.ts";
import type { State } from "./state.ts";
import type { Toasts } from "./toasts.ts";

/** Shortest time between two positions of the own pointer. */
const POINTER_MILLIS = 50;
/** Sides of a thumbnail, pixels: at most so wide and so high. */
const THUMBNAIL = { width: 160, height: 100 } as const;
/** Qualities of a thumbnail's JPEG; a lower one is tried if the bytes exceed the limit. */
const THUMBNAIL_QUALITIES = [0.7, 0.45, 0.25] as const;

export interface TogetherState {
  readonly isOpen: boolean;
  readonly content: SharedContent;
  readonly pointers: readonly Pointer[];
  /** Participant whose view is shown; null for the own one. */
  readonly leader: number | null;
  /** Steps of the own view. */
  readonly undo: number;
  readonly redo: number;
  /** The own name; null until the person was asked. */
  readonly name: string | null;
  readonly isLaserOn: boolean;
  /** The next click on the picture pins a note. */
  readonly isPinning: boolean;
  /** Place of a note that is being written; undefined while none is. */
  readonly draftPlace: Vec3 | null | undefined;
  readonly isPlayingPath: boolean;
  /** Lines of the chat that were not seen. */
  readonly unread: number;
  /** Name of the owner who removed this participant; null for one who takes part. */
  readonly removedBy: string | null;
}

export const INITIAL_TOGETHER: TogetherState = {
  isOpen: false,
  content: EMPTY_CONTENT,
  pointers: [],
  leader: null,
  undo: 0,
  redo: 0,
  name: null,
  isLaserOn: false,
  isPinning: false,
  draftPlace: undefined,
  isPlayingPath: false,
  unread: 0,
  removedBy: null,
};

export interface TogetherOptions {
  readonly canvas: HTMLCanvasElement;
  readonly toasts: Toasts;
  readonly state: () => State;
  readonly set: (together: TogetherState) => void;
  /** Sends a note after the pending changes of the view. */
  readonly note: (note: Note) => void;
  readonly change: (patch: ViewPatch, moving?: boolean) => void;
  readonly rest: () => void;
  /** Requests the point in space that a place of the picture shows; null if there is none, or if it is not known. */
  readonly pick: (at: ScreenPoint, done: (world: Vec3 | null) => void) => void;
}

export class Together {
  readonly #options: TogetherOptions;
  readonly #sync = new ContentSync();
  readonly #pointer: Throttle<PointerPlace | null>;
  #resume: string;
  #seenChat = "";
  /** Place of the pointer in the picture, and the point that was last seen under it when it rested. */
  #pointed: ScreenPoint | null = null;
  #surface: Vec3 | null = null;
  #path = 0;

  constructor(options: TogetherOptions) {
    this.#options = options;
    const { pathname } = window.location;
    this.#resume = takeResume(pageStorage("sessionStorage"), pathname);
    window.addEventListener("pagehide", () => {
      leaveResume(pageStorage("sessionStorage"), pathname, this.#resume);
    });
    window.addEventListener("pageshow", (event) => {
      // A page from the browser's cache is the same as before.
      if (event.persisted) takeResume(pageStorage("sessionStorage"), pathname);
    });
    this.#pointer = new Throttle(POINTER_MILLIS, (at) => {
      this.#options.note({ kind: "pointer", at, laser: this.#now.isLaserOn });
    });
  }

  /** Returns the state with the name of an earlier visit. */
  static initial(): TogetherState {
    return { ...INITIAL_TOGETHER, name: storedName(pageStorage("localStorage")) };
  }

  /** Name and secret with which the page joins. */
  identity(): { readonly name: string; readonly resume: string } {
    return { name: this.#now.name ?? "", resume: this.#resume };
  }

  /** Handles a message about other participants; called after the state has the rest of it. */
  receive(message: FromWorker): void {
    switch (message.kind) {
      case "joined": {
        this.#resume = message.resume;
        const { resend, dropped } = this.#sync.joined(message.you, message.edits);
        for (const { seq, edit } of resend) this.#options.note({ kind: "edit", seq, edit });
        if (dropped > 0) this.#options.toasts.show("warning", texts.together.changesLost(dropped));
        this.#set({ pointers: [], removedBy: null });
        return;
      }
      case "removed":
        // The secret is not valid any more: the page could only come back as somebody new.
        this.#resume = "";
        this.#set({ removedBy: message.by, pointers: [], leader: null });
        return;
      case "participants": {
        const me = message.list.find((person) => person.id === this.#options.state().you);
        if (me) this.#sync.setAuthor({ id: me.id, name: me.name, color: me.color });
        return;
      }
      case "shared":
        if (!this.#sync.receive(message.update)) this.#options.note({ kind: "resend" });
        this.#contentChanged();
        return;
      case "pointers":
        this.#set({ pointers: message.list });
        return;
      case "following":
        if (message.text !== "") this.#options.toasts.show("info", message.text);
        this.#set({ leader: message.leader });
        return;
      case "history":
        this.#set({ undo: message.undo, redo: message.redo });
        return;
      default:
        return;
    }
  }

  // Actions.

  togglePanel = (): void => {
    const isOpen = !this.#now.isOpen;
    this.#set({ isOpen });
    this.#contentChanged();
  };

  rename = (name: string): void => {
    const short = name.trim();
    storeName(pageStorage("localStorage"), short);
    this.#set({ name: short });
    if (short !== "") this.#options.note({ kind: "rename", name: short });
  };

  follow = (leader: number | null): void => {
    this.stopPath();
    this.#options.note({ kind: "follow", leader });
  };

  present = (presenter: number | null): void => {
    this.#options.note({ kind: "present", presenter });
  };

  setRole = (who: number, role: string): void => {
    this.#options.note({ kind: "role", who, role });
  };

  remove = (who: number): void => {
    this.#options.note({ kind: "remove", who });
  };

  undo = (): void => {
    this.stopPath();
    if (this.#now.undo > 0) this.#options.note({ kind: "undo" });
  };

  redo = (): void => {
    this.stopPath();
    if (this.#now.redo > 0) this.#options.note({ kind: "redo" });
  };

  edit = (edit: SharedEdit): void => {
    const seq = this.#sync.edit(edit, Date.now());
    if (seq === null) {
      const text = texts.together.editsUnanswered(MAX_PENDING_EDITS);
      this.#options.toasts.show("warning", text);
      return;
    }
    this.#options.note({ kind: "edit", seq, edit });
    this.#contentChanged();
  };

  toggleLaser = (): void => {
    this.#set({ isLaserOn: !this.#now.isLaserOn });
  };

  togglePinning = (): void => {
    this.#set({ isPinning: !this.#now.isPinning });
  };

  /** Begins a note on the whole view. */
  draftNote = (): void => {
    this.#set({ isOpen: true, isPinning: false, draftPlace: null });
  };

  cancelDraft = (): void => {
    this.#set({ draftPlace: undefined, isPinning: false });
  };

  saveDraft = (text: string): void => {
    const { draftPlace } = this.#now;
    if (draftPlace === undefined) return;
    this.edit({ op: "add_note", text, place: draftPlace, view: savedView(this.#options.state().view) });
    this.#set({ draftPlace: undefined });
  };

  addBookmark = (name: string): void => {
    const view = savedView(this.#options.state().view);
    this.edit({ op: "add_bookmark", name, thumbnail: thumbnailOf(this.#options.canvas), view });
  };

  /** Shows the view of a note or bookmark. */
  flyTo = (view: PinnedNote["view"]): void => {
    this.stopPath();
    const { patch } = parseView(view);
    this.#options.change(wholeView(patch, this.#options.state().view.array));
  };

  /** Plays the bookmarks as a path of the camera, or stops it. */
  togglePath = (): void => {
    if (this.#now.isPlayingPath) this.stopPath();
    else this.#play();
  };

  stopPath = (): void => {
    if (!this.#now.isPlayingPath) return;
    cancelAnimationFrame(this.#path);
    this.#set({ isPlayingPath: false });
    this.#options.rest();
  };

  saveJourney = (): void => {
    const text = `${JSON.stringify(journeyOf(this.#now.content.bookmarks))}\n`;
    this.#save(text, "application/json", "journey.json");
  };

  saveNotes = (format: "json" | "markdown"): void => {
    const { notes } = this.#now.content;
    if (format === "json") this.#save(notesToJson(notes), "application/json", "notes.json");
    else {
      const name = this.#options.state().dataset?.name ?? texts.notesFile.unnamedDataset;
      this.#save(notesToMarkdown(notes, name), "text/markdown", "notes.md");
    }
  };

  // The picture.

  /** Handles a move of the pointer over the picture; null when it leaves. */
  pointAt(at: ScreenPoint | null): void {
    const { view, array, connection, you, participants } = this.#options.state();
    const isAlone = participants.every((person) => person.id === you || person.isAway);
    if (connection.kind !== "open" || isAlone) return;
    this.#pointed = at;
    this.#pointer.push(at && pointerPlace(view, array, this.#size(), at, this.#surface));
  }

  /** Handles what a place of the picture shows, which is known when the pointer rests there: the pointer moves to it. */
  pickedAt(at: ScreenPoint, world: Vec3 | null): void {
    this.#surface = world;
    const isHere = this.#pointed?.x === at.x && this.#pointed.y === at.y;
    if (world && isHere && this.#options.state().view.stereo === null) this.#pointer.push({ world });
  }

  /** Handles a click on the picture; returns true if it pins a note. */
  clickAt(at: ScreenPoint): boolean {
    if (!this.#now.isPinning) return false;
    const { view, array } = this.#options.state();
    const place = array && worldPoint(view, array, this.#size(), at, this.#surface);
    this.#set({ isOpen: true, isPinning: false, draftPlace: place });
    // The note moves to what is seen there, unless it is written or given up by then.
    this.#options.pick(at, (world) => {
      if (world && this.#now.draftPlace === place) this.#set({ draftPlace: world });
    });
    return true;
  }

  #size(): Size {
    return { width: this.#options.canvas.clientWidth, height: this.#options.canvas.clientHeight };
  }

  #play(): void {
    const stops = stopsOf(this.#now.content.bookmarks);
    if (stops.length < 2) {
      this.#options.toasts.show("info", texts.together.pathNeedsBookmarks);
      return;
    }
    this.#set({ isPlayingPath: true });
    const began = performance.now();
    let reached = -1;
    const step = (now: number) => {
      const at = Math.min(Math.max(0, (now - began) / LEG_MILLIS), stops.length - 1);
      const isAtEnd = at >= stops.length - 1;
      const patch = viewAt(stops, at, reached, this.#options.state().view.array);
      reached = Math.floor(at);
      if (patch) this.#options.change(patch, !isAtEnd);
      if (isAtEnd) this.stopPath();
      else this.#path = requestAnimationFrame(step);
    };
    this.#path = requestAnimationFrame(step);
  }

  #contentChanged(): void {
    const { content } = this.#sync;
    const newest = content.chat.at(-1)?.id ?? "";
    if (this.#now.isOpen || this.#seenChat === "") this.#seenChat = newest;
    const seen = content.chat.findIndex((line) => line.id === this.#seenChat);
    const mine = (line: { readonly author: { readonly id: number } }) =>
      line.author.id === this.#options.state().you;
    const unread = content.chat.slice(seen + 1).filter((line) => !mine(line)).length;
    this.#set({ content, unread });
  }

  #save(text: string, type: string, suffix: string): void {
    const name = fileNameFor(this.#options.state()).replace(/\.png$/, `_${suffix}`);
    saveFile(new Blob([text], { type }), name);
  }

  get #now(): TogetherState {
    return this.#options.state().together;
  }

  #set(change: Partial<TogetherState>): void {
    this.#options.set({ ...this.#now, ...change });
  }
}

/** Actions of components. */
export type TogetherActions = Pick<
  Together,
  | "togglePanel"
  | "rename"
  | "follow"
  | "present"
  | "setRole"
  | "remove"
  | "undo"
  | "redo"
  | "edit"
  | "toggleLaser"
  | "togglePinning"
  | "draftNote"
  | "cancelDraft"
  | "saveDraft"
  | "addBookmark"
  | "flyTo"
  | "togglePath"
  | "saveJourney"
  | "saveNotes"
>;

/** Returns the others who are connected or may come back, and oneself. */
export function ownEntry(state: State): Participant | null {
  return state.participants.find((person) => person.id === state.you) ?? null;
}

function savedView(view: View): PinnedNote["view"] {
  const isKept = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(EMPTY_VIEW[name as keyof View]);
  return viewToJson({
    array: view.array,
    time: view.time,
    ...Object.fromEntries(Object.entries(view).filter(isKept)),
  });
}

/** Returns the picture on a canvas as a small JPEG; empty if that is impossible. */
function thumbnailOf(canvas: HTMLCanvasElement): string {
  const share = Math.min(THUMBNAIL.width / canvas.width, THUMBNAIL.height / canvas.height);
  const small = document.createElement("canvas");
  small.width = Math.max(1, Math.round(canvas.width * share));
  small.height = Math.max(1, Math.round(canvas.height * share));
  small.getContext("2d")?.drawImage(canvas, 0, 0, small.width, small.height);
  const urls = THUMBNAIL_QUALITIES.map((quality) => () => small.toDataURL("image/jpeg", quality));
  for (const url of urls) {
    const text = url();
    if (text.length <= MAX_THUMBNAIL_BYTES && text.startsWith("data:image/jpeg")) return text;
  }
  return "";
}
