//! A synthetic volume for work on the page without a server: two clouds that orbit each other, and a ray caster.
//! Coarse and slow; a development aid that is never shipped.

import { basis, heightAtTarget } from "../src/camera/camera.ts";
import { opacityAt } from "../src/transfer/edit.ts";
import type { View } from "../src/view/schema.ts";

/** Voxels per side of the table that rays sample. */
const SIDE = 72;
/** Extent of the volume in world units, x, y, z. */
export const EXTENT = [192, 160, 128] as const;
export const STEPS = 24;
const SAMPLES_PER_RAY = 64;

const tables = new Map<string, Float32Array>();

function table(array: string, time: number): Float32Array {
  const key = `${array} ${time}`;
  const known = tables.get(key);
  if (known) return known;
  const values = new Float32Array(SIDE ** 3);
  const turn = (2 * Math.PI * time) / STEPS;
  for (let i = 0; i < values.length; i++) {
    const [x, y, z] = [i % SIDE, Math.floor(i / SIDE) % SIDE, Math.floor(i / SIDE / SIDE)].map(
      (n) => (2 * n) / (SIDE - 1) - 1,
    ) as [number, number, number];
    values[i] = array === "speed" ? speed(x, y, z) : density(x, y, z, turn);
  }
  if (tables.size > 2 * STEPS) tables.clear();
  tables.set(key, values);
  return values;
}

function density(x: number, y: number, z: number, turn: number): number {
  const cloud = (side: number) => {
    const [dx, dy] = [x - 0.42 * side * Math.cos(turn), y - 0.42 * side * Math.sin(turn)];
    const radius = Math.hypot(dx, dy, 1.3 * z);
    const arms = Math.sin(9 * radius + 2 * Math.atan2(dy, dx) * side + 3 * z);
    return Math.exp(-7 * radius * radius) * (1 + 0.35 * arms);
  };
  return (
    1000 * Math.min(1.4, cloud(1) + cloud(-1)) + 20 * Math.sin(20 * x) * Math.sin(17 * y) * Math.sin(19 * z)
  );
}

function speed(x: number, y: number, z: number): number {
  const k = 7;
  const gyroid =
    Math.sin(k * x) * Math.cos(k * y) + Math.sin(k * y) * Math.cos(k * z) + Math.sin(k * z) * Math.cos(k * x);
  return 12 * Math.exp(-2.4 * (x * x + y * y + z * z)) * (1 + 0.6 * gyroid);
}

export function histogram(array: string, time: number, bins: number) {
  const values = table(array, time);
  const min = values.reduce((a, b) => Math.min(a, b), Infinity);
  const max = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const counts = new Array<number>(bins).fill(0);
  let sum = 0;
  for (const value of values) {
    const bin = Math.min(bins - 1, Math.floor(((value - min) / (max - min)) * bins));
    counts[bin] = (counts[bin] ?? 0) + 1;
    sum += value;
  }
  const mean = sum / values.length;
  return { count: values.length, missing: 0, min, max, mean, histogram: { low: min, high: max, counts } };
}

/** RGB of `width` by `height` pixels, top row first. */
export function castRays(view: View, colors: Uint8Array, width: number, height: number): Uint8Array {
  const { camera, transfer } = view;
  const pixels = new Uint8Array(3 * width * height);
  for (let i = 0; i < pixels.length; i++) pixels[i] = view.background[i % 3] ?? 0;
  if (!camera || !transfer) return pixels;
  const values = table(view.array, view.time);
  const lookup = colorTable(transfer, colors);
  const { forward, right, up } = basis(camera);
  const half = heightAtTarget(camera) / 2;
  const isFlat = "orthographic" in camera.projection;
  const target = (axis: 0 | 1 | 2, u: number, v: number) =>
    camera.target[axis] + right[axis] * u + up[axis] * v;
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const v = half * (1 - (2 * (row + 0.5)) / height);
      const u = half * ((2 * (column + 0.5)) / height - width / height);
      const at = [target(0, u, v), target(1, u, v), target(2, u, v)] as const;
      const from = isFlat ? at.map((x, i) => x - 400 * (forward[i] ?? 0)) : camera.eye;
      const direction = at.map((x, i) => x - (from[i] ?? 0));
      shade(values, lookup, from, direction, pixels, 3 * (row * width + column));
    }
  }
  return pixels;
}

