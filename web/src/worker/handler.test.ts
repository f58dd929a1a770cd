//! Messages of the page that cannot be carried out.

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { MAX_OPERATIONS, MAX_TOKEN_BYTES } from "../wire/limits.ts";
import { FakeSocket } from "./fake-socket.ts";
import { messageHandler } from "./handler.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

const CONNECT = {
  kind: "connect",
  url: "ws://a/wire",
  token: "t",
  join: { session: "main", name: "", resume: "", width: 640, height: 480 },
} as const;
let posted: FromWorker[];
let handle: (message: ToWorker) => void;

beforeEach(() => {
  posted = [];
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  handle = messageHandler((message) => posted.push(message));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("a token that is too long is refused, and another one can follow", () => {
  handle({ ...CONNECT, token: "t".repeat(MAX_TOKEN_BYTES + 1) });
  expect(posted).toMatchObject([{ kind: "refused", needsToken: true }]);
  handle(CONNECT);
  FakeSocket.last.open();
  expect(FakeSocket.last.sent[0]).toMatchObject({ kind: "hello", token: "t" });
});

it("an address that the browser refuses is reported", () => {
  vi.stubGlobal("WebSocket", function refuse() {
    throw new Error("an insecure connection may not be opened here");
  });
  handle(CONNECT);
  const reason = "an insecure connection may not be opened here";
  expect(posted).toEqual([{ kind: "refused", reason, needsToken: false }]);
});

it("requests beyond the limit cause a message", () => {
  handle(CONNECT);
  FakeSocket.last.open();
  for (let i = 0; i < MAX_OPERATIONS; i++) handle({ kind: "interpret", meaning: "labels" });
  const text = `at most ${MAX_OPERATIONS} operations may be under way`;
  expect(posted.at(-1)).toEqual({ kind: "message", severity: "warning", text });
});

it("a connection that was replaced reports nothing", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new Error("no network")));
  handle(CONNECT);
  FakeSocket.last.onclose?.({ reason: "" });
  handle(CONNECT);
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toEqual([]);
});
