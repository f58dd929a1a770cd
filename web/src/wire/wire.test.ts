//! The wire against the golden vectors that the Rust tests read too, and against broken peers.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { parseDataset } from "../dataset/dataset.ts";
import { parseStats } from "../dataset/stats.ts";
import { isObject, parseJson, type Json, type JsonObject } from "../json.ts";
import { parseItem, type Fidelity } from "../session/messages.ts";
import { parseServers } from "../session/servers.ts";
import { WireError, Writer } from "./codec.ts";
import { crc32c } from "./crc32c.ts";
import { decodeFrame, encodeFrame, type Frame } from "./frames.ts";
import {
  describeParameters,
  parsePiece,
  readParameters,
  statsParameters,
  type BlockPlace,
  type Range,
} from "./operations.ts";

interface Vector {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly meaning: Json;
}

const vectors: readonly Vector[] = [...vectorsOf("wire.txt"), ...vectorsOf("node.txt")];

function vectorsOf(file: string): Vector[] {
  const path = new URL(`../../../lab/vectors/${file}`, import.meta.url);
  return readFileSync(path, "utf8").split("\n").filter(isVector).map(parseVector);
}

function isVector(line: string): boolean {
  return line !== "" && !line.startsWith("#");
}

function parseVector(line: string): Vector {
  const [name = "", bytes = "", ...meaning] = line.split(" ");
  return {
    name,
    bytes: bytes === "-" ? new Uint8Array(0) : fromHex(bytes),
    meaning: parseJson(meaning.join(" ")),
  };
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns false for malformed parameters, bodies and lines, which other tests read. */
function isFrame({ name }: Vector): boolean {
  return !/^broken\.(params|body|line)\./.test(name);
}

const named = (prefix: string) => vectors.filter((vector) => vector.name.startsWith(prefix));

/** A frame in the words of the vectors. */
const FIELD_NAMES: Readonly<Record<string, string>> = {
  lowest: "lowest_version",
  highest: "highest_version",
  deadlineMillis: "deadline_ms",
  more: "bytes",
  maxOperations: "most_operations",
  bulkBytes: "bulk_bytes",
  checksum: "bulk_crc32c",
  mayRetry: "retry",
};

function inVectorWords(value: unknown): unknown {
  if (value instanceof Uint8Array) return toHex(value);
  if (typeof value === "bigint") return value > 2n ** 53n ? value.toString() : Number(value);
  if (Array.isArray(value)) return value.map(inVectorWords);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [FIELD_NAMES[k] ?? k, inVectorWords(v)]));
}

