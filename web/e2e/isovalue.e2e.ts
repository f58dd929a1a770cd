//! Measures how long a surface takes to follow its isovalue: from the key that changes it until the frame with it is on the screen.
//! Times are printed and decide nothing; that each change arrives does.

import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Browser, Page } from "playwright-core";

import { complete, launch, open } from "./helpers.ts";

/** Changes that are measured. */
const CHANGES = 40;
/** Longest wait for one of them. */
const PATIENCE_MILLIS = 20_000;

const url = inject("baseUrl");
let browser: Browser;
let page: Page;

beforeAll(async () => {
  browser = await launch();
  ({ page } = await open(browser, url));
  await complete(page);
});

afterAll(async () => {
  await browser.close();
});

it("the surface follows its value", async () => {
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await complete(page);
  await page.locator(".iso-handle").first().focus();
  const times: number[] = [];
  for (let change = 0; change < CHANGES; change += 1) {
    const key = change % 20 < 10 ? "ArrowRight" : "ArrowLeft";
    const time = await page.evaluate(
      async ([key, patience]) => {
        const { body } = document;
        const handle = document.querySelector(".iso-handle");
        if (!handle) throw new Error("expected the slider of a surface");
        const began = performance.now();
        const isCurrent = () => body.dataset.current === "true";
        handle.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
        while (isCurrent() && performance.now() - began < 1000) await next();
        while (!isCurrent() && performance.now() - began < patience) await next();
        const took = performance.now() - began;
        handle.dispatchEvent(new KeyboardEvent("keyup", { key, bubbles: true }));
        return isCurrent() ? took : Number.NaN;
      },
      [key, PATIENCE_MILLIS] as const,
    );
    times.push(time);
    await page.waitForTimeout(30);
  }
  expect(times.filter(Number.isFinite)).toHaveLength(CHANGES);
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  console.log(`isovalue to picture: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, of ${CHANGES} changes`);
});
