//! The client's state machine against a server played by hand.

import { describe, expect, it } from "vitest";

import { WireClient, type WireEvent } from "./client.ts";
import { crc32c } from "./crc32c.ts";
import { decodeFrame, encodeFrame, type Frame } from "./frames.ts";
import {
  CREDIT_STEP_BYTES,
  INITIAL_CREDIT_BYTES,
  MAX_BODY_BYTES,
  MAX_CHUNK_BYTES,
  MAX_OPERATIONS,
  MAX_OUTGOING_BYTES,
} from "./limits.ts";

const WELCOME: Frame = { kind: "welcome", version: 1, capabilities: [], program: "test", maxOperations: 16 };
const PRIORITY = { tier: 2, weight: 0 };
const NOTHING = new Uint8Array(0);

function opened(): WireClient {
  const client = new WireClient({ token: "t", program: "p" });
  client.receive(encodeFrame(WELCOME));
  take(client);
  return client;
}

function take(client: WireClient): Frame[] {
  const frames: Frame[] = [];
  for (let bytes = client.takeFrame(); bytes; bytes = client.takeFrame()) frames.push(decodeFrame(bytes));
  return frames;
}

function give(client: WireClient, ...frames: Frame[]): WireEvent[] {
  return frames.flatMap((frame) => client.receive(encodeFrame(frame)));
}

function item(op: number, bulk: Uint8Array, number = 0): Frame {
  return { kind: "item", op, item: number, body: NOTHING, bulkBytes: bulk.length, checksum: crc32c(bulk) };
}

describe("handshake", () => {
  it("sends a hello first, with the token and credit", () => {
    const [hello] = take(new WireClient({ token: "secret", program: "web" }));
    expect(hello).toMatchObject({ kind: "hello", token: "secret", credit: BigInt(INITIAL_CREDIT_BYTES) });
  });

  it("sends requests before welcome, pipelined", () => {
    const client = new WireClient({ token: "", program: "" });
    client.request("describe", NOTHING, PRIORITY);
    expect(take(client).map((frame) => frame.kind)).toEqual(["hello", "request"]);
  });

  it("ends when refused, with the reason", () => {
    const client = new WireClient({ token: "", program: "" });
    const error = { kind: 6, mayRetry: false, message: "no", context: [] };
    expect(give(client, { kind: "refused", error })).toEqual([{ kind: "refused", error }]);
    expect(() => client.request("list", NOTHING, PRIORITY)).toThrow("ended");
  });

  it("accepts no message before the welcome, and no unknown version", () => {
    const early = new WireClient({ token: "", program: "" });
    expect(() => give(early, { kind: "done", op: 1 })).toThrow("expected welcome");
    const newer = new WireClient({ token: "", program: "" });
    expect(() => give(newer, { ...WELCOME, version: 2 })).toThrow("version 1");
  });
});

describe("items", () => {
  it("are assembled from any chunks and interleaving", () => {
    const client = opened();
    const [a, b] = [client.request("a", NOTHING, PRIORITY), client.request("b", NOTHING, PRIORITY)];
    const [first, second] = [Uint8Array.of(1, 2, 3), Uint8Array.of(9, 8)];
    const events = give(
      client,
      item(a, first),
      item(b, second),
      { kind: "chunk", op: a, item: 0, offset: 0, bytes: first.subarray(0, 2) },
      { kind: "chunk", op: b, item: 0, offset: 0, bytes: second },
      { kind: "chunk", op: a, item: 0, offset: 2, bytes: first.subarray(2) },
      { kind: "done", op: b },
    );
    expect(events.map((event) => event.kind)).toEqual(["item", "item", "done"]);
    expect(events[0]).toMatchObject({ op: b, bulk: second });
    expect(events[1]).toMatchObject({ op: a, bulk: first });
  });

  it("are read from batches too, with the ends of their operations", () => {
    const client = opened();
    const [a, b] = [client.request("a", NOTHING, PRIORITY), client.request("b", NOTHING, PRIORITY)];
    const bulk = Uint8Array.of(1, 2, 3);
    const whole = { item: 0, body: Uint8Array.of(7), bulk, checksum: crc32c(bulk) };
    const events = give(client, {
      kind: "answers",
      answers: [
        { op: b, item: { ...whole, bulk: NOTHING, checksum: 0 }, done: false },
        { op: a, item: whole, done: true },
        { op: b, item: null, done: true },
      ],
    });
    expect(events.map((event) => event.kind)).toEqual(["item", "item", "done", "done"]);
    expect(events[1]).toMatchObject({ op: a, body: Uint8Array.of(7), bulk });
  });

  it("with a gap or too many bytes end the connection", () => {
    const bulk = Uint8Array.of(1, 2, 3, 4);
    const chunk = (offset: number, bytes: Uint8Array): Frame => ({
      kind: "chunk",
      op: 1,
      item: 0,
      offset,
      bytes,
    });
    const start = () => {
      const client = opened();
      const op = client.request("a", NOTHING, PRIORITY);
      give(client, { kind: "item", op, item: 0, body: NOTHING, bulkBytes: 4, checksum: crc32c(bulk) });
      return client;
    };
    expect(() => give(start(), chunk(1, bulk.subarray(1)))).toThrow("at byte 0");
    expect(() => give(start(), chunk(0, new Uint8Array(5)))).toThrow("found more");
  });

  it("with a wrong checksum fail their operation, which is cancelled; others continue", () => {
    const client = opened();
    const [a, b] = [client.request("a", NOTHING, PRIORITY), client.request("b", NOTHING, PRIORITY)];
    take(client);
    const bulk = Uint8Array.of(1, 2);
    const chunk = (op: number, number = 0): Frame => ({
      kind: "chunk",
      op,
      item: number,
      offset: 0,
      bytes: bulk,
    });
    const wrong: Frame = { kind: "item", op: a, item: 0, body: NOTHING, bulkBytes: 2, checksum: 7 };
    expect(give(client, wrong, chunk(a))).toMatchObject([
      { kind: "failed", op: a, error: { kind: 4, mayRetry: true } },
    ]);
    expect(take(client)).toEqual([{ kind: "cancel", op: a }]);
    expect(give(client, item(a, bulk, 1), chunk(a, 1), { kind: "done", op: a })).toEqual([]);
    expect(give(client, item(b, bulk), chunk(b))).toMatchObject([{ kind: "item", op: b }]);
  });

  it("of unknown operations are a protocol error; ends of completed operations are not", () => {
    expect(() => give(opened(), item(7, Uint8Array.of(1)))).toThrow("operation 7");
    expect(give(opened(), { kind: "done", op: 7 })).toEqual([]);
  });

  it("that are incomplete at the end are reported as failed", () => {
    const client = opened();
    const op = client.request("a", NOTHING, PRIORITY);
    expect(give(client, item(op, Uint8Array.of(1, 2)), { kind: "done", op })).toMatchObject([
      { kind: "failed", op },
    ]);
  });
});

