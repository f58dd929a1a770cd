//! Playback of a film written by `corridor render`. `CORRIDOR_E2E_FILM` is the file, `CORRIDOR_E2E_EXPECTED` the expected
//! size, duration and colors as JSON.

import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

import { launch, open } from "./helpers.ts";

interface Expected {
  readonly width: number;
  readonly height: number;
  readonly durationSecs: number;
  /** A moment, and the mean sRGB of small squares then, by the column and row of their middle. */
  readonly atSecs: number;
  readonly squares: readonly { at: readonly [number, number]; color: readonly number[] }[];
}

/** Side of a square, pixels. */
const SIDE = 5;
/** Tolerance for decoders and chroma subsampling (4:2:0), which blurs the blue of steep gradients most, levels of 255. */
const TOLERANCE = 16;

const file = process.env.CORRIDOR_E2E_FILM;
let browser: Browser;

beforeAll(async () => {
  if (file !== undefined) browser = await launch();
});

afterAll(async () => {
  if (file !== undefined) await browser.close();
});

it.skipIf(file === undefined)("plays with its size, duration and colors", async () => {
  if (file === undefined) throw new Error("expected a film");
  const expected = JSON.parse(process.env.CORRIDOR_E2E_EXPECTED ?? "") as Expected;
  const { page, errors } = await open(browser, "about:blank");
  const request = {
    data: readFileSync(file).toString("base64"),
    type: "video/mp4",
    atSecs: expected.atSecs,
    places: expected.squares.map((square) => square.at),
    side: SIDE,
  };
  const found = await page.evaluate(async ({ data, type, atSecs, places, side }) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const video = document.createElement("video");
    const happened = (name: string) =>
      new Promise((done, failed) => {
        video.addEventListener(name, done, { once: true });
        const fail = () => {
          failed(new Error(video.error?.message));
        };
        video.addEventListener("error", fail, { once: true });
      });
    const loaded = happened("loadeddata");
    video.src = URL.createObjectURL(new Blob([bytes], { type }));
    await loaded;
    document.body.append(video);
    // Sought is not shown yet.
    const shown = new Promise<void>((done) => {
      const look: VideoFrameRequestCallback = (_, { mediaTime }) => {
        if (mediaTime > atSecs / 2) done();
        else video.requestVideoFrameCallback(look);
      };
      video.requestVideoFrameCallback(look);
    });
    video.currentTime = atSecs;
    await shown;
    const { videoWidth: width, videoHeight: height, duration: durationSecs } = video;
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    if (!canvas) throw new Error("expected a canvas");
    canvas.drawImage(video, 0, 0);
    const half = (side - 1) / 2;
    const colors = places.map(([x, y]) => {
      const rgba = canvas.getImageData(x - half, y - half, side, side).data;
      const sum = (c: number) => rgba.filter((_, i) => i % 4 === c).reduce((all, level) => all + level, 0);
      return [0, 1, 2].map((c) => sum(c) / side ** 2);
    });
    return { width, height, durationSecs, colors };
  }, request);
  expect(errors).toEqual([]);
  expect([found.width, found.height]).toEqual([expected.width, expected.height]);
  expect(found.durationSecs).toBeCloseTo(expected.durationSecs, 2);
  for (const [i, square] of expected.squares.entries()) {
    const off = square.color.map((level, c) => Math.abs(level - (found.colors[i]?.[c] ?? Number.NaN)));
    const text = JSON.stringify({ at: square.at, found: found.colors[i], expected: square.color });
    expect(Math.max(...off), text).toBeLessThanOrEqual(TOLERANCE);
  }
});