describe("golden vectors", () => {
  it("exist in every group", () => {
    for (const group of ["frame.", "lenient.", "broken.", "params.", "body.", "note.", "crc32c."]) {
      expect(named(group).length, group).toBeGreaterThan(0);
    }
  });

  it.each(named("frame."))("$name decodes to its meaning and encodes to its bytes", ({ bytes, meaning }) => {
    const frame = decodeFrame(bytes);
    expect(inVectorWords(frame)).toEqual(meaning);
    expect(toHex(encodeFrame(frame))).toBe(toHex(bytes));
  });

  it.each(named("lenient."))("$name decodes to its meaning", ({ bytes, meaning }) => {
    expect(inVectorWords(decodeFrame(bytes))).toEqual(meaning);
  });

  it.each(named("broken.").filter(isFrame))("$name is turned down", ({ bytes }) => {
    expect(() => decodeFrame(bytes)).toThrow(WireError);
  });

  it.each(named("crc32c."))("$name has its checksum", ({ bytes, meaning }) => {
    expect(crc32c(bytes)).toBe(meaning);
  });

  it.each(named("params.describe"))("$name is what we ask", ({ bytes, meaning }) => {
    expect(toHex(describeParameters((meaning as JsonObject).name as string))).toBe(toHex(bytes));
  });

  it.each(named("params.stats"))("$name is what we ask", ({ bytes, meaning }) => {
    if (!isObject(meaning)) throw new Error("expected an object");
    const place = meaning as unknown as BlockPlace;
    const ranges = (meaning.ranges ?? []) as unknown as Range[];
    expect(toHex(statsParameters(place, meaning.bins as number, ranges))).toBe(toHex(bytes));
  });

  it.each(named("params.peers"))("$name is what we would ask", ({ bytes, meaning }) => {
    expect(toHex(describeParameters((meaning as JsonObject).name as string))).toBe(toHex(bytes));
  });

  it.each(named("params.read").filter(({ name }) => name === "params.read"))(
    "$name is what we would ask",
    ({ bytes, meaning }) => {
      if (!isObject(meaning)) throw new Error("expected an object");
      const ranges = meaning.ranges as unknown as Range[];
      expect(toHex(readParameters(meaning as unknown as BlockPlace, ranges))).toBe(toHex(bytes));
    },
  );

  it.each([...named("body.read"), ...named("body.called.piece")].filter(isPiece))(
    "$name is read",
    ({ bytes, meaning }) => {
      const { offsetBytes, compression, rows } = parsePiece(bytes);
      const how = compression && {
        compression: compression.algorithm,
        width: compression.width,
        plain_bytes: compression.plainBytes,
        rows: inVectorWords(rows),
      };
      expect({ offset_bytes: Number(offsetBytes), ...how }).toEqual(meaning);
      for (let length = 0; length < bytes.length; length++) {
        if (length !== 8) expect(() => parsePiece(bytes.subarray(0, length))).toThrow(WireError);
      }
    },
  );

  it.each(named("body.servers"))("$name is read", ({ bytes, meaning }) => {
    const told = (meaning as JsonObject).servers as unknown as readonly JsonObject[];
    const expected = told.map((server) => ({
      name: server.server,
      dataset: server.dataset,
      unavailableReason: server.why_not,
      deliveredBytes: server.delivered_bytes,
    }));
    expect(parseServers(bytes)).toEqual(expected);
  });

  it.each(named("body.join."))("$name is read", ({ bytes, meaning }) => {
    const item = parseItem(bytes);
    const { kind } = meaning as JsonObject;
    expect(item.kind).toBe(kind === "truth" ? "fidelity" : kind);
    expect(JSON.stringify(inSnakeCase(item))).not.toContain("undefined");
    if (item.kind === "frame")
      expect(inSnakeCase(asSent(item.frame.fidelity))).toEqual((meaning as JsonObject).truth);
    if (item.kind === "fidelity")
      expect(inSnakeCase(asSent(item.fidelity))).toEqual((meaning as JsonObject).truth);
  });

  it("bodies of stats and describe are read", () => {
    for (const { bytes, meaning } of named("body.stats")) {
      const stats = parseStats(parseJson(new TextDecoder().decode(bytes)));
      expect(stats.histogram).toEqual((meaning as JsonObject).histogram);
    }
    for (const { bytes } of named("body.describe")) {
      expect(parseDataset(parseJson(new TextDecoder().decode(bytes))).arrays.length).toBeGreaterThan(0);
    }
  });
});

function isPiece({ name }: Vector): boolean {
  return !name.startsWith("body.read_block");
}

/** The fidelity without what a node sends only where it is true. */
function asSent({ isResampled, ...sent }: Fidelity): object {
  return isResampled ? { ...sent, resampled: true } : sent;
}

function inSnakeCase(value: object): JsonObject {
  const snake = (name: string) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, v]) => [snake(name), v]));
}

describe("encoding", () => {
  it("is correct if the buffer grows within any field", () => {
    const written = (w: Writer) => w.u8(1).u16(2).u32(3).u64(4).f32(5).str("six").finish();
    const plain = toHex(written(new Writer()));
    for (let before = 100; before < 130; before++) {
      const grown = toHex(written(new Writer().raw(new Uint8Array(before))));
      expect(grown.slice(2 * before)).toBe(plain);
    }
  });

  it("is held to the limits", () => {
    const long: Frame = { kind: "note", op: 1, body: new Uint8Array((1 << 20) + 1) };
    expect(() => encodeFrame(long)).toThrow("at most 1048576 bytes");
    const hello: Frame = {
      kind: "hello",
      lowest: 1,
      highest: 1,
      capabilities: [],
      token: "x".repeat(513),
      credit: 0n,
      program: "",
    };
    expect(() => encodeFrame(hello)).toThrow("at most 512 bytes");
  });

  it("rejects random bytes with `WireError` only", () => {
    let seed = 1;
    const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
    for (let round = 0; round < 3000; round++) {
      const bytes = Uint8Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256));
      if (bytes.length > 0)
        bytes[0] = [1, 2, 3, 9, 0x0f, 0x81, 0x82, 0x83, 0x84, 0x86, 0x87][round % 11] ?? 0;
      try {
        decodeFrame(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
      }
    }
  });
});
