//! One connection to a viewing node: moves bytes between a socket and the wire's state machine, asks for the
//! description, joins the session, and reports to the page.

import { texts } from "../texts/texts.ts";
import { parseDataset, parseDrawn, type SelectableMeaning } from "../dataset/dataset.ts";
import { parseStats } from "../dataset/stats.ts";
import { parseJson, type Json } from "../json.ts";
import { parseItem, type FrameInfo, type Join, type Note } from "../session/messages.ts";
import { parseUpdate } from "../session/together/content.ts";
import { NoteQueue } from "../session/note-queue.ts";
import { parseServers } from "../session/servers.ts";
import { WireClient, type WireEvent } from "../wire/client.ts";
import { describeError, describeThrown, ErrorKind, type RemoteError } from "../wire/error.ts";
import {
  GONE_AFTER_MILLIS,
  GREETING_LIMIT_MILLIS,
  MAX_SEND_BUFFER_BYTES,
  PING_AFTER_MILLIS,
  SILENT_AFTER_MILLIS,
} from "../wire/limits.ts";
import { describeParameters, statsParameters } from "../wire/operations.ts";
import { FrameDecoder } from "./decoder.ts";
import { PaneJoins } from "./pane-joins.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { OPEN, type MessageSocket, type Transport } from "./transport.ts";

/** Name of the page in the server's log. */
const PROGRAM = "corridor-web/0.1";
/** Interval between checks for silence. */
const CHECK_MILLIS = 500;
/** Interval of checks of a socket whose buffer is full: sockets do not report that there is room. */
const FLUSH_MILLIS = 20;
/** Errors that a retry would repeat; after all others the page reconnects. */
const PERMANENT_ERRORS: readonly number[] = [
  ErrorKind.invalid,
  ErrorKind.notFound,
  ErrorKind.unsupported,
  ErrorKind.denied,
];

/** Priority tiers, numbered as in `array::Priority`. */
const INTERACTIVE = { tier: 3, weight: 0 };
const NORMAL = { tier: 2, weight: 0 };
const BACKGROUND = { tier: 0, weight: 0 };

type OperationPurpose =
  | { readonly kind: "join" }
  | { readonly kind: "pane" }
  | { readonly kind: "describe" }
  | { readonly kind: "servers" }
  | { readonly kind: "interpret" }
  | { readonly kind: "call"; readonly id: number }
  | { readonly kind: "stats"; readonly id: number };
type CallRequest = Extract<ToWorker, { kind: "call" }>;
type StatsRequest = Extract<ToWorker, { kind: "stats" }>;
export type Post = (message: FromWorker, transfer?: Transferable[]) => void;

export class Connection {
  readonly #transport: Transport;
  readonly #socket: MessageSocket;
  readonly #client: WireClient;
  readonly #post: Post;
  readonly #decoder: FrameDecoder;
  readonly #operations = new Map<number, OperationPurpose>();
  readonly #greetingTimer: ReturnType<typeof setTimeout>;
  readonly #watchTimer: ReturnType<typeof setInterval>;
  readonly #notes = new NoteQueue();
  readonly #panes: PaneJoins;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #joinOp = 0;
  #describeOp = 0;
  /** The data set has changed since the description under way was requested. */
  #isDescriptionOld = false;
  #statsOp = 0;
  #waitingStats: StatsRequest | null = null;
  #lastReceivedMillis = performance.now();
  #lastPingMillis = 0;
  #hasOpened = false;
  #isSilent = false;
  #hasEnded = false;
  /** Ended by the page. */
  #isClosed = false;

