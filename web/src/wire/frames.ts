//! The frames of the wire, both directions, as `docs/wire.md` lists them. Both directions are encoded and decoded
//! here so that golden vectors cover all of them; a page sends one half and receives the other.

import {
  readAnswers,
  readRequests,
  writeAnswers,
  writeRequests,
  type Answers,
  type Requests,
} from "./batch.ts";
import { Reader, WireError, Writer } from "./codec.ts";
import { readError, writeError, type RemoteError } from "./error.ts";
import {
  MAX_BODY_BYTES,
  MAX_CAPABILITIES,
  MAX_CHUNK_BYTES,
  MAX_FRAME_BYTES,
  MAX_ITEM_BULK_BYTES,
  MAX_NAME_BYTES,
  MAX_TOKEN_BYTES,
} from "./limits.ts";

/** "CODR", the first field of a hello. */
export const MAGIC = 0x52444f43;
/** The version this side speaks. */
export const VERSION = 1;

/** Priority: the tier (0 background to 4 urgent) first, then the weight within it. */
export interface Priority {
  readonly tier: number;
  readonly weight: number;
}

export interface Hello {
  readonly kind: "hello";
  readonly lowest: number;
  readonly highest: number;
  readonly capabilities: readonly string[];
  readonly token: string;
  readonly credit: bigint;
  readonly program: string;
}
export interface Request {
  readonly kind: "request";
  readonly op: number;
  readonly name: string;
  readonly priority: Priority;
  /** Deadline from now; 0: none. */
  readonly deadlineMillis: number;
  readonly parameters: Uint8Array;
}
export interface Adjust {
  readonly kind: "adjust";
  readonly op: number;
  readonly priority: Priority;
  readonly deadlineMillis: number;
}
export interface Item {
  readonly kind: "item";
  readonly op: number;
  readonly item: number;
  readonly body: Uint8Array;
  readonly bulkBytes: number;
  /** CRC-32C of the bulk bytes. */
  readonly checksum: number;
}
export interface Chunk {
  readonly kind: "chunk";
  readonly op: number;
  readonly item: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
}
export interface Welcome {
  readonly kind: "welcome";
  readonly version: number;
  readonly capabilities: readonly string[];
  readonly program: string;
  readonly maxOperations: number;
}

export type Frame =
  | Hello
  | Request
  | Requests
  | Adjust
  | { readonly kind: "cancel"; readonly op: number }
  | { readonly kind: "credit"; readonly more: bigint }
  | { readonly kind: "note"; readonly op: number; readonly body: Uint8Array }
  | { readonly kind: "ping"; readonly nonce: bigint }
  | { readonly kind: "pong"; readonly nonce: bigint }
  | { readonly kind: "close"; readonly error: RemoteError }
  | Welcome
  | { readonly kind: "refused"; readonly error: RemoteError }
  | Item
  | Chunk
  | Answers
  | { readonly kind: "done"; readonly op: number }
  | { readonly kind: "failed"; readonly op: number; readonly error: RemoteError };

const CODES: Readonly<Record<Frame["kind"], number>> = {
  hello: 0x01,
  request: 0x02,
  adjust: 0x03,
  cancel: 0x04,
  credit: 0x05,
  note: 0x06,
  ping: 0x07,
  pong: 0x08,
  requests: 0x09,
  close: 0x0f,
  welcome: 0x81,
  refused: 0x82,
  item: 0x83,
  chunk: 0x84,
  done: 0x85,
  failed: 0x86,
  answers: 0x87,
};

/** One frame as bytes: one binary WebSocket message. */
export function encodeFrame(frame: Frame): Uint8Array<ArrayBuffer> {
  const writer = new Writer().u8(CODES[frame.kind]);
  writeFields(writer, frame);
  const bytes = writer.finish();
  if (bytes.length > MAX_FRAME_BYTES) {
    throw new WireError(`expected a frame of at most ${MAX_FRAME_BYTES} bytes, found ${bytes.length}`);
  }
  return bytes;
}

