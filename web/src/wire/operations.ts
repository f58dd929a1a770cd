//! Parameters and bodies of the operations of a page except `join`.

import { Reader, WireError, Writer } from "./codec.ts";
import { MAX_AXES, MAX_PIECE_ROWS } from "./limits.ts";

/** Address of data on a server: data set, generation, array, level. */
export interface BlockPlace {
  /** 32 hexadecimal digits. */
  readonly dataset: string;
  readonly generation: number;
  readonly array: number;
  readonly level: number;
}

/** Start, count and step along one axis, in elements of the level. */
export interface Range {
  readonly start: number;
  readonly count: number;
  readonly step: number;
}

/** Parameters of `describe`; the empty name means the only data set. */
export function describeParameters(name: string): Uint8Array {
  return new Writer().str(name).finish();
}

/** Parameters of `stats` over `ranges` (none: everything). */
export function statsParameters(place: BlockPlace, bins: number, ranges: readonly Range[]): Uint8Array {
  const writer = new Writer();
  writePlace(writer, place);
  writeRanges(writer.u16(bins), ranges);
  return writer.finish();
}

/** Parameters of `read`. */
export function readParameters(place: BlockPlace, ranges: readonly Range[]): Uint8Array {
  const writer = new Writer();
  writePlace(writer, place);
  writeRanges(writer, ranges);
  return writer.finish();
}

/** Compression of the bulk of an item. */
export interface Compression {
  /** 1: one LZ4 block, 2: Zstandard, 3: zlib, 4: gzip. */
  readonly algorithm: number;
  /** Element size of the byte shuffle before compression; 1 without shuffle. */
  readonly width: number;
  readonly plainBytes: number;
}

/** The body of an item of `read`: where its bulk belongs in the C-order result. */
export interface Piece {
  readonly offsetBytes: bigint;
  /** Null if the bulk is not compressed. */
  readonly compression: Compression | null;
  /** Rows of equal length: count and stride in bytes per axis, the slowest first; none means one row. */
  readonly rows: readonly (readonly [count: bigint, strideBytes: bigint])[];
}

const LAST_ALGORITHM = 4;

/** Reads the body of an item of `read`. */
export function parsePiece(body: Uint8Array): Piece {
  const reader = new Reader(body);
  const offsetBytes = reader.u64();
  if (reader.isEmpty) return { offsetBytes, compression: null, rows: [] };
  const compression = readCompression(reader);
  const axes = reader.u8();
  if (axes > MAX_AXES) throw new WireError(`expected at most ${MAX_AXES} axes, found ${axes}`);
  const rows = Array.from({ length: axes }, () => [reader.varint(), reader.varint()] as const);
  const count = rows.reduce((n, [along]) => n * along, 1n);
  if (count < 1n || count > MAX_PIECE_ROWS || BigInt(compression.plainBytes) % count !== 0n) {
    const found = `${count.toString()} of ${compression.plainBytes} bytes together`;
    throw new WireError(`expected 1 to ${MAX_PIECE_ROWS} equal rows, found ${found}`);
  }
  return { offsetBytes, compression, rows };
}

function readCompression(reader: Reader): Compression {
  const [algorithm, width, plainBytes] = [reader.u8(), reader.u8(), reader.u32()];
  if (algorithm < 1 || algorithm > LAST_ALGORITHM || width < 1)
    throw new WireError(`expected a known compression, found number ${algorithm}, width ${width}`);
  return { algorithm, width, plainBytes };
}

function writeRanges(writer: Writer, ranges: readonly Range[]): void {
  if (ranges.length > MAX_AXES)
    throw new WireError(`expected at most ${MAX_AXES} axes, found ${ranges.length}`);
  writer.u8(ranges.length);
  for (const range of ranges) writer.u64(range.start).u64(range.count).u64(range.step);
}

function writePlace(writer: Writer, place: BlockPlace): void {
  if (!/^[0-9a-f]{32}$/i.test(place.dataset)) {
    throw new WireError("expected a data set identity of 32 hexadecimal digits");
  }
  const high = BigInt(`0x${place.dataset.slice(0, 16)}`);
  const low = BigInt(`0x${place.dataset.slice(16)}`);
  writer.u64(low).u64(high).u32(place.generation).u32(place.array).u8(place.level);
}
