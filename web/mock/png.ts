//! RGB pixels as PNG.

import { crc32, deflateSync } from "node:zlib";

export function encodePng(rgb: Uint8Array, width: number, height: number): Buffer {
  const rows = Buffer.alloc(height * (1 + 3 * width));
  for (let row = 0; row < height; row++) {
    rows.set(rgb.subarray(3 * row * width, 3 * (row + 1) * width), row * (1 + 3 * width) + 1);
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8); // 8 bits, RGB
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const data = deflateSync(rows, { level: 1 });
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