function writeFields(w: Writer, frame: Frame): void {
  switch (frame.kind) {
    case "hello":
      w.u32(MAGIC).u16(frame.lowest).u16(frame.highest);
      w.list(frame.capabilities, (writer, name) => writer.str(name, MAX_NAME_BYTES));
      w.str(frame.token, MAX_TOKEN_BYTES).u64(frame.credit).str(frame.program, MAX_NAME_BYTES);
      return;
    case "request":
      writePriority(w.u32(frame.op).str(frame.name, MAX_NAME_BYTES), frame.priority);
      w.u32(frame.deadlineMillis).bytes(within(frame.parameters, MAX_BODY_BYTES, "parameters"));
      return;
    case "requests":
      writeRequests(w, frame);
      return;
    case "answers":
      writeAnswers(w, frame);
      return;
    case "adjust":
      writePriority(w.u32(frame.op), frame.priority);
      w.u32(frame.deadlineMillis);
      return;
    case "cancel":
    case "done":
      w.u32(frame.op);
      return;
    case "credit":
      w.u64(frame.more);
      return;
    case "note":
      w.u32(frame.op).bytes(within(frame.body, MAX_BODY_BYTES, "a note"));
      return;
    case "ping":
    case "pong":
      w.u64(frame.nonce);
      return;
    case "close":
    case "refused":
      writeError(w, frame.error);
      return;
    case "welcome":
      w.u16(frame.version).list(frame.capabilities, (writer, name) => writer.str(name, MAX_NAME_BYTES));
      w.str(frame.program, MAX_NAME_BYTES).u32(frame.maxOperations);
      return;
    case "item":
      w.u32(frame.op)
        .u32(frame.item)
        .bytes(within(frame.body, MAX_BODY_BYTES, "a body"));
      w.u64(frame.bulkBytes).u32(frame.checksum);
      return;
    case "chunk":
      w.u32(frame.op)
        .u32(frame.item)
        .u64(frame.offset)
        .raw(within(frame.bytes, MAX_CHUNK_BYTES, "a chunk"));
      return;
    case "failed":
      writeError(w.u32(frame.op), frame.error);
      return;
  }
}

/** The frame in one message. Trailing bytes after the last known field are ignored. */
export function decodeFrame(message: Uint8Array): Frame {
  if (message.length > MAX_FRAME_BYTES) {
    throw new WireError(`expected a frame of at most ${MAX_FRAME_BYTES} bytes, found ${message.length}`);
  }
  const r = new Reader(message);
  const code = r.u8();
  switch (code) {
    case CODES.hello:
      return readHello(r);
    case CODES.request:
      return {
        kind: "request",
        op: r.u32(),
        name: r.str(MAX_NAME_BYTES),
        priority: readPriority(r),
        deadlineMillis: r.u32(),
        parameters: r.bytes(MAX_BODY_BYTES),
      };
    case CODES.requests:
      return readRequests(r);
    case CODES.answers:
      return readAnswers(r);
    case CODES.adjust:
      return { kind: "adjust", op: r.u32(), priority: readPriority(r), deadlineMillis: r.u32() };
    case CODES.cancel:
      return { kind: "cancel", op: r.u32() };
    case CODES.credit:
      return { kind: "credit", more: r.u64() };
    case CODES.note:
      return { kind: "note", op: r.u32(), body: r.bytes(MAX_BODY_BYTES) };
    case CODES.ping:
      return { kind: "ping", nonce: r.u64() };
    case CODES.pong:
      return { kind: "pong", nonce: r.u64() };
    case CODES.close:
      return { kind: "close", error: readError(r) };
    case CODES.welcome:
      return {
        kind: "welcome",
        version: r.u16(),
        capabilities: readCapabilities(r),
        program: r.str(MAX_NAME_BYTES),
        maxOperations: r.u32(),
      };
    case CODES.refused:
      return { kind: "refused", error: readError(r) };
    case CODES.item:
      return {
        kind: "item",
        op: r.u32(),
        item: r.u32(),
        body: r.bytes(MAX_BODY_BYTES),
        bulkBytes: r.size(MAX_ITEM_BULK_BYTES),
        checksum: r.u32(),
      };
    case CODES.chunk:
      return readChunk(r);
    case CODES.done:
      return { kind: "done", op: r.u32() };
    case CODES.failed:
      return { kind: "failed", op: r.u32(), error: readError(r) };
    default:
      throw new WireError(`expected a known kind of frame, found 0x${code.toString(16).padStart(2, "0")}`);
  }
}

function readHello(r: Reader): Hello {
  const magic = r.u32();
  if (magic !== MAGIC)
    throw new WireError(`expected the magic number of a hello, found 0x${magic.toString(16)}`);
  return {
    kind: "hello",
    lowest: r.u16(),
    highest: r.u16(),
    capabilities: readCapabilities(r),
    token: r.str(MAX_TOKEN_BYTES),
    credit: r.u64(),
    program: r.str(MAX_NAME_BYTES),
  };
}

function readCapabilities(r: Reader): string[] {
  return r.list((reader) => reader.str(MAX_NAME_BYTES), MAX_CAPABILITIES);
}

function readChunk(r: Reader): Chunk {
  const head = { kind: "chunk", op: r.u32(), item: r.u32(), offset: r.size(MAX_ITEM_BULK_BYTES) } as const;
  const bytes = within(r.rest(), MAX_CHUNK_BYTES, "a chunk");
  if (bytes.length === 0) throw new WireError("expected a chunk of at least one byte, found none");
  return { ...head, bytes };
}

function readPriority(r: Reader): Priority {
  return { tier: r.u8(), weight: r.f32() };
}

function writePriority(w: Writer, priority: Priority): void {
  w.u8(priority.tier).f32(priority.weight);
}

function within(bytes: Uint8Array, max: number, what: string): Uint8Array {
  if (bytes.length > max)
    throw new WireError(`expected ${what} of at most ${max} bytes, found ${bytes.length}`);
  return bytes;
}
