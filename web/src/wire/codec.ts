//! The primitives of the wire: little-endian numbers, strings, byte runs, lists. Reading is bounded and throws
//! only [`WireError`], with what was expected and what was found.

/** Violation of the protocol by the other side, or by a call on this side. */
export class WireError extends Error {
  override name = "WireError";
}

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Reads fields from one frame, front to back. */
export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true);
  }

  f32(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  /** A `u64` that counts bytes; at most `max`. */
  size(max: number): number {
    const value = this.u64();
    if (value > BigInt(max))
      throw new WireError(`expected a size of at most ${max} bytes, found ${value.toString()}`);
    return Number(value);
  }

  /** A number of up to 64 bits in groups of seven, the lowest first. */
  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 64n; shift += 7n) {
      const byte = this.u8();
      value |= BigInt(byte & 0x7f) << shift;
      if (value >= 1n << 64n) break;
      if (byte < 0x80) return value;
    }
    throw new WireError("expected a number of at most 64 bits, found more");
  }

  /** A `varint` that fits 32 bits. */
  varintSize(): number {
    const value = this.varint();
    if (value > 0xffffffffn) {
      throw new WireError(`expected a number of at most 32 bits, found ${value.toString()}`);
    }
    return Number(value);
  }

  /** The length as a `varint`, then at most `max` bytes: a view, not a copy. */
  short(max: number): Uint8Array {
    const length = this.varintSize();
    if (length > max) throw new WireError(`expected at most ${max} bytes, found ${length}`);
    return this.#slice(length);
  }

  /** The next `length` bytes: a view, not a copy. */
  take(length: number): Uint8Array {
    return this.#slice(length);
  }

  /** UTF-8 as a string. */
  text(raw: Uint8Array): string {
    try {
      return strictUtf8.decode(raw);
    } catch {
      throw new WireError("expected a string in UTF-8, found other bytes");
    }
  }

  /** `u32` length, then that many bytes: a view, not a copy. */
  bytes(max: number): Uint8Array {
    const length = this.u32();
    if (length > max) throw new WireError(`expected at most ${max} bytes, found ${length}`);
    return this.#slice(length);
  }

  /** `u16` length, then UTF-8 of at most `max` bytes. */
  str(max = 0xffff): string {
    const length = this.u16();
    if (length > max) throw new WireError(`expected a string of at most ${max} bytes, found ${length}`);
    return this.text(this.#slice(length));
  }

  /** `u16` count, at most `max`, then items. */
  list<T>(item: (reader: Reader) => T, max = 0xffff): T[] {
    const count = this.u16();
    if (count > max) throw new WireError(`expected at most ${max} items in a list, found ${count}`);
    const items: T[] = [];
    // Each item takes at least one byte or throws, so a wrong count costs no memory.
    for (let i = 0; i < count; i++) items.push(item(this));
    return items;
  }

  /** True if all bytes are read. */
  get isEmpty(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Everything up to the end of the frame. */
  rest(): Uint8Array {
    return this.#slice(this.#bytes.length - this.#at);
  }

  #slice(length: number): Uint8Array {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  #take(length: number): number {
    const start = this.#at;
    const left = this.#bytes.length - start;
    if (length > left) throw new WireError(`expected ${length} more bytes in the frame, found ${left}`);
    this.#at = start + length;
    return start;
  }
}

/** Writes fields into one growing frame. */
export class Writer {
  #bytes = new Uint8Array(128);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  u8(value: number): this {
    const at = this.#grow(1); // may replace the view
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    const at = this.#grow(2); // may replace the view
    this.#view.setUint16(at, value, true);
    return this;
  }

  u32(value: number): this {
    const at = this.#grow(4); // may replace the view
    this.#view.setUint32(at, value, true);
    return this;
  }

  u64(value: number | bigint): this {
    const at = this.#grow(8); // may replace the view
    this.#view.setBigUint64(at, BigInt(value), true);
    return this;
  }

  f32(value: number): this {
    const at = this.#grow(4); // may replace the view
    this.#view.setFloat32(at, value, true);
    return this;
  }

  /** A number in groups of seven bits, the lowest first. */
  varint(value: number | bigint): this {
    let rest = BigInt(value);
    for (; rest >= 0x80n; rest >>= 7n) this.u8(Number(rest & 0x7fn) | 0x80);
    return this.u8(Number(rest));
  }

  /** The length as a `varint`, then the bytes. */
  short(bytes: Uint8Array): this {
    return this.varint(bytes.length).raw(bytes);
  }

  raw(bytes: Uint8Array): this {
    const start = this.#grow(bytes.length);
    this.#bytes.set(bytes, start);
    return this;
  }

  bytes(bytes: Uint8Array): this {
    return this.u32(bytes.length).raw(bytes);
  }

  /** At most `max` bytes of UTF-8. */
  str(text: string, max = 0xffff): this {
    const bytes = utf8.encode(text);
    if (bytes.length > max)
      throw new WireError(`expected a string of at most ${max} bytes, found ${bytes.length}`);
    return this.u16(bytes.length).raw(bytes);
  }

  list<T>(items: readonly T[], item: (writer: this, value: T) => void): this {
    if (items.length > 0xffff) throw new WireError(`expected at most 65535 items, found ${items.length}`);
    this.u16(items.length);
    for (const value of items) item(this, value);
    return this;
  }

  /** The frame; the writer must not be used afterwards. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(length: number): number {
    const start = this.#length;
    const needed = start + length;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#length = needed;
    return start;
  }
}