  constructor(transport: Transport, token: string, join: Join, post: Post) {
    this.#transport = transport;
    this.#post = post;
    this.#decoder = new FrameDecoder({
      decoded: (frame, bitmap) => {
        if (this.#hasEnded) bitmap.close();
        else post({ kind: "frame", frame, bitmap }, [bitmap]);
      },
      failed: (frame, reason) => {
        this.#decodeFailed(frame, reason);
      },
    });
    this.#panes = new PaneJoins({
      request: (pane) => this.#request("join", encodeJson({ ...pane }), INTERACTIVE, { kind: "pane" }),
      cancel: (op) => {
        this.#client.cancel(op);
      },
      flush: () => {
        this.#flush();
      },
      post,
    });
    this.#client = new WireClient({ token, program: PROGRAM });
    this.#requestDescription();
    this.#joinOp = this.#request("join", encodeJson({ ...join }), INTERACTIVE, { kind: "join" });
    // Sends items as long as the connection lives. Older nodes do not support it; then nothing is shown.
    this.#request("servers", new Uint8Array(0), NORMAL, { kind: "servers" });
    this.#socket = transport.open();
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      this.#hasOpened = true;
      this.#flush();
    };
    this.#socket.onmessage = (event) => {
      this.#receive(event.data);
    };
    this.#socket.onclose = (event) => {
      if (this.#hasOpened)
        this.#end({ kind: "disconnected", reason: event.reason || texts.connection.closed });
      else void this.#reportFailure();
    };
    this.#greetingTimer = setTimeout(() => {
      if (this.#hasOpened) this.#end({ kind: "disconnected", reason: texts.connection.noAnswer });
      else void this.#reportFailure();
    }, GREETING_LIMIT_MILLIS);
    this.#watchTimer = setInterval(() => {
      this.#checkSilence(performance.now());
    }, CHECK_MILLIS);
  }

  note(note: Note): void {
    if (this.#hasEnded) return;
    this.#notes.push(note);
    this.#flush();
  }

  /** Joins the session once more, for a further picture. */
  openPane(pane: number, join: Join): void {
    if (this.#hasEnded) return;
    this.#panes.open(pane, join);
    this.#flush();
  }

  paneNote(pane: number, note: Note): void {
    if (this.#hasEnded) return;
    this.#panes.note(pane, note);
    this.#flush();
  }

  closePane(pane: number): void {
    if (this.#hasEnded) return;
    this.#panes.close(pane);
    this.#flush();
  }

  /** Requests statistics. An older request is cancelled; the new one waits until it has ended, and replaces one that waits. */
  stats(request: StatsRequest): void {
    if (this.#hasEnded) return;
    this.#client.cancel(this.#statsOp);
    this.#waitingStats = request;
    this.#startStats();
    this.#flush();
  }

  /** Calls an operation; the page bounds the number of calls under way. */
  call({ id, name, parameters }: CallRequest): void {
    if (this.#hasEnded) return;
    const isFile = name === "still" || name === "film";
    this.#request(name, encodeJson(parameters), isFile ? BACKGROUND : INTERACTIVE, { kind: "call", id });
    this.#flush();
  }

  cancelCall(id: number): void {
    if (this.#hasEnded) return;
    for (const [op, purpose] of this.#operations)
      if (purpose.kind === "call" && purpose.id === id) this.#client.cancel(op);
    this.#flush();
  }

  interpret(meaning: SelectableMeaning | null): void {
    if (this.#hasEnded) return;
    this.#request("interpret", encodeJson({ meaning }), INTERACTIVE, { kind: "interpret" });
    this.#flush();
  }

  /** Closes the connection, which then reports nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#stop();
  }

  #stop(): void {
    this.#hasEnded = true;
    this.#panes.closeAll();
    clearTimeout(this.#greetingTimer);
    clearInterval(this.#watchTimer);
    clearTimeout(this.#flushTimer);
    this.#socket.onclose = null;
    this.#socket.close();
  }

  #request(name: string, parameters: Uint8Array, priority: typeof NORMAL, purpose: OperationPurpose): number {
    const op = this.#client.request(name, parameters, priority);
    this.#operations.set(op, purpose);
    return op;
  }

  /** Sends requests that waited for an older one of their kind, if that has ended. */
  #startWaiting(): void {
    if (this.#hasEnded) return;
    if (this.#isDescriptionOld) this.#requestDescription();
    this.#startStats();
  }

  /** Sends the request of statistics that waits, if no other one is under way: a cancelled one is until its answer arrives. */
  #startStats(): void {
    const request = this.#waitingStats;
    if (!request || this.#client.isUnderWay(this.#statsOp)) return;
    this.#waitingStats = null;
    const { id, place, bins, ranges } = request;
    try {
      this.#statsOp = this.#request("stats", statsParameters(place, bins, ranges), NORMAL, {
        kind: "stats",
        id,
      });
    } catch (error) {
      this.#post({ kind: "statsFailed", id, reason: describeThrown(error) });
    }
  }

  /** Requests the description; while a request is under way, one more waits. */
  #requestDescription(): void {
    this.#isDescriptionOld = this.#client.isUnderWay(this.#describeOp);
    if (this.#isDescriptionOld) return;
    this.#describeOp = this.#request("describe", describeParameters(""), INTERACTIVE, { kind: "describe" });
  }

  /** Hands frames, and then notes, to the socket while its buffer has room; the rest waits. */
  #flush(): void {
    clearTimeout(this.#flushTimer);
    if (this.#socket.readyState !== OPEN) return;
    while (this.#socket.bufferedAmount < MAX_SEND_BUFFER_BYTES) {
      const frame = this.#client.takeFrame() ?? this.#takeNote();
      if (!frame) return;
      this.#socket.send(frame);
    }
    this.#flushTimer = setTimeout(() => {
      this.#flush();
    }, FLUSH_MILLIS);
  }

  /** Takes a waiting note as a frame. */
  #takeNote(): Uint8Array<ArrayBuffer> | null {
    const own = this.#notes.take();
    const waiting = own ? { op: this.#joinOp, note: own } : this.#panes.takeNote();
    if (!waiting) return null;
    try {
      this.#client.note(waiting.op, encodeJson(waiting.note));
    } catch (error) {
      this.#post({ kind: "message", severity: "warning", text: describeThrown(error) });
    }
    return this.#client.takeFrame();
  }

  /** Detects connections lost without notice (no network, a sleeping machine) by a ping after a time of silence. */
  #checkSilence(nowMillis: number): void {
    const silentMillis = nowMillis - this.#lastReceivedMillis;
    if (silentMillis > GONE_AFTER_MILLIS) {
      this.#end({ kind: "disconnected", reason: texts.connection.silent });
      return;
    }
    if (nowMillis - Math.max(this.#lastReceivedMillis, this.#lastPingMillis) > PING_AFTER_MILLIS) {
      this.#lastPingMillis = nowMillis;
      this.#client.ping();
      this.#flush();
    }
    if (silentMillis > SILENT_AFTER_MILLIS !== this.#isSilent) {
      this.#isSilent = !this.#isSilent;
      this.#post({ kind: "silent", isSilent: this.#isSilent });
    }
  }

  /** Reports a socket that never opened, with the reason that the transport finds. */
  async #reportFailure(): Promise<void> {
    if (this.#hasEnded) return;
    this.#stop();
    const reason = await this.#transport.failureReason();
    if (!this.#isClosed) this.#post({ kind: "disconnected", reason });
  }

  #receive(data: unknown): void {
    if (this.#hasEnded) return;
    this.#lastReceivedMillis = performance.now();
    try {
      if (!(data instanceof ArrayBuffer)) throw new Error("expected a binary message, found a text message");
      for (const event of this.#client.receive(new Uint8Array(data))) this.#handle(event);
      this.#startWaiting();
      this.#flush();
    } catch (error) {
      const detail = describeThrown(error);
      this.#client.close(detail);
      this.#flush();
      this.#end({ kind: "disconnected", reason: texts.connection.invalidMessage(detail) });
    }
  }

  #handle(event: WireEvent): void {
    switch (event.kind) {
      case "welcome":
        clearTimeout(this.#greetingTimer);
        return;
      case "refused":
        this.#refuse(event.error);
        return;
      case "closed":
        this.#end({ kind: "disconnected", reason: describeError(event.error) });
        return;
      case "item":
        this.#item(event.op, event.body, event.bulk);
        return;
      case "done":
      case "failed":
        this.#ended(event);
        return;
    }
  }

  #item(op: number, body: Uint8Array, bulk: Uint8Array<ArrayBuffer>): void {
    const purpose = this.#operations.get(op);
    // A description larger than the limit of a body arrives as bulk bytes.
    if (purpose?.kind === "describe") this.#describe(body.length > 0 ? body : bulk);
    if (purpose?.kind === "stats") this.#stats(purpose.id, body);
    if (purpose?.kind === "call")
      this.#post({ kind: "called", id: purpose.id, item: decodeJson(body), bulk }, [bulk.buffer]);
    if (purpose?.kind === "servers") this.#post({ kind: "servers", servers: parseServers(body) });
    if (purpose?.kind === "pane") this.#panes.item(op, body, bulk);
    if (purpose?.kind !== "join") return;
    const item = parseItem(body);
    if (item.kind === "changed") this.#requestDescription();
    else if (item.kind === "frame") this.#decoder.push({ frame: item.frame, bytes: bulk });
    else if (item.kind === "drawn") this.#post({ kind: "drawn", arrays: parseDrawn(decodeJson(bulk)) });
    else if (item.kind === "shared")
      this.#post({ kind: "shared", update: parseUpdate(item.numbers, decodeJson(bulk)) });
    else if (item.kind !== "unknown") this.#post(item);
  }

  #describe(body: Uint8Array): void {
    try {
      this.#post({ kind: "dataset", dataset: parseDataset(decodeJson(body)) });
    } catch (error) {
      // A new connection would receive the same description.
      this.#end({ kind: "refused", reason: describeThrown(error), needsToken: false });
    }
  }

  /** Reports statistics; there may be no histogram, for example if all values are missing. */
  #stats(id: number, body: Uint8Array): void {
    try {
      this.#post({ kind: "stats", id, stats: parseStats(decodeJson(body)) });
    } catch (error) {
      this.#post({ kind: "statsFailed", id, reason: describeThrown(error) });
    }
  }

  #ended(event: Extract<WireEvent, { kind: "done" | "failed" }>): void {
    const purpose = this.#operations.get(event.op);
    this.#operations.delete(event.op);
    const error = event.kind === "failed" ? event.error : null;
    if (purpose?.kind === "stats" && error) {
      this.#post({ kind: "statsFailed", id: purpose.id, reason: describeError(error) });
    }
    if (purpose?.kind === "call") {
      this.#post({ kind: "callEnded", id: purpose.id, reason: error ? describeError(error) : null });
    }
    if (purpose?.kind === "interpret" && error)
      this.#post({ kind: "message", severity: "warning", text: describeError(error) });
    if (purpose?.kind === "pane") this.#panes.ended(event.op, error);
    if (purpose?.kind === "describe" && error) this.#refuse(error);
    if (purpose?.kind !== "join") return;
    if (error) this.#refuse(error);
    else this.#end({ kind: "disconnected", reason: texts.connection.sessionEnded });
  }

  #refuse(error: RemoteError): void {
    const reason = describeError(error);
    const isBusy = error.kind === ErrorKind.busy;
    if (error.mayRetry || !PERMANENT_ERRORS.includes(error.kind))
      this.#end({ kind: "disconnected", reason, isBusy });
    else this.#end({ kind: "refused", reason, needsToken: error.kind === ErrorKind.denied });
  }

  /** Reports a picture that cannot be decoded, and confirms it so that the node can send another one. */
  #decodeFailed(frame: FrameInfo, reason: string): void {
    this.note({ kind: "shown", frame: frame.id });
    this.#post({ kind: "message", severity: "error", text: texts.connection.undecodablePicture(reason) });
  }

  #end(message: FromWorker): void {
    if (this.#hasEnded) return;
    this.#stop();
    this.#post(message);
  }
}

function encodeJson(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function decodeJson(body: Uint8Array): Json {
  return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
}
