//! Measures the page on data of any kind: time to the first and to the complete picture, and pictures per second while a person pans and
//! zooms, or turns a volume. Prints one JSON line; times decide nothing, that pictures arrive does. Run by `tests/browser/figures.py`.

import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Browser, Page } from "playwright-core";

import { launch } from "./helpers.ts";

/** Movement that is measured. */
const MOVES_MILLIS = 5000;
/** Longest wait for a complete picture. */
const PATIENCE_MILLIS = 60_000;
const SIZE = { width: 1000, height: 640 };

declare global {
  interface Window {
    /** Times at which pictures were drawn. */
    drawn: number[];
  }
}

const url = inject("baseUrl");
let browser: Browser;
let page: Page;

beforeAll(async () => {
  browser = await launch();
  const context = await browser.newContext({ viewport: SIZE });
  page = await context.newPage();
  await page.addInitScript(() => {
    window.drawn = [];
    CanvasRenderingContext2D.prototype.drawImage = new Proxy(CanvasRenderingContext2D.prototype.drawImage, {
      apply: (drawImage, context: CanvasRenderingContext2D, given) => {
        if (context.canvas.id === "picture" && window.drawn.length < 100_000)
          window.drawn.push(performance.now());
        Reflect.apply(drawImage, context, given);
      },
    });
  });
});

afterAll(async () => {
  await browser.close();
});

/** Times between pictures drawn while `move` goes on, and the time until the last change is on the screen. */
async function measured(move: (step: number) => Promise<void>): Promise<{ rate: number; slowest: number }> {
  const from = await page.evaluate(() => performance.now());
  const began = Date.now();
  for (let step = 0; Date.now() - began < MOVES_MILLIS; step += 1) await move(step);
  const until = await page.evaluate(() => performance.now());
  const times = await page.evaluate(
    ([from, until]) => window.drawn.filter((time) => time >= from && time <= until),
    [from, until] as const,
  );
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  gaps.sort((a, b) => a - b);
  return {
    rate: (times.length * 1000) / (until - from),
    slowest: gaps[Math.floor(0.95 * (gaps.length - 1))] ?? Number.NaN,
  };
}

const complete = () =>
  page.waitForSelector('body[data-state="complete"][data-current="true"]', { timeout: PATIENCE_MILLIS });

it("draws pictures", async () => {
  await page.goto(url);
  await page.waitForFunction(() => window.drawn.length > 0, undefined, { timeout: PATIENCE_MILLIS });
  await complete();
  const [first, whole] = await page.evaluate(() => [window.drawn[0] ?? 0, performance.now()] as const);
  const [x, y] = [SIZE.width / 2, SIZE.height / 2];
  await page.mouse.move(x, y);
  // The right button pans in every arrangement.
  await page.mouse.down({ button: "right" });
  const pan = await measured(async (step) => {
    await page.mouse.move(x + 150 * Math.sin(step / 25), y + 80 * Math.sin(step / 40));
    await page.waitForTimeout(8);
  });
  await page.mouse.up({ button: "right" });
  await complete();
  const zoom = await measured(async (step) => {
    await page.mouse.wheel(0, step % 120 < 60 ? -24 : 24);
    await page.waitForTimeout(8);
  });
  await complete();
  await page.mouse.down();
  const turn = await measured(async (step) => {
    await page.mouse.move(x + 150 * Math.sin(step / 25), y + 80 * Math.sin(step / 40));
    await page.waitForTimeout(8);
  });
  await page.mouse.up();
  await complete();
  const round = (value: number) => Math.round(10 * value) / 10;
  const of = ({ rate, slowest }: { rate: number; slowest: number }) => ({
    per_second: round(rate),
    gap_95_ms: round(slowest),
  });
  console.log(
    `figures ${JSON.stringify({ first_ms: round(first), complete_ms: round(whole), pan: of(pan), zoom: of(zoom), drag: of(turn) })}`,
  );
  expect(pan.rate).toBeGreaterThan(0);
});
