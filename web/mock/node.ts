//! A mock of a viewing node behind one WebSocket: the wire, `describe`, `stats`, `join`, pictures of `field.ts`
//! that sharpen in three steps.

import type { WebSocket } from "ws";

import { fit, HOME_FORWARD } from "../src/camera/camera.ts";
import { isObject, parseJson, type Json, type JsonObject } from "../src/json.ts";
import { parseView, viewToJson } from "../src/view/parse.ts";
import { EMPTY_VIEW, type View } from "../src/view/schema.ts";
import { crc32c } from "../src/wire/crc32c.ts";
import { decodeFrame, encodeFrame, type Frame } from "../src/wire/frames.ts";
import { MAX_CHUNK_BYTES } from "../src/wire/limits.ts";
import { Reader } from "../src/wire/codec.ts";
import { colormap } from "./colormaps.ts";
import { DATASET } from "./dataset.ts";
import { castRays, EXTENT, histogram } from "./field.ts";
import { encodePng } from "./png.ts";

/** A hello with any other token is refused. */
const TOKEN = "demo";
const LEVELS = 3;
const RANGES: Readonly<Record<string, readonly [number, number]>> = { rho: [0, 1100], speed: [0, 14] };

export class MockNode {
  readonly #socket: WebSocket;
  #join: { op: number; width: number; height: number } | null = null;
  #view: View = { ...EMPTY_VIEW, array: "rho" };
  #seq = 0;
  #frame = 0;
  #isMoving = false;
  #level = LEVELS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #items = new Map<number, number>();

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      this.#receive(decodeFrame(data));
    });
    socket.on("close", () => {
      clearTimeout(this.#timer);
    });
  }

  #receive(frame: Frame): void {
    if (frame.kind === "hello") {
      if (frame.token === TOKEN) {
        this.#send({
          kind: "welcome",
          version: 1,
          capabilities: ["crc32c"],
          program: "mock",
          maxOperations: 16,
        });
        return;
      }
      const message = frame.token === "" ? "expected a token, found none" : "the token is not valid here";
      this.#send({ kind: "refused", error: { kind: 6, mayRetry: false, message, context: [] } });
      this.#socket.close();
    }
    if (frame.kind === "request") this.#request(frame.op, frame.name, frame.parameters);
    if (frame.kind === "note") this.#note(parseJson(new TextDecoder().decode(frame.body)));
  }

  #request(op: number, name: string, parameters: Uint8Array): void {
    if (name === "describe") this.#answer(op, DATASET);
    if (name === "stats") this.#stats(op, parameters);
    if (name !== "join") return;
    const wish = parseJson(new TextDecoder().decode(parameters));
    if (!isObject(wish)) return;
    this.#join = { op, width: Number(wish.width), height: Number(wish.height) };
    this.#fillDefaults();
    this.#item({ kind: "joined", you: 1, role: "own", dataset: "binary.h5", view: viewToJson(this.#view) });
    this.#item({ kind: "participants", list: [{ id: 1, name: "Guest 1", role: "own" }] });
    this.#redraw();
  }

  #stats(op: number, parameters: Uint8Array): void {
    const reader = new Reader(parameters);
    reader.u64();
    reader.u64();
    reader.u32();
    const array = reader.u32() === 1 ? "speed" : "rho";
    reader.u8();
    this.#answer(op, histogram(array, this.#view.time, reader.u16()));
  }

  #answer(op: number, value: object): void {
    this.#send({ kind: "item", op, item: 0, body: encodeJson(value), bulkBytes: 0, checksum: 0 });
    this.#send({ kind: "done", op });
  }

  #note(note: Json): void {
    if (!isObject(note) || !this.#join) return;
    if (note.kind === "resize")
      this.#join = { ...this.#join, width: Number(note.width), height: Number(note.height) };
    if (note.kind === "view") {
      this.#seq = Number(note.seq);
      this.#isMoving = note.moving === true;
      this.#merge(isObject(note.view) ? note.view : {});
    }
    if (note.kind !== "shown") this.#redraw();
  }

  #merge(fields: JsonObject): void {
    this.#view = { ...this.#view, ...parseView(fields).patch };
    if (!this.#fillDefaults()) return;
    this.#seq++;
    this.#item({ kind: "view", seq: this.#seq, view: viewToJson(this.#view) });
  }

  #fillDefaults(): boolean {
    const { camera, transfer, color_by: by, array } = this.#view;
    if (camera && transfer && (!by || (by.range && by.map))) return false;
    const [x, y, z] = EXTENT;
    const box = { center: [x / 2, y / 2, z / 2] as const, diagonal: Math.hypot(x, y, z) };
    const size = this.#join ?? { width: 4, height: 3 };
    const range = RANGES[array] ?? [0, 1];
    const [low, high] = range;
    this.#view = {
      ...this.#view,
      camera: camera ?? fit(box, HOME_FORWARD, [0, 0, 1], size),
      transfer: transfer ?? {
        range,
        map: "viridis",
        opacity: [
          [low, 0],
          [low + 0.14 * (high - low), 0],
          [low + 0.5 * (high - low), 0.05],
          [high, 0.22],
        ],
      },
      color_by: by && { ...by, range: by.range ?? RANGES[by.array] ?? [0, 1], map: by.map ?? "magma" },
    };
    return true;
  }

  #redraw(): void {
    clearTimeout(this.#timer);
    this.#level = this.#isMoving ? Math.min(this.#level, 1) : Math.min(this.#level, 2);
    this.#timer = setTimeout(() => {
      this.#draw();
    }, 4);
  }

  #draw(): void {
    if (!this.#join) return;
    const wanted = this.#view.level ?? 0;
    const longest = this.#isMoving
      ? 140
      : ([Number(process.env.MOCK_SIDE ?? 280), 180, 110][Math.max(this.#level, 0)] ?? 100);
    const scale = Math.min(1, longest / Math.max(this.#join.width, this.#join.height));
    const width = Math.max(1, Math.round(this.#join.width * scale));
    const height = Math.max(1, Math.round(this.#join.height * scale));
    const colors = colormap(this.#view.transfer?.map ?? "");
    const png = encodePng(castRays(this.#view, colors, width, height), width, height);
    const truth = this.#truth(wanted);
    const seq = this.#seq;
    this.#item({ kind: "frame", id: ++this.#frame, seq, width, height, codec: "png", truth }, png);
    if (this.#isMoving || this.#level <= wanted) return;
    this.#timer = setTimeout(() => {
      this.#level--;
      this.#draw();
    }, 200);
  }

  #truth(wanted: number): object {
    const shown = Math.max(this.#level, wanted);
    const isDone = shown === wanted;
    const total = 480 >> (3 * wanted);
    const present = isDone ? total : Math.round(total * 0.3 ** (shown - wanted));
    const text = isDone
      ? "Everything that this picture needs is here."
      : `${total - present} blocks are on their way; the picture sharpens as they come.`;
    return {
      level_shown: shown,
      level_wanted: wanted,
      origin: shown === 0 ? "stored" : shown === 2 ? "sampled" : "mean",
      limit: wanted === 0 ? "finest" : "memory",
      blocks_present: present,
      blocks_total: total,
      state: this.#isMoving ? "moving" : isDone ? "complete" : "loading",
      exact: isDone && !this.#isMoving,
      levels_made: null,
      text,
    };
  }

  #item(body: object, bulk: Uint8Array = new Uint8Array(0)): void {
    if (!this.#join) return;
    const { op } = this.#join;
    const item = this.#items.get(op) ?? 0;
    this.#items.set(op, item + 1);
    const checksum = crc32c(bulk);
    this.#send({ kind: "item", op, item, body: encodeJson(body), bulkBytes: bulk.length, checksum });
    for (let offset = 0; offset < bulk.length; offset += MAX_CHUNK_BYTES) {
      this.#send({ kind: "chunk", op, item, offset, bytes: bulk.subarray(offset, offset + MAX_CHUNK_BYTES) });
    }
  }

  #send(frame: Frame): void {
    this.#socket.send(encodeFrame(frame));
  }
}

function encodeJson(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
