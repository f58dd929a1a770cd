//! Further pictures of a page: participations in the session, each an operation of the same connection.

import { texts } from "../texts/texts.ts";
import { parseItem, type FrameInfo, type Join, type Note } from "../session/messages.ts";
import { NoteQueue } from "../session/note-queue.ts";
import { describeError, describeThrown, type RemoteError } from "../wire/error.ts";
import type { Post } from "./connection.ts";
import { FrameDecoder } from "./decoder.ts";

/** Maximum number of further pictures: a grid of 3 by 3 has eight besides the first, three planes with their volume three. */
export const MAX_PANES = 9;

export interface PaneHost {
  /** Starts the operation `join` and returns its number. */
  request(join: Join): number;
  cancel(op: number): void;
  /** Hands waiting notes to the network. */
  flush(): void;
  readonly post: Post;
}

interface PaneJoin {
  readonly op: number;
  readonly decoder: FrameDecoder;
  readonly notes: NoteQueue;
}

export class PaneJoins {
  readonly #host: PaneHost;
  readonly #joins = new Map<number, PaneJoin>();

  constructor(host: PaneHost) {
    this.#host = host;
  }

  /** Joins the session once more for the picture `pane`. */
  open(pane: number, join: Join): void {
    this.close(pane);
    if (this.#joins.size >= MAX_PANES) {
      this.#ended(pane, texts.connection.tooManyPictures(MAX_PANES));
      return;
    }
    let op: number;
    try {
      op = this.#host.request(join);
    } catch (error) {
      this.#ended(pane, describeThrown(error));
      return;
    }
    const isShown = () => this.#joins.get(pane)?.op === op;
    const decoder = new FrameDecoder({
      decoded: (frame, bitmap) => {
        if (isShown())
          this.#host.post({ kind: "pane", pane, item: { kind: "frame", frame, bitmap } }, [bitmap]);
        else bitmap.close();
      },
      failed: (frame) => {
        if (isShown()) this.#confirm(pane, frame);
      },
    });
    const notes = new NoteQueue();
    notes.push({ kind: "pane" });
    this.#joins.set(pane, { op, decoder, notes });
  }

  close(pane: number): void {
    const join = this.#joins.get(pane);
    this.#joins.delete(pane);
    if (join) this.#host.cancel(join.op);
  }

  closeAll(): void {
    this.#joins.clear();
  }

  note(pane: number, note: Note): void {
    this.#joins.get(pane)?.notes.push(note);
  }

  /** Takes a waiting note of any picture; null if none waits. */
  takeNote(): { op: number; note: Note } | null {
    for (const { op, notes } of this.#joins.values()) {
      const note = notes.take();
      if (note) return { op, note };
    }
    return null;
  }

  /** Handles an item of the operation `op`. Throws an `Error` for an item that is not legal. */
  item(op: number, body: Uint8Array, bulk: Uint8Array<ArrayBuffer>): void {
    const [pane, join] = [...this.#joins].find(([, { op: own }]) => own === op) ?? [];
    if (pane === undefined || !join) return; // closed meanwhile
    const item = parseItem(body);
    if (item.kind === "frame") join.decoder.push({ frame: item.frame, bytes: bulk });
    else if (item.kind === "joined" || item.kind === "view" || item.kind === "fidelity")
      this.#host.post({ kind: "pane", pane, item });
    else if (item.kind === "message" && item.severity !== "info")
      this.#host.post({ kind: "pane", pane, item });
  }

  /** Handles the end of the operation `op`. */
  ended(op: number, error: RemoteError | null): void {
    const pane = [...this.#joins].find(([, join]) => join.op === op)?.[0];
    if (pane === undefined) return;
    this.#joins.delete(pane);
    this.#ended(pane, error ? describeError(error) : texts.connection.sessionEnded);
  }

  /** Confirms a picture that cannot be decoded, so that the node sends another one. */
  #confirm(pane: number, frame: FrameInfo): void {
    this.note(pane, { kind: "shown", frame: frame.id });
    this.#host.flush();
  }

  #ended(pane: number, reason: string): void {
    this.#host.post({ kind: "pane", pane, item: { kind: "ended", reason } });
  }
}
