//! A relayed connection, whose other side is played by hand.

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { decodeFrame, encodeFrame } from "../wire/frames.ts";
import { MAX_SEND_BUFFER_BYTES } from "../wire/limits.ts";
import { Connection } from "./connection.ts";
import type { FromWorker } from "./messages.ts";
import { relayTransport, type FromRelay, type RelayPort, type ToRelay } from "./transport.ts";

class FakePort implements RelayPort {
  onmessage: ((event: MessageEvent) => void) | null = null;
  readonly sent: ToRelay[] = [];
  isClosed = false;

  postMessage(message: ToRelay): void {
    this.sent.push(message);
  }

  close(): void {
    this.isClosed = true;
  }

  receive(message: FromRelay): void {
    this.onmessage?.({ data: message } as MessageEvent);
  }

  welcome(): number {
    this.receive({ kind: "opened" });
    const frame = {
      kind: "welcome",
      version: 1,
      capabilities: [],
      program: "test",
      maxOperations: 16,
    } as const;
    const bytes = encodeFrame(frame).slice().buffer;
    this.receive(bytes);
    return bytes.byteLength;
  }

  bytes(): number {
    return this.sent.reduce((sum, m) => sum + (m instanceof ArrayBuffer ? m.byteLength : 0), 0);
  }
}

const JOIN = { session: "main", name: "", resume: "", width: 640, height: 480 };
let ports: FakePort[];
let posted: FromWorker[];

beforeEach(() => {
  vi.useFakeTimers();
  ports = [];
  posted = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function connect(): { connection: Connection; port: FakePort } {
  const transport = relayTransport(() => {
    const port = new FakePort();
    ports.push(port);
    return port;
  });
  const connection = new Connection(transport, "t", JOIN, (message) => posted.push(message));
  const port = ports.at(-1);
  if (!port) throw new Error("expected a port");
  return { connection, port };
}

it("carries the messages of the wire and confirms those of the node", () => {
  const { port } = connect();
  expect(port.sent).toEqual([]);
  const size = port.welcome();
  const first = port.sent[0];
  if (!(first instanceof ArrayBuffer)) throw new Error("expected bytes");
  expect(decodeFrame(new Uint8Array(first))).toMatchObject({ kind: "hello", token: "t" });
  expect(port.sent).toContainEqual({ kind: "done", bytes: size });
});

it("waits while the node takes nothing, and goes on when it does", () => {
  const { connection, port } = connect();
  port.welcome();
  for (let frame = 0; frame < 20_000; frame++) {
    connection.note({ kind: "shown", frame });
    connection.note({ kind: "view", seq: frame, view: { v: 1, time: frame }, moving: true });
  }
  const stalled = port.bytes();
  expect(stalled).toBeLessThan(MAX_SEND_BUFFER_BYTES + 300);
  port.receive({ kind: "taken", bytes: stalled });
  vi.advanceTimersByTime(100);
  expect(port.bytes()).toBeGreaterThan(stalled);
});

it("reports the relay's reason when it ends, before and after it was open", async () => {
  const { port } = connect();
  port.receive({ kind: "closed", reason: "the viewer was closed" });
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toEqual([{ kind: "disconnected", reason: "the viewer was closed" }]);
  expect(port.isClosed).toBe(true);
  const second = connect().port;
  second.welcome();
  second.receive({ kind: "closed", reason: "the kernel was restarted" });
  expect(posted.at(-1)).toEqual({ kind: "disconnected", reason: "the kernel was restarted" });
});
