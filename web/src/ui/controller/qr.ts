//! QR codes (ISO/IEC 18004) of short texts: bytes, error correction L, versions 1 to 10. Pure.

/** Words of correction of each block, and words of data of every block, of versions 1 to 10 with level L. */
const VERSIONS: readonly { readonly correction: number; readonly blocks: readonly number[] }[] = [
  { correction: 7, blocks: [19] },
  { correction: 10, blocks: [34] },
  { correction: 15, blocks: [55] },
  { correction: 20, blocks: [80] },
  { correction: 26, blocks: [108] },
  { correction: 18, blocks: [68, 68] },
  { correction: 20, blocks: [78, 78] },
  { correction: 24, blocks: [97, 97] },
  { correction: 30, blocks: [116, 116] },
  { correction: 18, blocks: [68, 68, 69, 69] },
];
/** Centers of the alignment patterns by version. */
const ALIGNMENTS: readonly (readonly number[])[] = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
  [6, 28, 50],
];
/** Width of the quiet zone, modules. */
const QUIET = 4;

type Grid = (boolean | null)[][];

/** Returns the dark modules of a text as an SVG path, with the side of the picture; null for a text that is too long. */
export function qrPath(text: string): { readonly path: string; readonly size: number } | null {
  const grid = qrModules(text);
  if (!grid) return null;
  const squares = grid.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])),
  );
  return { path: squares.join(""), size: grid.length + 2 * QUIET };
}

/** Returns the modules of a text, row by row, true for dark; null for a text that is too long. */
export function qrModules(text: string): boolean[][] | null {
  const bytes = new TextEncoder().encode(text);
  const at = VERSIONS.findIndex(({ blocks }, i) => bytes.length <= sum(blocks) - (i < 9 ? 2 : 3));
  const version = VERSIONS[at];
  if (!version) return null;
  const words = interleaved(dataWords(bytes, at + 1, sum(version.blocks)), version);
  const { grid, isFixed } = patterns(at + 1);
  place(grid, words);
  const masked = MASKS.map((mask, number) => withMask(grid, isFixed, mask, number));
  return masked.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

/** Mode, length, bytes, end and padding. */
function dataWords(bytes: Uint8Array, version: number, capacity: number): number[] {
  const bits: number[] = [];
  const put = (value: number, count: number) => {
    for (let i = count - 1; i >= 0; i--) bits.push((value >> i) & 1);
  };
  put(4, 4);
  put(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) put(byte, 8);
  put(0, Math.min(4, 8 * capacity - bits.length));
  while (bits.length % 8 !== 0) bits.push(0);
  const words = Array.from({ length: bits.length / 8 }, (_, i) =>
    bits.slice(8 * i, 8 * i + 8).reduce((word, bit) => 2 * word + bit, 0),
  );
  for (let i = 0; words.length < capacity; i++) words.push(i % 2 === 0 ? 0xec : 0x11);
  return words;
}

/** Code words of all blocks with their correction, in the order of the symbol. */
function interleaved(data: readonly number[], { blocks, correction }: (typeof VERSIONS)[number]): number[] {
  let from = 0;
  const parts = blocks.map((count) => data.slice(from, (from += count)));
  const checks = parts.map((part) => remainder(part, correction));
  const inTurn = (lists: readonly (readonly number[])[]) =>
    Array.from({ length: Math.max(...lists.map((list) => list.length)) }, (_, i) =>
      lists.flatMap((list) => list.slice(i, i + 1)),
    ).flat();
  return [...inTurn(parts), ...inTurn(checks)];
}

/** Product in the field of 256 elements with the polynomial 0x11d. */
function times(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((b >> bit) & 1) * a;
  }
  return product;
}

/** Reed-Solomon correction of a block. */
function remainder(data: readonly number[], count: number): number[] {
  const generator: number[] = Array.from({ length: count }, (_, i) => (i === count - 1 ? 1 : 0));
  let root = 1;
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) generator[j] = times(generator[j] ?? 0, root) ^ (generator[j + 1] ?? 0);
    root = times(root, 2);
  }
  const rest = Array.from({ length: count }, () => 0);
  for (const word of data) {
    const factor = word ^ (rest.shift() ?? 0);
    rest.push(0);
    generator.forEach((coefficient, i) => (rest[i] = (rest[i] ?? 0) ^ times(coefficient, factor)));
  }
  return rest;
}