interface Lookup {
  readonly low: number;
  readonly scale: number;
  /** Red, green, blue, opacity per entry. */
  readonly entries: Float32Array;
}

function colorTable(transfer: NonNullable<View["transfer"]>, colors: Uint8Array): Lookup {
  const size = 512;
  const values = [...transfer.range, ...transfer.opacity.map((point) => point[0])];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const entries = new Float32Array(4 * size);
  for (let i = 0; i < size; i++) {
    const value = low + ((high - low) * i) / (size - 1);
    const share = (value - transfer.range[0]) / (transfer.range[1] - transfer.range[0]);
    const entry = 3 * Math.round(255 * Math.min(Math.max(share, 0), 1));
    for (let c = 0; c < 3; c++) entries[4 * i + c] = colors[entry + c] ?? 0;
    entries[4 * i + 3] = opacityAt(transfer.opacity, value);
  }
  return { low, scale: (size - 1) / (high - low), entries };
}

function shade(
  values: Float32Array,
  lookup: Lookup,
  from: readonly number[],
  direction: readonly number[],
  pixels: Uint8Array,
  at: number,
): void {
  let [near, far] = [0, Infinity];
  for (let axis = 0; axis < 3; axis++) {
    const [d, o] = [direction[axis] ?? 0, from[axis] ?? 0];
    const [a, b] = [-o / d, ((EXTENT[axis] ?? 1) - o) / d].sort((x, y) => x - y) as [number, number];
    near = Math.max(near, a);
    far = Math.min(far, b);
  }
  if (!(near < far)) return;
  const step = (far - near) / SAMPLES_PER_RAY;
  const voxels = step * Math.hypot(...direction);
  const color = [0, 0, 0];
  let clear = 1;
  for (let t = near + step / 2; t < far && clear > 0.02; t += step) {
    const value = sample(values, from, direction, t);
    const entry = 4 * Math.round(Math.min(Math.max((value - lookup.low) * lookup.scale, 0), 511));
    const alpha = 1 - (1 - (lookup.entries[entry + 3] ?? 0)) ** voxels;
    if (alpha <= 0) continue;
    for (let c = 0; c < 3; c++) color[c] = (color[c] ?? 0) + clear * alpha * (lookup.entries[entry + c] ?? 0);
    clear *= 1 - alpha;
  }
  for (let c = 0; c < 3; c++) pixels[at + c] = Math.round((color[c] ?? 0) + clear * (pixels[at + c] ?? 0));
}

/** Trilinear. */
function sample(
  values: Float32Array,
  from: readonly number[],
  direction: readonly number[],
  t: number,
): number {
  let [base, sum] = [0, 0];
  const shares: number[] = [];
  const strides = [1, SIDE, SIDE * SIDE];
  for (let axis = 0; axis < 3; axis++) {
    const place = (((from[axis] ?? 0) + t * (direction[axis] ?? 0)) / (EXTENT[axis] ?? 1)) * (SIDE - 1);
    const cell = Math.min(Math.max(Math.floor(place), 0), SIDE - 2);
    base += cell * (strides[axis] ?? 0);
    shares.push(Math.min(Math.max(place - cell, 0), 1));
  }
  const [fx = 0, fy = 0, fz = 0] = shares;
  for (let corner = 0; corner < 8; corner++) {
    const [i, j, k] = [corner & 1, (corner >> 1) & 1, corner >> 2];
    const weight = (i ? fx : 1 - fx) * (j ? fy : 1 - fy) * (k ? fz : 1 - fz);
    sum += weight * (values[base + i + j * SIDE + k * SIDE * SIDE] ?? 0);
  }
  return sum;
}
