//! The client's side of one connection as a state machine: frames in, events and frames out. It uses neither
//! sockets nor clocks; the worker moves its bytes.

import type { Answer } from "./batch.ts";
import { WireError } from "./codec.ts";
import { crc32c } from "./crc32c.ts";
import { ErrorKind, type RemoteError } from "./error.ts";
import {
  decodeFrame,
  encodeFrame,
  VERSION,
  type Chunk,
  type Frame,
  type Item,
  type Priority,
} from "./frames.ts";
import {
  CREDIT_STEP_BYTES,
  INITIAL_CREDIT_BYTES,
  MAX_ASSEMBLING_BYTES,
  MAX_ASSEMBLING_ITEMS,
  MAX_OPERATIONS,
  MAX_OUTGOING_BYTES,
} from "./limits.ts";

/** Event that the state machine reports. `op` is the number that `request` gave. */
export type WireEvent =
  | { readonly kind: "welcome"; readonly program: string }
  | { readonly kind: "refused"; readonly error: RemoteError }
  | {
      readonly kind: "item";
      readonly op: number;
      readonly body: Uint8Array;
      readonly bulk: Uint8Array<ArrayBuffer>;
    }
  | { readonly kind: "done"; readonly op: number }
  | { readonly kind: "failed"; readonly op: number; readonly error: RemoteError }
  | { readonly kind: "closed"; readonly error: RemoteError };

export interface ClientOptions {
  readonly token: string;
  /** Name and version of this program, for the server's log. */
  readonly program: string;
}

interface Assembly {
  readonly body: Uint8Array;
  readonly bulkBytes: number;
  readonly checksum: number;
  /** Parts as received: a wrong length costs no memory. */
  readonly parts: Uint8Array[];
  received: number;
  running: number;
}

interface Operation {
  nextItem: number;
  /** Reported as failed; further data are only counted. */
  hasFailed: boolean;
  isCancelled: boolean;
  readonly assembling: Map<number, Assembly>;
}

export class WireClient {
  readonly #outgoing: Uint8Array<ArrayBuffer>[] = [];
  #outgoingBytes = 0;
  readonly #operations = new Map<number, Operation>();
  #nextOp = 1;
  #nextPing = 1n;
  #assemblingItems = 0;
  #state: "greeting" | "open" | "ended" = "greeting";
  #assemblingBytes = 0;
  #allowedBytes = INITIAL_CREDIT_BYTES;
  #owedBytes = 0;

