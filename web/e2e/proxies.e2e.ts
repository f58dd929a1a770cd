//! The page behind proxies. `CORRIDOR_E2E_PROXIES` is a JSON list of addresses, each with the expected result: a complete
//! picture (`null`), or a message that names the setting.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

import { complete, screenshot, launch } from "./helpers.ts";

interface Visit {
  readonly name: string;
  readonly url: string;
  readonly says: string | null;
  readonly status: number;
}

const visits = JSON.parse(process.env.CORRIDOR_E2E_PROXIES ?? "[]") as readonly Visit[];
/** Longest wait for a message: a page reports within ten seconds that nothing is received. */
const MESSAGE_MILLIS = 10_000;
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
      await seen.waitFor({ timeout: MESSAGE_MILLIS });
    }
    await screenshot(page, name);
    await context.close();
  });
}
