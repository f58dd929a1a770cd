//! Values by pointer: what the page shows and copies is saved to `probe.json`, to be compared with the file. `CORRIDOR_E2E_PROBE`
//! is the kind of data, `map` or `volume`.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, launch, screenshot } from "./helpers.ts";

const { CORRIDOR_E2E_PROBE, CORRIDOR_E2E_OUT } = process.env;
const SIZE = { width: 1000, height: 640 };
/** Places near the middle, where each kind of data is. */
const PLACES = [
  [470, 300],
  [530, 340],
  [500, 320],
] as const;

/** A page that keeps what it copies. */
interface Copying {
  copied: string;
}

let browser: Browser;
let page: Page;
const found: Record<string, unknown> = {};

const copied = () => page.evaluate(() => (window as unknown as Copying).copied);

/** Presses a button that copies, and returns the text. */
async function copy(press: () => Promise<void>): Promise<string> {
  await page.evaluate(() => {
    (window as unknown as Copying).copied = "";
  });
  await press();
  await expect.poll(copied).not.toBe("");
  return copied();
}

async function hover([x, y]: readonly [number, number]): Promise<string> {
  await page.mouse.move(x - 7, y - 5);
  await page.mouse.move(x, y);
  const value = page.locator(".probe-readout .probe-value");
  await value.waitFor({ state: "visible" });
  return value.innerText();
}

async function pin([x, y]: readonly [number, number]): Promise<void> {
  const pins = page.locator(".probe-pins li");
  const before = await pins.count();
  await page.mouse.click(x, y);
  await expect.poll(() => pins.count()).toBe(before + 1);
}

/** Starts a measurement between the first two pins, and returns what its buttons copy. */
async function measure(name: string): Promise<{ csv: string; python: string }> {
  const between = page.locator(".probe-between select");
  await between.nth(0).selectOption("1");
  await between.nth(1).selectOption("2");
  await page.getByRole("button", { name, exact: true }).click();
  const result = page.locator(".probe-result").first();
  const button = result.getByRole("button", { name: "Copy CSV" });
  await button.waitFor();
  const csv = await copy(() => button.click());
  const python = await copy(() => result.getByRole("button", { name: "Copy Python" }).click());
  return { csv, python };
}

beforeAll(async () => {
  browser = await launch();
  page = await (await browser.newContext({ viewport: SIZE })).newPage();
  await page.addInitScript(() => {
    const writeText = (text: string) => {
      (window as unknown as Copying).copied = text;
      return Promise.resolve();
    };
    Object.defineProperty(navigator, "clipboard", { value: { writeText } });
  });
  await page.goto(inject("baseUrl"));
  await complete(page);
});

afterAll(async () => {
  await browser.close();
});

describe.runIf(CORRIDOR_E2E_PROBE !== undefined)("values", () => {
  it("are shown under the pointer and pinned by a click, at any zoom", async () => {
    // A picture in space, where there is a volume.
    if (CORRIDOR_E2E_PROBE === "volume") {
      await page.locator('button[data-layout="space"]').click();
      await complete(page);
    }
    const hovered = [];
    for (const place of PLACES) {
      hovered.push(await hover(place));
      await pin(place);
    }
    await screenshot(page, "probe-1");
    await page.mouse.move(500, 320);
    await page.mouse.wheel(0, -600);
    await page.waitForTimeout(400);
    await complete(page);
    hovered.push(await hover([480, 330]));
    await pin([480, 330]);
    await screenshot(page, "probe-2-near");
    found.hover = hovered;
    found.pin_count = PLACES.length + 1;
    const button = page
      .locator(".probe-body > .probe-buttons")
      .first()
      .getByRole("button", { name: "Copy CSV" });
    found.pins = await copy(() => button.click());
  });

  it("along a line and in a box are copied as tables and as Python", async () => {
    const profile = await measure("Profile");
    found.profile = profile.csv;
    found.python = profile.python;
    found.box = (await measure("Box")).csv;
    await screenshot(page, "probe-3-measured");
    const folder = CORRIDOR_E2E_OUT ?? "/tmp";
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "probe.json"), JSON.stringify(found));
  });
});