  constructor(options: ClientOptions) {
    this.#send({
      kind: "hello",
      lowest: VERSION,
      highest: VERSION,
      capabilities: ["crc32c", "batch"],
      token: options.token,
      credit: BigInt(INITIAL_CREDIT_BYTES),
      program: options.program,
    });
  }

  /** Takes the oldest frame to send; null if there is none. */
  takeFrame(): Uint8Array<ArrayBuffer> | null {
    const frame = this.#outgoing.shift() ?? null;
    this.#outgoingBytes -= frame?.length ?? 0;
    return frame;
  }

  /** Starts an operation and returns its number. Throws [`WireError`] at the bounds of `limits.ts`. */
  request(name: string, parameters: Uint8Array, priority: Priority): number {
    if (this.#state === "ended") throw new WireError("the connection has ended");
    if (this.#operations.size >= MAX_OPERATIONS) {
      throw new WireError(`at most ${MAX_OPERATIONS} operations may be under way`);
    }
    const op = this.#nextOp;
    this.#send({ kind: "request", op, name, priority, deadlineMillis: 0, parameters });
    this.#nextOp++;
    this.#operations.set(op, { nextItem: 0, hasFailed: false, isCancelled: false, assembling: new Map() });
    return op;
  }

  /** True until the server has ended the operation, also after it was cancelled. */
  isUnderWay(op: number): boolean {
    return this.#operations.has(op);
  }

  /** Cancels an operation; its `failed` or `done` still arrives. */
  cancel(op: number): void {
    const operation = this.#operations.get(op);
    if (!operation || operation.isCancelled) return;
    this.#send({ kind: "cancel", op });
    operation.isCancelled = true;
  }

  /** Sends a message to a running operation; ignored if it has ended. */
  note(op: number, body: Uint8Array): void {
    if (this.#operations.has(op)) this.#send({ kind: "note", op, body });
  }

  /** Sends a ping, to which the server answers; not behind frames that the network has yet to take. */
  ping(): void {
    if (this.#outgoing.length === 0) this.#send({ kind: "ping", nonce: this.#nextPing++ });
  }

  /** Closes the connection and sends only the reason to the server. */
  close(message: string): void {
    this.#outgoing.length = 0;
    this.#outgoingBytes = 0;
    this.#send({ kind: "close", error: { kind: ErrorKind.corrupt, mayRetry: false, message, context: [] } });
    this.#end();
  }

  /** Handles one message. Throws [`WireError`] if the server violates the protocol; close the connection then. */
  receive(message: Uint8Array): WireEvent[] {
    if (this.#state === "ended") return [];
    const frame = decodeFrame(message);
    if (this.#state === "greeting" && !["welcome", "refused", "close", "ping"].includes(frame.kind)) {
      throw new WireError(`expected welcome or refused, found ${frame.kind}`);
    }
    switch (frame.kind) {
      case "welcome":
        return this.#welcome(frame.version, frame.program);
      case "refused":
        this.#end();
        return [{ kind: "refused", error: frame.error }];
      case "close":
        this.#end();
        return [{ kind: "closed", error: frame.error }];
      case "item":
        return this.#item(frame);
      case "chunk":
        return this.#chunk(frame);
      case "answers":
        return frame.answers.flatMap((answer) => this.#answer(answer));
      case "done":
      case "failed":
        return this.#finish(frame);
      case "ping":
        this.#send({ kind: "pong", nonce: frame.nonce });
        return [];
      case "pong":
        return [];
      default:
        throw new WireError(`expected a frame that servers send, found ${frame.kind}`);
    }
  }

  #welcome(version: number, program: string): WireEvent[] {
    if (this.#state !== "greeting") throw new WireError("received a second welcome");
    if (version !== VERSION) throw new WireError(`expected version ${VERSION} of the wire, found ${version}`);
    this.#state = "open";
    return [{ kind: "welcome", program }];
  }

  /** Handles an answer as the frames that it stands for: item, chunk and end. */
  #answer({ op, item, done }: Answer): WireEvent[] {
    const events: WireEvent[] = [];
    if (item) {
      const { bulk, ...head } = item;
      events.push(...this.#item({ kind: "item", op, bulkBytes: bulk.length, ...head }));
      if (bulk.length > 0) {
        events.push(...this.#chunk({ kind: "chunk", op, item: item.item, offset: 0, bytes: bulk }));
      }
    }
    return done ? events.concat(this.#finish({ kind: "done", op })) : events;
  }

  #item(frame: Item): WireEvent[] {
    const operation = this.#operations.get(frame.op);
    if (!operation)
      throw new WireError(`expected an item of a running operation, found operation ${frame.op}`);
    if (frame.item !== operation.nextItem) {
      throw new WireError(
        `expected item ${operation.nextItem} of operation ${frame.op}, found ${frame.item}`,
      );
    }
    operation.nextItem++;
    const { body, bulkBytes, checksum } = frame;
    if (operation.hasFailed && bulkBytes === 0) return [];
    if (bulkBytes === 0) return [{ kind: "item", op: frame.op, body, bulk: new Uint8Array(0) }];
    if (++this.#assemblingItems > MAX_ASSEMBLING_ITEMS) {
      throw new WireError(`at most ${MAX_ASSEMBLING_ITEMS} items may be unfinished`);
    }
    operation.assembling.set(frame.item, { body, bulkBytes, checksum, parts: [], received: 0, running: 0 });
    return [];
  }

  #chunk(frame: Chunk): WireEvent[] {
    const operation = this.#operations.get(frame.op);
    const assembly = operation?.assembling.get(frame.item);
    if (!operation || !assembly) {
      throw new WireError(`expected a chunk of an announced item, found item ${frame.item} of ${frame.op}`);
    }
    this.#account(frame.bytes.length);
    if (frame.offset !== assembly.received) {
      throw new WireError(`expected a chunk at byte ${assembly.received}, found one at ${frame.offset}`);
    }
    if (assembly.received + frame.bytes.length > assembly.bulkBytes) {
      throw new WireError(`expected ${assembly.bulkBytes} bulk bytes, found more`);
    }
    assembly.parts.push(frame.bytes);
    assembly.received += frame.bytes.length;
    assembly.running = crc32c(frame.bytes, assembly.running);
    if (assembly.received < assembly.bulkBytes) return [];
    operation.assembling.delete(frame.item);
    this.#release(assembly);
    if (operation.hasFailed) return [];
    if (assembly.running !== assembly.checksum) return this.#damaged(frame, operation);
    return [
      { kind: "item", op: frame.op, body: assembly.body, bulk: joined(assembly.parts, assembly.received) },
    ];
  }

  /** Fails the operation of a damaged item; the connection continues. */
  #damaged(frame: Chunk, operation: Operation): WireEvent[] {
    operation.hasFailed = true;
    this.cancel(frame.op);
    const message = `item ${frame.item} arrived with a wrong checksum`;
    return [failed(frame.op, { kind: ErrorKind.corrupt, mayRetry: true, message, context: [] })];
  }

  #release(assembly: Assembly): void {
    this.#assemblingBytes -= assembly.received;
    this.#assemblingItems--;
  }

  /** Checks received bulk bytes against credit and memory, and returns credit for them. */
  #account(bytes: number): void {
    this.#allowedBytes -= bytes;
    if (this.#allowedBytes < 0) throw new WireError("the server sent more bytes than its credit allows");
    this.#assemblingBytes += bytes;
    if (this.#assemblingBytes > MAX_ASSEMBLING_BYTES) {
      throw new WireError(`expected at most ${MAX_ASSEMBLING_BYTES} bytes in unfinished items, found more`);
    }
    this.#owedBytes += bytes;
    if (this.#owedBytes < CREDIT_STEP_BYTES) return;
    this.#send({ kind: "credit", more: BigInt(this.#owedBytes) });
    this.#allowedBytes += this.#owedBytes;
    this.#owedBytes = 0;
  }

  #finish(frame: Extract<Frame, { kind: "done" | "failed" }>): WireEvent[] {
    const operation = this.#operations.get(frame.op);
    if (!operation) return [];
    for (const assembly of operation.assembling.values()) this.#release(assembly);
    this.#operations.delete(frame.op);
    if (operation.hasFailed) return [];
    if (frame.kind === "failed") return [failed(frame.op, frame.error)];
    if (operation.assembling.size === 0) return [{ kind: "done", op: frame.op }];
    const message = "the operation ended before all bytes of its items arrived";
    return [failed(frame.op, { kind: ErrorKind.corrupt, mayRetry: true, message, context: [] })];
  }

  #end(): void {
    this.#state = "ended";
    this.#operations.clear();
  }

  #send(frame: Frame): void {
    const bytes = encodeFrame(frame);
    if (this.#outgoingBytes + bytes.length > MAX_OUTGOING_BYTES) {
      throw new WireError(`at most ${MAX_OUTGOING_BYTES} bytes may wait to be sent`);
    }
    this.#outgoing.push(bytes);
    this.#outgoingBytes += bytes.length;
  }
}

function failed(op: number, error: RemoteError): WireEvent {
  return { kind: "failed", op, error };
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
