//! The page's side of the worker, which is played by hand.

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { FromWorker, ToWorker } from "../worker/messages.ts";
import { ConnectionManager } from "./connection-manager.ts";
import type { ConnectionState } from "./state.ts";

class FakeWorker {
  static last: FakeWorker;
  readonly received: ToWorker[] = [];
  readonly #listeners = new Map<string, (event: object) => void>();

  constructor() {
    FakeWorker.last = this;
  }

  addEventListener(name: string, listener: (event: object) => void): void {
    this.#listeners.set(name, listener);
  }

  postMessage(message: ToWorker): void {
    this.received.push(message);
  }

  send(message: FromWorker): void {
    this.#listeners.get("message")?.({ data: message });
  }

  fail(message: string): void {
    this.#listeners.get("error")?.({ message });
  }
}

const JOINED = { kind: "joined", you: 1, role: "own", view: {}, seq: 0, resume: "", edits: 0 } as const;
let states: ConnectionState[];
let size: { width: number; height: number };
let manager: ConnectionManager;
let ownToken: string;
let told: { width: number; height: number }[];

beforeEach(() => {
  vi.useFakeTimers();
  const location = { protocol: "http:", hostname: "127.0.0.1" };
  const supported = { WebSocket: {}, Worker: {}, createImageBitmap: {} };
  vi.stubGlobal("window", { addEventListener: () => undefined, location, ...supported });
  vi.stubGlobal("document", { baseURI: "http://127.0.0.1/" });
  vi.stubGlobal("Worker", FakeWorker);
  states = [];
  ownToken = "";
  told = [];
  size = { width: 640, height: 480 };
  manager = new ConnectionManager({
    token: () => "",
    ownToken: () => ownToken,
    join: () => ({ session: "main", name: "", resume: "", ...size }),
    receive: () => undefined,
    onState: (state) => states.push(state),
    onSize: () => told.push(manager.size),
  });
  manager.connect();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("a size that changes before the page has joined is sent afterwards", () => {
  size = { width: 800, height: 480 };
  manager.resize(size);
  vi.advanceTimersByTime(1000);
  expect(FakeWorker.last.received.map(({ kind }) => kind)).toEqual(["connect"]);
  FakeWorker.last.send(JOINED);
  expect(FakeWorker.last.received.at(-1)).toEqual({ kind: "note", note: { kind: "resize", ...size } });
  expect(told).toEqual([size]);
  manager.resize(size);
  vi.advanceTimersByTime(1000);
  expect(FakeWorker.last.received).toHaveLength(2);
});

it("a size that has not changed is not sent", () => {
  manager.resize(size);
  FakeWorker.last.send(JOINED);
  vi.advanceTimersByTime(1000);
  expect(FakeWorker.last.received.map(({ kind }) => kind)).toEqual(["connect"]);
});

it("an error of a worker that has started causes a new connection, one of a worker that has not is final", () => {
  FakeWorker.last.fail("the script was blocked");
  expect(states.at(-1)).toMatchObject({ kind: "unsupported" });
  FakeWorker.last.send(JOINED);
  FakeWorker.last.fail("out of memory");
  expect(states.at(-1)).toMatchObject({
    kind: "waiting",
    reason: "the network worker failed: out of memory",
  });
  const before = FakeWorker.last.received.length;
  vi.advanceTimersByTime(1000);
  expect(FakeWorker.last.received.slice(before)).toMatchObject([{ kind: "connect" }]);
});

it("a page whose link was replaced comes back with its own token, once", () => {
  const tokens = () => FakeWorker.last.received.map((message) => message.kind === "connect" && message.token);
  FakeWorker.last.send(JOINED);
  ownToken = "mine";
  FakeWorker.last.send({ kind: "disconnected", reason: "the network" });
  vi.advanceTimersByTime(60_000);
  expect(tokens()).toEqual(["", ""]);
  FakeWorker.last.send({ kind: "refused", reason: "not the token", needsToken: true });
  expect(tokens()).toEqual(["", "", "mine"]);
  FakeWorker.last.send({ kind: "refused", reason: "not the token", needsToken: true });
  vi.advanceTimersByTime(60_000);
  expect(tokens()).toEqual(["", "", "mine"]);
  expect(states.at(-1)).toMatchObject({ kind: "refused" });
});

it("a page that was removed from the session does not come back by itself", () => {
  FakeWorker.last.send(JOINED);
  ownToken = "mine";
  FakeWorker.last.send({ kind: "refused", reason: "Ada removed you from this session", needsToken: true });
  vi.advanceTimersByTime(600_000);
  expect(FakeWorker.last.received).toHaveLength(1);
  expect(states.at(-1)).toMatchObject({ kind: "refused" });
});
