//! A connection whose server is played by hand.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { GONE_AFTER_MILLIS, GREETING_LIMIT_MILLIS, SILENT_AFTER_MILLIS } from "../wire/limits.ts";
import { Connection } from "./connection.ts";
import { FakeSocket } from "./fake-socket.ts";
import type { FromWorker } from "./messages.ts";

const JOIN = { session: "main", name: "", width: 640, height: 480 };
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
  const connection = new Connection("ws://a/wire", "t", JOIN, (message) => posted.push(message));
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

  it("that ends is reported too", () => {
    const { socket } = connect();
    socket.open();
    vi.advanceTimersByTime(SILENT_AFTER_MILLIS + 1000);
    socket.receive({ kind: "pong", nonce: 1n });
    vi.advanceTimersByTime(1000);
    expect(posted.map((message) => message.kind)).toEqual(["silent", "silent"]);
  });
});
