//! Batches of the wire: many requests in one frame, many small answers in one frame. Parameters are written as what
//! changed since the ones before; `docs/wire.md` describes tokens and progressions.

import { WireError, type Reader, type Writer } from "./codec.ts";
import {
  MAX_BATCH_OPERATIONS,
  MAX_BATCH_PARAMETER_BYTES,
  MAX_BODY_BYTES,
  MAX_CHUNK_BYTES,
  MAX_NAME_BYTES,
} from "./limits.ts";

const WEIGHT = 1;
const DEADLINE = 2;

const ITEM = 1;
const DONE = 2;
const BULK = 4;
const NUMBERED = 8;
const APART = 16;

/** Maximum number of bytes that one token skips or replaces. */
const MAX_TOKEN = 15;
/** A shorter progression is written as patches. */
const LEAST_PROGRESSION = 3;
const NOTHING = new Uint8Array(0);

/** Operations that share everything but their parameters; their numbers follow one another. */
export interface Requests {
  readonly kind: "requests";
  readonly first: number;
  readonly name: string;
  readonly priority: { readonly tier: number; readonly weight: number };
  /** Deadline from now; 0: none. */
  readonly deadlineMillis: number;
  readonly parameters: readonly Uint8Array[];
}

/** An item with its bulk. */
export interface WholeItem {
  readonly item: number;
  readonly body: Uint8Array;
  readonly bulk: Uint8Array;
  /** CRC-32C of the bulk. */
  readonly checksum: number;
}

/** Some of an answer: an item, the end, or both. */
export interface Answer {
  readonly op: number;
  readonly item: WholeItem | null;
  readonly done: boolean;
}

export interface Answers {
  readonly kind: "answers";
  readonly answers: readonly Answer[];
}

export function writeRequests(w: Writer, frame: Requests): void {
  const { tier, weight } = frame.priority;
  const isWeighted = !Object.is(weight, 0);
  w.varint(frame.first).short(new TextEncoder().encode(frame.name));
  w.u8((isWeighted ? WEIGHT : 0) | (frame.deadlineMillis > 0 ? DEADLINE : 0)).u8(tier);
  if (isWeighted) w.f32(weight);
  if (frame.deadlineMillis > 0) w.varint(frame.deadlineMillis);
  w.varint(frame.parameters.length);
  writeRuns(w, frame.parameters);
}

interface Progression {
  readonly at: number;
  readonly step: bigint;
  readonly count: number;
}

function writeRuns(w: Writer, all: readonly Uint8Array[]): void {
  for (let start = 0; start < all.length;) {
    const progression = progressionFrom(all, start);
    if (progression) {
      w.varint(progression.count * 2 + 1)
        .varint(progression.at)
        .varint(zigzag(progression.step));
      start += progression.count;
      continue;
    }
    const length = all[start]?.length ?? 0;
    let end = start + 1;
    while (end < all.length && all[end]?.length === length && !progressionFrom(all, end)) end++;
    w.varint((end - start) * 2).varint(length);
    for (; start < end; start++) writePatch(w, all[start - 1] ?? NOTHING, all[start] ?? NOTHING);
  }
}

function progressionFrom(all: readonly Uint8Array[], start: number): Progression | undefined {
  const first = stride(all[start - 1], all[start]);
  if (!first) return undefined;
  let count = 1;
  for (; ; count++) {
    const next = stride(all[start + count - 1], all[start + count]);
    if (next?.at !== first.at || next.step !== first.step) break;
  }
  return count >= LEAST_PROGRESSION ? { ...first, count } : undefined;
}

/** Place of the one number that changes between two parameters of equal length, and the step by which it grows. */
function stride(
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): { at: number; step: bigint } | undefined {
  if (!before || !after || before.length !== after.length || before.length < 8) return undefined;
  const differs = before.findIndex((byte, i) => byte !== after[i]);
  if (differs < 0) return undefined;
  const at = Math.min(differs, before.length - 8);
  if (before.subarray(at + 8).some((byte, i) => byte !== after[at + 8 + i])) return undefined;
  return { at, step: BigInt.asIntN(64, numberAt(after, at) - numberAt(before, at)) };
}

function numberAt(bytes: Uint8Array, at: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset + at, 8).getBigUint64(0, true);
}

function zigzag(value: bigint): bigint {
  return BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
}

function unzigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}

function writePatch(w: Writer, before: Uint8Array, after: Uint8Array): void {
  const stays = (i: number) => (before[i] ?? 0) === after[i];
  for (let at = 0; at < after.length;) {
    const start = at;
    while (at < after.length && stays(at)) at++;
    if (at === after.length) {
      w.u8(0);
      return;
    }
    let skip = at - start;
    for (; skip > MAX_TOKEN; skip -= MAX_TOKEN) w.u8(MAX_TOKEN << 4);
    const from = at;
    while (at < after.length && at - from < MAX_TOKEN && !stays(at)) at++;
    w.u8((skip << 4) | (at - from)).raw(after.subarray(from, at));
  }
}