/** The grid with its finders, timing, alignment and version; modules of data are null. */
function patterns(version: number): { grid: Grid; isFixed: boolean[][] } {
  const size = 17 + 4 * version;
  const grid: Grid = Array.from({ length: size }, () => Array.from({ length: size }, () => null));
  const set = (x: number, y: number, isDark: boolean) => {
    const row = grid[y];
    if (row && x >= 0 && x < size) row[x] = isDark;
  };
  for (let i = 0; i < size; i++) {
    set(6, i, i % 2 === 0);
    set(i, 6, i % 2 === 0);
  }
  for (const [cx, cy] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    for (let dy = -4; dy <= 4; dy++)
      for (let dx = -4; dx <= 4; dx++) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy));
        set(cx + dx, cy + dy, ring !== 2 && ring !== 4);
      }
  const centers = ALIGNMENTS[version - 1] ?? [];
  const last = centers.at(-1);
  for (const cy of centers)
    for (const cx of centers) {
      const isFinder = (cx === 6 && cy === 6) || (cx === 6 && cy === last) || (cx === last && cy === 6);
      if (isFinder) continue;
      for (let dy = -2; dy <= 2; dy++)
        for (let dx = -2; dx <= 2; dx++) set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
    }
  // Reserved for the format, which depends on the mask.
  drawFormat(set, size, 0);
  if (version >= 7) {
    let check = version;
    for (let i = 0; i < 12; i++) check = (check << 1) ^ ((check >> 11) * 0x1f25);
    const bits = (version << 12) | check;
    for (let i = 0; i < 18; i++) {
      const isDark = ((bits >> i) & 1) === 1;
      const [a, b] = [size - 11 + (i % 3), Math.floor(i / 3)];
      set(a, b, isDark);
      set(b, a, isDark);
    }
  }
  return { grid, isFixed: grid.map((row) => row.map((module) => module !== null)) };
}

function drawFormat(set: (x: number, y: number, isDark: boolean) => void, size: number, mask: number): void {
  const data = (1 << 3) | mask; // level L
  let check = data;
  for (let i = 0; i < 10; i++) check = (check << 1) ^ ((check >> 9) * 0x537);
  const bits = ((data << 10) | check) ^ 0x5412;
  const bit = (i: number) => ((bits >> i) & 1) === 1;
  for (let i = 0; i <= 5; i++) set(8, i, bit(i));
  set(8, 7, bit(6));
  set(8, 8, bit(7));
  set(7, 8, bit(8));
  for (let i = 9; i < 15; i++) set(14 - i, 8, bit(i));
  for (let i = 0; i < 8; i++) set(size - 1 - i, 8, bit(i));
  for (let i = 8; i < 15; i++) set(8, size - 15 + i, bit(i));
  set(8, size - 8, true);
}

/** Fills the free modules with bits, in columns of two from the right, upward and downward. */
function place(grid: Grid, words: readonly number[]): void {
  const size = grid.length;
  let at = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++)
      for (const x of [right, right - 1]) {
        const isUp = ((right + 1) & 2) === 0;
        const y = isUp ? size - 1 - step : step;
        const row = grid[y];
        if (!row || row[x] !== null) continue;
        row[x] = (((words[at >> 3] ?? 0) >> (7 - (at & 7))) & 1) === 1;
        at += 1;
      }
  }
}

const MASKS: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function withMask(
  grid: Grid,
  isFixed: readonly (readonly boolean[])[],
  mask: (x: number, y: number) => boolean,
  number: number,
): boolean[][] {
  const masked = grid.map((row, y) =>
    row.map((module, x) => (module === true) !== (isFixed[y]?.[x] !== true && mask(x, y))),
  );
  drawFormat(
    (x, y, isDark) => {
      const row = masked[y];
      if (row) row[x] = isDark;
    },
    grid.length,
    number,
  );
  return masked;
}

/** Measure of how hard a symbol is to read. */
function penalty(grid: readonly (readonly boolean[])[]): number {
  const columns = grid.map((_, x) => grid.map((row) => row[x] === true));
  const lines = [...grid, ...columns];
  let total = 0;
  for (const line of lines) {
    const text = line.map((isDark) => (isDark ? "1" : "0")).join("");
    for (const run of text.match(/0{5,}|1{5,}/g) ?? []) total += run.length - 2;
    for (const finder of ["10111010000", "00001011101"])
      for (let at = text.indexOf(finder); at >= 0; at = text.indexOf(finder, at + 1)) total += 40;
  }
  for (let y = 0; y + 1 < grid.length; y++)
    for (let x = 0; x + 1 < grid.length; x++) {
      const square = [grid[y]?.[x], grid[y]?.[x + 1], grid[y + 1]?.[x], grid[y + 1]?.[x + 1]];
      if (square.every((module) => module === square[0])) total += 3;
    }
  const dark = grid.flat().filter(Boolean).length;
  return total + 10 * Math.floor(Math.abs((20 * dark) / grid.length ** 2 - 10));
}
