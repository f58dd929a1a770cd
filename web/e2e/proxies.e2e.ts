//! The page behind proxies. `CORRIDOR_E2E_PROXIES` is a list in JSON of addresses, each with what has to be there: a complete
//! picture (`null`), or words that say what to set.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

import { complete, keep, launch } from "./visit.ts";

interface Visit {
  readonly name: string;
  readonly url: string;
  readonly says: string | null;
  readonly status: number;
}

const visits = JSON.parse(process.env.CORRIDOR_E2E_PROXIES ?? "[]") as readonly Visit[];
/** Longest wait for words: a page says within ten seconds that nothing comes. */
const WORDS_MILLIS = 10_000;
let browser: Browser;

beforeAll(async () => {
  if (visits.length > 0) browser = await launch(["--host-resolver-rules=MAP *.example.org 127.0.0.1"]);
});

afterAll(async () => {
  if (visits.length > 0) await browser.close();
});

for (const { name, url, says, status } of visits) {
  it(name, async () => {
    const context = await browser.newContext({
      viewport: { width: 640, height: 480 },
      ignoreHTTPSErrors: true,
    });
    const page = await context.newPage();
    const answer = await page.goto(url);
    expect(answer?.status()).toBe(status);
    if (says === null) {
      await complete(page);
      expect(await page.evaluate(() => location.hash)).not.toContain("token");
    } else {
      const seen = page.getByText(says, { exact: false }).filter({ visible: true }).first();
      await seen.waitFor({ timeout: WORDS_MILLIS });
    }
    await keep(page, name);
    await context.close();
  });
}
