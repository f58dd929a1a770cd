//! A connection with a fake socket: each test sends the messages of the server.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  GONE_AFTER_MILLIS,
  GREETING_LIMIT_MILLIS,
  MAX_SEND_BUFFER_BYTES,
  SILENT_AFTER_MILLIS,
} from "../wire/limits.ts";
import { Connection } from "./connection.ts";
import { FakeSocket } from "./fake-socket.ts";
import type { FromWorker } from "./messages.ts";
import { webSocketTransport } from "./transport.ts";

const PLACE = { dataset: "0".repeat(32), generation: 0, array: 0, level: 0 };
const JOIN = { session: "main", name: "", resume: "", width: 640, height: 480 };
let posted: FromWorker[];

beforeEach(() => {
  posted = [];
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function connect(): { connection: Connection; socket: FakeSocket } {
  const connection = new Connection(webSocketTransport("ws://a/wire"), "t", JOIN, (message) =>
    posted.push(message),
  );
  return { connection, socket: FakeSocket.last };
}

describe("silence", () => {
  it("before the welcome ends the connection", () => {
    const { socket } = connect();
    socket.readyState = FakeSocket.OPEN;
    socket.onopen();
    vi.advanceTimersByTime(GREETING_LIMIT_MILLIS - 1);
    const ends = () => posted.filter(({ kind }) => kind === "disconnected");
    expect(ends()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(ends()).toEqual([{ kind: "disconnected", reason: "the server does not answer" }]);
  });

  it("causes a ping, then a message, and then ends the connection", () => {
    const { socket } = connect();
    socket.open();
    vi.advanceTimersByTime(SILENT_AFTER_MILLIS + 1000);
    expect(socket.sent.filter((frame) => frame.kind === "ping")).toHaveLength(2);
    expect(posted).toEqual([{ kind: "silent", isSilent: true }]);
    vi.advanceTimersByTime(GONE_AFTER_MILLIS - SILENT_AFTER_MILLIS);
    expect(posted.at(-1)).toEqual({ kind: "disconnected", reason: "the server stopped responding" });
  });

  it("that ends is reported", () => {
    const { socket } = connect();
    socket.open();
    vi.advanceTimersByTime(SILENT_AFTER_MILLIS + 1000);
    socket.receive({ kind: "pong", nonce: 1n });
    vi.advanceTimersByTime(1000);
    expect(posted.map((message) => message.kind)).toEqual(["silent", "silent"]);
  });
});

describe("requests of statistics", () => {
  const request = (connection: Connection, id: number) => {
    connection.stats({ kind: "stats", id, place: PLACE, bins: 8, ranges: [] });
  };
  const sentStats = (socket: FakeSocket) =>
    socket.sent.flatMap((frame) => (frame.kind === "request" && frame.name === "stats" ? [frame.op] : []));

  it("are sent one at a time to a stalled server, then only the newest", () => {
    const { connection, socket } = connect();
    socket.open();
    for (let id = 1; id <= 1000; id++) request(connection, id);
    const [op = 0, ...more] = sentStats(socket);
    expect(more).toEqual([]);
    expect(socket.sent.filter((frame) => frame.kind === "cancel")).toEqual([{ kind: "cancel", op }]);
    socket.receive({ kind: "done", op });
    expect(sentStats(socket)).toHaveLength(2);
    const answer = { histogram: { low: 0, high: 1, counts: [1] } };
    const body = new TextEncoder().encode(JSON.stringify(answer));
    const item = { item: 0, body, bulkBytes: 0, checksum: 0 };
    socket.receive({ kind: "item", op: sentStats(socket)[1] ?? 0, ...item });
    expect(posted).toMatchObject([{ kind: "stats", id: 1000 }]);
  });

  it("that cannot be written fail, and the next one is sent", () => {
    const { connection, socket } = connect();
    socket.open();
    const place = { ...PLACE, dataset: "none" };
    connection.stats({ kind: "stats", id: 1, place, bins: 8, ranges: [] });
    expect(posted).toMatchObject([{ kind: "statsFailed", id: 1 }]);
    request(connection, 2);
    expect(sentStats(socket)).toHaveLength(1);
  });
});

describe("the description", () => {
  it("is requested once more after any number of changes during a request", () => {
    const { socket } = connect();
    socket.open();
    const requests = (name: string) =>
      socket.sent.flatMap((frame) => (frame.kind === "request" && frame.name === name ? [frame.op] : []));
    const [join = 0] = requests("join");
    const body = new TextEncoder().encode(JSON.stringify({ kind: "changed" }));
    for (let item = 0; item < 1000; item++) {
      socket.receive({ kind: "item", op: join, item, body, bulkBytes: 0, checksum: 0 });
    }
    expect(posted).toEqual([]);
    expect(requests("describe")).toHaveLength(1);
    socket.receive({ kind: "done", op: requests("describe")[0] ?? 0 });
    expect(requests("describe")).toHaveLength(2);
    socket.receive({ kind: "done", op: requests("describe")[1] ?? 0 });
    expect(requests("describe")).toHaveLength(2);
  });
});

describe("notes on a blocked network", () => {
  it("do not fill the socket's buffer, and the newest view is sent once there is room", () => {
    const { connection, socket } = connect();
    socket.open();
    socket.isStalled = true;
    for (let time = 1; time <= 5000; time++) {
      const view = time === 2500 ? { v: 1, time, level: 3 } : { v: 1, time };
      connection.note({ kind: "view", seq: time, view, moving: true });
      connection.note({ kind: "shown", frame: time });
    }
    expect(socket.bufferedAmount).toBeGreaterThan(MAX_SEND_BUFFER_BYTES / 2);
    expect(socket.bufferedAmount).toBeLessThan(MAX_SEND_BUFFER_BYTES + 200);
    socket.isStalled = false;
    socket.bufferedAmount = 0;
    const before = socket.sent.length;
    vi.advanceTimersByTime(100);
    const notes = socket.sent.slice(before).flatMap((frame) => {
      if (frame.kind !== "note") return [];
      return [JSON.parse(new TextDecoder().decode(frame.body)) as unknown];
    });
    expect(notes).toEqual([
      { kind: "view", seq: 5000, view: { v: 1, time: 5000, level: 3 }, moving: true },
      { kind: "shown", frame: 5000 },
    ]);
  });
});
