//! Parameters of the operations that a page asks for, beside `join`.

import { WireError, Writer } from "./codec.ts";
import { MAX_AXES } from "./limits.ts";

/** Where something lies: data set, generation, array, level. */
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
  if (ranges.length > MAX_AXES)
    throw new WireError(`expected at most ${MAX_AXES} axes, found ${ranges.length}`);
  const writer = new Writer();
  writePlace(writer, place);
  writer.u16(bins).u8(ranges.length);
  for (const range of ranges) writer.u64(range.start).u64(range.count).u64(range.step);
  return writer.finish();
}

function writePlace(writer: Writer, place: BlockPlace): void {
  if (!/^[0-9a-f]{32}$/i.test(place.dataset)) {
    throw new WireError("expected a data set identity of 32 hexadecimal digits");
  }
  const high = BigInt(`0x${place.dataset.slice(0, 16)}`);
  const low = BigInt(`0x${place.dataset.slice(16)}`);
  writer.u64(low).u64(high).u32(place.generation).u32(place.array).u8(place.level);
}
