//! A viewer of data that two servers have: what is told of them. `CORRIDOR_E2E_SERVERS` says how many of the two answer.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

import { complete, keep, launch, open } from "./visit.ts";

const answering = Number(process.env.CORRIDOR_E2E_SERVERS ?? Number.NaN);
const isAsked = !Number.isNaN(answering);
let browser: Browser;

beforeAll(async () => {
  if (isAsked) browser = await launch();
});

afterAll(async () => {
  if (isAsked) await browser.close();
});

it.runIf(isAsked)("each server has its state, and what it has answered", async () => {
  const { page, errors } = await open(browser, inject("baseUrl"), { width: 1000, height: 900 });
  await complete(page);
  const away = page.locator("#servers li[data-state='away']");
  await page.waitForFunction(
    (count) => document.querySelectorAll("#servers li[data-state='used']").length === count,
    answering,
  );
  expect(await away.count()).toBe(2 - answering);
  await page.locator("#servers").scrollIntoViewIfNeeded();
  await keep(page, `servers-${answering}`);
  const words = await page.locator("#servers .tf-readout").textContent();
  expect(words).toBe(answering === 2 ? "all available" : "1 of 2 unavailable");
  for (const name of await page.locator("#servers .server-name").allTextContents()) {
    expect(name).toMatch(/^127\.0\.0\.1:\d+$/);
  }
  // What each has answered is told now and then: the picture may be there before.
  await page.waitForFunction(() => {
    const facts = [...document.querySelectorAll("#servers li[data-state='used'] .server-facts")];
    return facts.some(
      ({ textContent: text }) => /^[\d.]+ (bytes|[KMGT]iB)$/.test(text) && text !== "0 bytes",
    );
  });
  if (answering < 2) expect(await away.first().getAttribute("title")).not.toBe("");
  expect(errors).toEqual([]);
});