describe("credit", () => {
  it("is returned for received data", () => {
    const client = opened();
    const op = client.request("a", NOTHING, PRIORITY);
    take(client);
    const bulk = new Uint8Array(2 * CREDIT_STEP_BYTES);
    give(client, item(op, bulk));
    for (let offset = 0; offset < bulk.length; offset += MAX_CHUNK_BYTES) {
      give(client, {
        kind: "chunk",
        op,
        item: 0,
        offset,
        bytes: bulk.subarray(offset, offset + MAX_CHUNK_BYTES),
      });
    }
    const credited = take(client).reduce(
      (sum, frame) => sum + (frame.kind === "credit" ? frame.more : 0n),
      0n,
    );
    expect(credited).toBe(BigInt(bulk.length));
  });
});

describe("operations", () => {
  it("are limited in number, and accept notes and cancellation only while they run", () => {
    const client = opened();
    const op = client.request("join", NOTHING, PRIORITY);
    client.note(op, Uint8Array.of(1));
    client.cancel(op);
    give(client, { kind: "done", op });
    client.note(op, Uint8Array.of(2));
    client.cancel(op);
    expect(take(client).map((frame) => frame.kind)).toEqual(["request", "note", "cancel"]);
    for (let i = 0; i < MAX_OPERATIONS; i++) client.request("a", NOTHING, PRIORITY);
    expect(() => client.request("a", NOTHING, PRIORITY)).toThrow("at most");
  });

  it("are cancelled once", () => {
    const client = opened();
    const op = client.request("a", NOTHING, PRIORITY);
    client.cancel(op);
    client.cancel(op);
    expect(take(client).map((frame) => frame.kind)).toEqual(["request", "cancel"]);
    expect(client.isUnderWay(op)).toBe(true);
    give(client, { kind: "done", op });
    expect(client.isUnderWay(op)).toBe(false);
  });

  it("pings a silent server, and reports why it disconnects", () => {
    const client = opened();
    client.ping();
    client.ping();
    expect(take(client)).toEqual([{ kind: "ping", nonce: 1n }]);
    client.ping();
    expect(take(client)).toEqual([{ kind: "ping", nonce: 2n }]);
    client.close("nonsense");
    expect(take(client)).toMatchObject([{ kind: "close", error: { message: "nonsense" } }]);
    expect(give(client, WELCOME)).toEqual([]);
  });

  it("are refused if too many bytes wait to be sent; the reason of a close is still sent", () => {
    const client = opened();
    const large = new Uint8Array(MAX_BODY_BYTES - 1000);
    const requests = () => {
      for (let i = 0; i < 5; i++) client.request("a", large, PRIORITY);
    };
    expect(requests).toThrow(`at most ${MAX_OUTGOING_BYTES} bytes`);
    expect(take(client).map((frame) => frame.kind === "request" && frame.op)).toEqual([1, 2, 3, 4]);
    expect(client.request("a", NOTHING, PRIORITY)).toBe(5);
    expect(requests).toThrow("at most");
    client.close("nonsense");
    expect(take(client)).toMatchObject([{ kind: "close", error: { message: "nonsense" } }]);
  });

  it("answers pings", () => {
    const client = opened();
    give(client, { kind: "ping", nonce: 5n });
    expect(take(client)).toEqual([{ kind: "pong", nonce: 5n }]);
  });
});
