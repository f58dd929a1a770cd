//! Helpers of the end-to-end tests: a headless Chromium, gestures, thumbnails and screenshots.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium, type Browser, type Frame, type Page } from "playwright-core";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-headless-shell"];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** A large volume on two busy cores may take this long to become complete. */
const COMPLETE_MILLIS = 90_000;

export function launch(more: readonly string[] = []): Promise<Browser> {
  const executablePath = process.env.CORRIDOR_CHROMIUM ?? CHROMIUM.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error(`expected a Chromium at one of ${CHROMIUM.join(", ")}`);
  return chromium.launch({ executablePath, args: [...FLAGS, ...more] });
}

/** A new page on `url`, which fails the test on any error in it. */
export async function open(browser: Browser, url: string, size = { width: 1000, height: 640 }) {
  const context = await browser.newContext({ viewport: size, acceptDownloads: true });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  await page.goto(url);
  return { page, errors };
}

/** Waits until the page says that it shows the newest change, completely and without loss. */
export async function complete(page: Page | Frame): Promise<void> {
  // After two animation frames the last action has reached the page's state.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.waitForSelector('body[data-state="complete"] #fidelity[data-exact="true"]', {
    timeout: COMPLETE_MILLIS,
  });
}

export interface Badge {
  readonly levelShown: string;
  readonly levelWanted: string;
  readonly blocksPresent: string;
  readonly blocksTotal: string;
  readonly state: string;
  readonly exact: string;
}

export function badge(page: Page): Promise<Badge> {
  return page.evaluate(() => {
    const data = document.querySelector<HTMLElement>("#fidelity")?.dataset ?? {};
    const {
      levelShown = "",
      levelWanted = "",
      blocksPresent = "",
      blocksTotal = "",
      state = "",
      exact = "",
    } = data;
    return { levelShown, levelWanted, blocksPresent, blocksTotal, state, exact };
  });
}

/** Side of the thumbnails that are compared: small differences of decoders and scaling vanish in them. */
const THUMBNAIL = 96;

/** The picture as `THUMBNAIL` by `THUMBNAIL` RGBA. */
export async function thumbnail(page: Page | Frame): Promise<number[]> {
  return page.evaluate((side) => {
    const small = new OffscreenCanvas(side, side).getContext("2d");
    const picture = document.querySelector<HTMLCanvasElement>("#picture");
    if (!small || !picture) throw new Error("expected the canvas");
    small.drawImage(picture, 0, 0, side, side);
    return Array.from(small.getImageData(0, 0, side, side).data);
  }, THUMBNAIL);
}

/** True if pixel `i` differs from the upper left corner, which shows only background. */
export function isVisible(pixels: readonly number[], i: number): boolean {
  return [0, 1, 2].some((c) => Math.abs((pixels[4 * i + c] ?? 0) - (pixels[c] ?? 0)) > 6);
}

export function visibleShare(pixels: readonly number[]): number {
  const count = pixels.length / 4;
  return Array.from({ length: count }, (_, i) => i).filter((i) => isVisible(pixels, i)).length / count;
}

/** Mean difference of color channels, 0 to 255, over the pixels where either picture shows something. */
export function difference(a: readonly number[], b: readonly number[]): number {
  const shown = Array.from({ length: a.length / 4 }, (_, i) => i).filter(
    (i) => isVisible(a, i) || isVisible(b, i),
  );
  const one = (i: number) =>
    [0, 1, 2].reduce((sum, c) => sum + Math.abs((a[4 * i + c] ?? 0) - (b[4 * i + c] ?? 0)), 0) / 3;
  return shown.reduce((sum, i) => sum + one(i), 0) / Math.max(1, shown.length);
}

export async function drag(
  page: Page,
  from: readonly [number, number],
  by: readonly [number, number],
): Promise<void> {
  await page.mouse.move(from[0], from[1]);
  await page.mouse.down();
  for (let step = 1; step <= 8; step++) {
    await page.mouse.move(from[0] + (by[0] * step) / 8, from[1] + (by[1] * step) / 8);
  }
  await page.mouse.up();
}

/** Returns the view on the screen, as the link of the dialog for saving has it: in the address a camera that nobody has moved is left out. */
export async function viewNow(page: Page): Promise<Record<string, unknown>> {
  await page.keyboard.press("s");
  await page.click("#save-tab-text");
  const link = await page.inputValue('[data-text="link"]');
  await page.keyboard.press("Escape");
  const text = /view=([^&]*)/.exec(link)?.[1] ?? "";
  return JSON.parse(Buffer.from(text, "base64url").toString()) as Record<string, unknown>;
}

/** Moves fingers on the picture, each from one point to another, at the same time. */
export async function touch(
  page: Page,
  fingers: readonly { from: readonly [number, number]; to: readonly [number, number] }[],
): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const points = (part: number) =>
    fingers.map(({ from, to }, id) => ({
      id,
      x: from[0] + (to[0] - from[0]) * part,
      y: from[1] + (to[1] - from[1]) * part,
    }));
  const send = (type: "touchStart" | "touchMove" | "touchEnd", part: number) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : points(part) });
  await send("touchStart", 0);
  for (let step = 1; step <= 8; step++) await send("touchMove", step / 8);
  await send("touchEnd", 1);
  await session.detach();
}

/** Saves a screenshot to `CORRIDOR_E2E_OUT`. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.CORRIDOR_E2E_OUT;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
