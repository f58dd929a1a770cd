//! Handles in the picture: a slice and a face of the clip box follow the pointer and the keys, a press on the picture is a click or a
//! drag, places are typed by index and by coordinate, and the picture stands beside the panel.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, drag, launch, open, screenshot } from "./helpers.ts";

const url = inject("baseUrl");
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
  ({ page, errors } = await open(browser, url, { width: 1200, height: 760 }));
  await complete(page);
});

afterAll(async () => {
  await browser.close();
});

const handle = (key: string) => page.locator(`[data-handle="${key}"]`);

async function middle(key: string): Promise<readonly [number, number]> {
  const box = await handle(key).locator(".handle-knob").boundingBox();
  if (!box) throw new Error(`expected the handle ${key}`);
  return [box.x + box.width / 2, box.y + box.height / 2];
}

describe("slices", () => {
  it("have handles that follow the pointer and the keys", async () => {
    await page.getByLabel("Slice across z", { exact: true }).check();
    await complete(page);
    const index = page.getByLabel("Index of the slice across z, counted from 0");
    const before = Number(await index.inputValue());
    const [x, y] = await middle("slice 0");
    await drag(page, [x, y], [0, -60]);
    await complete(page);
    const after = Number(await index.inputValue());
    expect(after).toBeGreaterThan(before);
    // The handle is under the pointer, within a voxel.
    expect(Math.abs((await middle("slice 0"))[1] - (y - 60))).toBeLessThan(6);
    await handle("slice 0").focus();
    await page.keyboard.press("ArrowUp");
    await complete(page);
    expect(Number(await index.inputValue())).toBe(after + 1);
    await screenshot(page, "handles-slice");
  });

  it("are placed by index", async () => {
    const index = page.getByLabel("Index of the slice across z, counted from 0");
    await index.fill("7");
    await index.press("Enter");
    await complete(page);
    expect(await handle("slice 0").getAttribute("aria-valuenow")).toBe("7");
    await index.fill("100000");
    await index.press("Enter");
    expect(await index.getAttribute("aria-invalid")).toBe("true");
    await index.press("Escape");
    expect(await index.inputValue()).toBe("7");
  });

  it("can be seen inside of the volume: what lies in front is cut away", async () => {
    await page.getByLabel("Cut the volume away in front").check();
    await complete(page);
    expect(await page.getByRole("button", { name: "Whole volume" }).isEnabled()).toBe(true);
    await screenshot(page, "handles-cut");
    await page.getByLabel("Cut the volume away in front").uncheck();
    await complete(page);
    expect(await page.getByRole("button", { name: "Whole volume" }).isEnabled()).toBe(false);
  });
});

describe("the clip box", () => {
  it("has faces that are dragged", async () => {
    await page.getByLabel("Clip box", { exact: true }).check();
    const [x, y] = await middle("clip 2 1");
    await drag(page, [x, y], [0, 80]);
    await complete(page);
    expect(Number(await handle("clip 2 1").getAttribute("aria-valuenow"))).toBeLessThan(0.95);
    await screenshot(page, "handles-clip");
    await page.getByRole("button", { name: "Whole volume" }).click();
  });
});

describe("the page", () => {
  it("keeps the picture beside the panel", async () => {
    const picture = await page.locator("#picture").boundingBox();
    const side = await page.locator("#side").boundingBox();
    if (!picture || !side) throw new Error("expected the picture and the panel");
    expect(picture.x + picture.width).toBeLessThanOrEqual(side.x);
    await page.keyboard.press("p");
    await page.waitForFunction(
      (width) => (document.querySelector("#picture")?.clientWidth ?? 0) > width,
      picture.width,
    );
    await page.keyboard.press("p");
  });

  it("takes a press for a click or for a drag, never for both", async () => {
    await complete(page);
    const link = () => page.evaluate(() => window.location.hash);
    await page.waitForTimeout(800);
    const before = await link();
    await drag(page, [420, 420], [2, 0]);
    await page.waitForTimeout(900);
    expect(await link()).toBe(before);
    await drag(page, [420, 420], [60, 0]);
    await page.waitForTimeout(900);
    expect(await link()).not.toBe(before);
    expect(errors).toEqual([]);
  });
});
