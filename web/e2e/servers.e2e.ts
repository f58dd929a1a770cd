//! List of servers for data on two of them. `CORRIDOR_E2E_SERVERS`: how many of the two are available.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

import { complete, screenshot, launch, open } from "./helpers.ts";

const answering = Number(process.env.CORRIDOR_E2E_SERVERS ?? Number.NaN);
const isAsked = !Number.isNaN(answering);
let browser: Browser;

beforeAll(async () => {
  if (isAsked) browser = await launch();
});

afterAll(async () => {
  if (isAsked) await browser.close();
});

it.runIf(isAsked)("each server has its state and the bytes received", async () => {
  const { page, errors } = await open(browser, inject("baseUrl"), { width: 1000, height: 900 });
  await complete(page);
  const away = page.locator("#servers li[data-state='away']");
  await page.waitForFunction(
    (count) => document.querySelectorAll("#servers li[data-state='used']").length === count,
    answering,
  );
  expect(await away.count()).toBe(2 - answering);
  await page.locator("#servers").scrollIntoViewIfNeeded();
  await screenshot(page, `servers-${answering}`);
  const words = await page.locator("#servers .tf-readout").textContent();
  expect(words).toBe(answering === 2 ? "all available" : "1 of 2 unavailable");
  for (const name of await page.locator("#servers .server-name").allTextContents()) {
    expect(name).toMatch(/^127\.0\.0\.1:\d+$/);
  }
  // Bytes received are reported from time to time, perhaps after the picture is complete.
  await page.waitForFunction(() => {
    const facts = [...document.querySelectorAll("#servers li[data-state='used'] .server-facts")];
    return facts.some(
      ({ textContent: text }) => /^[\d.]+ (bytes|[KMGT]iB)$/.test(text) && text !== "0 bytes",
    );
  });
  if (answering < 2) expect(await away.first().getAttribute("title")).not.toBe("");
  expect(errors).toEqual([]);
});
