//! Colors by another array. `CORRIDOR_E2E_COLORS` is its name; its values are from 0 to 100.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, difference, isVisible, screenshot, launch, open, thumbnail } from "./helpers.ts";

/** Thresholds as in `viewer.e2e.ts`. */
const CHANGED = 2.5;
const SAME = 0.5;

const other = process.env.CORRIDOR_E2E_COLORS;
let browser: Browser;
let page: Page;
let errors: string[];
let before: number[];

beforeAll(async () => {
  if (other === undefined) return;
  browser = await launch();
  ({ page, errors } = await open(browser, inject("baseUrl"), { width: 1000, height: 900 }));
  await complete(page);
  before = await thumbnail(page);
});

afterAll(async () => {
  if (other !== undefined) await browser.close();
});

const by = (): Locator => page.getByLabel("Color by");
const mode = (): Locator => page.getByLabel("Rendering mode");
const end = (which: "Lowest" | "Highest"): Locator =>
  page.locator(".color-by").getByLabel(`${which} value of the colors`);

async function chosen(): Promise<void> {
  await by().selectOption(other ?? "");
  await page.waitForFunction(() => {
    const input = document.querySelector<HTMLInputElement>(".color-by .number");
    return input !== null && input.value !== "" && input.checkVisibility({ visibilityProperty: true });
  });
  await complete(page);
}

async function setRange(low: number, high: number): Promise<void> {
  // The end that moves away first, so that low is below high in between.
  const isUp = high > Number(await end("Highest").inputValue());
  for (const which of isUp ? (["Highest", "Lowest"] as const) : (["Lowest", "Highest"] as const)) {
    await end(which).fill(String(which === "Lowest" ? low : high));
    await end(which).press("Tab");
  }
  await complete(page);
}

/** Mean red less mean blue of what is seen. */
function warmth(pixels: readonly number[]): number {
  const seen = pixels.map((_, i) => i).filter((i) => i < pixels.length / 4 && isVisible(pixels, i));
  const sum = (c: number) => seen.reduce((all, i) => all + (pixels[4 * i + c] ?? 0), 0);
  return (sum(0) - sum(2)) / Math.max(1, seen.length);
}

describe.runIf(other !== undefined)("another array", () => {
  it("gives the colors, with the range that the server chose", async () => {
    expect(await page.locator(".tf-bar").isVisible()).toBe(true);
    await chosen();
    expect(difference(before, await thumbnail(page))).toBeGreaterThan(CHANGED);
    const [low, high] = [await end("Lowest").inputValue(), await end("Highest").inputValue()].map(Number);
    expect(low).toBeCloseTo(0, -1);
    expect(high).toBeCloseTo(100, -1);
    expect(await page.locator(".color-by .hint").textContent()).toContain(other);
    expect(await page.locator(".tf-bar").isVisible(), "opacity is not in color").toBe(false);
    await screenshot(page, "colors-1-other");
  });

  it("has a range of its own, which the server chooses again when asked", async () => {
    const colored = await thumbnail(page);
    const map = page.locator(".map input[value='viridis']");
    expect(await map.isChecked()).toBe(true);
    // Beyond all values, at either side: the map's last color, yellow, and its first, violet.
    await setRange(-20, -10);
    expect(warmth(await thumbnail(page))).toBeGreaterThan(CHANGED);
    await setRange(200, 300);
    expect(warmth(await thumbnail(page))).toBeLessThan(-CHANGED);
    await page.click("button:text-is('Automatic')");
    await page.waitForFunction(
      () => Number(document.querySelector<HTMLInputElement>(".color-by .number")?.value) < 100,
    );
    await complete(page);
    expect(difference(colored, await thumbnail(page))).toBeLessThan(SAME);
  });

  it("has a map of its own", async () => {
    const colored = await thumbnail(page);
    await page.locator(".map input:not(:checked)").first().check({ force: true });
    await complete(page);
    expect(difference(colored, await thumbnail(page))).toBeGreaterThan(CHANGED);
    await screenshot(page, "colors-2-map");
  });

  it("colors isosurfaces instead of their own color", async () => {
    await page.click(".group:has(h2:text-is('Isosurfaces')) button:text-is('Add')");
    await complete(page);
    const color = page.getByLabel("Color of surface 1");
    expect(await color.isDisabled()).toBe(true);
    await screenshot(page, "colors-3-isosurface");
    await page.click("[aria-label='Remove surface 1']");
    await complete(page);
  });

  it("can be deselected, which restores the array's own map", async () => {
    await by().selectOption("");
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
    expect(await page.locator(".map input[value='viridis']").isChecked()).toBe(true);
  });

  it("is not available for maximum and minimum modes", async () => {
    await chosen();
    await mode().selectOption("maximum");
    await complete(page);
    expect(await by().isDisabled()).toBe(true);
    expect(await by().getAttribute("title")).toContain("their own colors");
    expect(await by().inputValue()).toBe("");
    await mode().selectOption("composite");
    await complete(page);
    expect(await by().isEnabled()).toBe(true);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
  });

  it("travels by the link", async () => {
    await chosen();
    await page.waitForTimeout(700); // the address follows the view with a delay
    const colored = await thumbnail(page);
    await page.reload();
    await complete(page);
    expect(await by().inputValue()).toBe(other);
    expect(difference(colored, await thumbnail(page))).toBeLessThan(SAME);
  });

  it("is not offered for itself", async () => {
    await page.locator("#array").selectOption(other ?? "");
    await complete(page);
    expect(await by().inputValue()).toBe("");
    expect(await by().locator(`option[value="${other}"]`).count()).toBe(0);
  });

  it("there were no errors on the page", () => {
    expect(errors).toEqual([]);
  });
});
