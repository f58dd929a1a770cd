import { describe, expect, it } from "vitest";

import { qrModules, qrPath } from "./qr.ts";

/** Symbol of `hi`, read by a scanner of another program. */
const HI = [
  "111111100100101111111",
  "100000101001001000001",
  "101110100100001011101",
  "101110101001001011101",
  "101110100011101011101",
  "100000101110101000001",
  "111111101010101111111",
  "000000000011100000000",
  "111110111100110101010",
  "101001000010100100001",
  "010001110011010011110",
  "111101010000000110100",
  "101011100101010010101",
  "000000001011111001001",
  "111111101000101100010",
  "100000100111111001001",
  "101110101010100100100",
  "101110101100100100100",
  "101110101001010011100",
  "100000101100000110100",
  "111111101111010011110",
];

describe("a QR code", () => {
  it("is the symbol of its text", () => {
    expect(qrModules("hi")?.map((row) => row.map(Number).join(""))).toEqual(HI);
  });

  it("grows with the text, up to a limit", () => {
    const sides = [17, 18, 106, 107, 271].map((length) => qrModules("x".repeat(length))?.length);
    expect(sides).toEqual([21, 25, 37, 41, 57]);
    expect(qrPath("x".repeat(272))).toBeNull();
    expect(qrPath("hi")?.size).toBe(29);
  });
});