export function readRequests(r: Reader): Requests {
  const first = r.varintSize();
  const name = r.text(r.short(MAX_NAME_BYTES));
  const flags = r.u8();
  const tier = r.u8();
  const weight = flags & WEIGHT ? r.f32() : 0;
  const deadlineMillis = flags & DEADLINE ? r.varintSize() : 0;
  const count = readCount(r);
  if (first + count > 2 ** 32) {
    throw new WireError(`expected operation numbers below 2^32, found ${count} from ${first}`);
  }
  const parameters: Uint8Array[] = [];
  const budget = { left: MAX_BATCH_PARAMETER_BYTES };
  while (parameters.length < count) readRun(r, parameters, count - parameters.length, budget);
  return { kind: "requests", first, name, priority: { tier, weight }, deadlineMillis, parameters };
}

function readCount(r: Reader): number {
  const count = r.varintSize();
  if (count < 1 || count > MAX_BATCH_OPERATIONS) {
    throw new WireError(`expected 1 to ${MAX_BATCH_OPERATIONS} operations in a batch, found ${count}`);
  }
  return count;
}

function readRun(r: Reader, parameters: Uint8Array[], max: number, budget: { left: number }): void {
  const head = r.varint();
  const count = head >> 1n;
  if (count < 1n || count > BigInt(max)) {
    throw new WireError(`expected a run of 1 to ${max} operations, found ${count.toString()}`);
  }
  const isProgression = (head & 1n) === 1n;
  const place = r.varintSize();
  const step = isProgression ? unzigzag(r.varint()) : 0n;
  for (let i = 0; i < Number(count); i++) {
    const before = parameters.at(-1) ?? NOTHING;
    const next = grown(before, isProgression ? before.length : place, budget);
    if (isProgression) addTo(next, place, step);
    else readPatch(r, next);
    parameters.push(next);
  }
}

/** A copy of `before`, cut or followed by zeros. */
function grown(before: Uint8Array, length: number, budget: { left: number }): Uint8Array {
  budget.left -= length;
  if (budget.left < 0) {
    throw new WireError(`expected at most ${MAX_BATCH_PARAMETER_BYTES} bytes of parameters, found more`);
  }
  const next = new Uint8Array(length);
  next.set(before.subarray(0, length));
  return next;
}

function addTo(bytes: Uint8Array, at: number, step: bigint): void {
  if (at + 8 > bytes.length) {
    throw new WireError(`expected a number within ${bytes.length} bytes, found it at ${at}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
  view.setBigUint64(0, BigInt.asUintN(64, view.getBigUint64(0, true) + step), true);
}

function readPatch(r: Reader, into: Uint8Array): void {
  for (let at = 0; at < into.length;) {
    const token = r.u8();
    if (token === 0) return;
    const start = at + (token >> 4);
    at = start + (token & 15);
    if (at > into.length) throw new WireError(`expected a patch of ${into.length} bytes, found one beyond`);
    into.set(r.take(token & 15), start);
  }
}

export function writeAnswers(w: Writer, frame: Answers): void {
  w.varint(frame.answers.length);
  let before = 0;
  for (const { op, item, done } of frame.answers) {
    const apart = (op - before - 1) >>> 0;
    const isBulky = item !== null && item.bulk.length > 0;
    const isNumbered = item !== null && item.item > 0;
    w.u8(
      (item ? ITEM : 0) |
        (done ? DONE : 0) |
        (isBulky ? BULK : 0) |
        (isNumbered ? NUMBERED : 0) |
        (apart ? APART : 0),
    );
    if (apart) w.varint(apart);
    if (item) {
      if (isNumbered) w.varint(item.item);
      w.short(item.body);
      if (isBulky) w.varint(item.bulk.length).u32(item.checksum);
    }
    before = op;
  }
  for (const { item } of frame.answers) if (item) w.raw(item.bulk);
}

export function readAnswers(r: Reader): Answers {
  const count = readCount(r);
  const heads: {
    op: number;
    flags: number;
    item: number;
    body: Uint8Array;
    size: number;
    checksum: number;
  }[] = [];
  let op = 0;
  let total = 0;
  for (let i = 0; i < count; i++) {
    const flags = r.u8();
    op = (op + 1 + (flags & APART ? r.varintSize() : 0)) >>> 0;
    const hasItem = (flags & ITEM) > 0;
    const item = hasItem && flags & NUMBERED ? r.varintSize() : 0;
    const body = hasItem ? r.short(MAX_BODY_BYTES) : NOTHING;
    const size = hasItem && flags & BULK ? r.varintSize() : 0;
    const checksum = hasItem && flags & BULK ? r.u32() : 0;
    heads.push({ op, flags, item, body, size, checksum });
    total += size;
  }
  if (total > MAX_CHUNK_BYTES) {
    throw new WireError(`expected at most ${MAX_CHUNK_BYTES} bulk bytes in a batch, found ${total}`);
  }
  const answers = heads.map(({ op: of, flags, item, body, size, checksum }) => ({
    op: of,
    item: flags & ITEM ? { item, body, bulk: r.take(size), checksum } : null,
    done: (flags & DONE) > 0,
  }));
  return { kind: "answers", answers };
}
