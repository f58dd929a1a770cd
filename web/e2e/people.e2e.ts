//! Several people in one session: `CORRIDOR_E2E_PEOPLE` pages with cameras of their own. `CORRIDOR_E2E_METRICS` counts the blocks
//! that the data server has sent, and a request to `CORRIDOR_E2E_CUT` breaks all connections.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, launch, open, screenshot } from "./helpers.ts";

const { CORRIDOR_E2E_PEOPLE, CORRIDOR_E2E_CUT, CORRIDOR_E2E_METRICS, CORRIDOR_E2E_TOKEN, CORRIDOR_E2E_OUT } =
  process.env;
const people = Number(CORRIDOR_E2E_PEOPLE ?? 0);
const url = inject("baseUrl");
const CUTS = 10;
const LATE = 2;
const POINTER_MOVES = 12;
/** Eight pages on two busy cores. */
const STEP_MILLIS = 300_000;
const WAIT_MILLIS = 90_000;

/** A page that notes times. */
interface Timed {
  readonly times: number[];
}

let browser: Browser;
const pages: Page[] = [];
const names: string[] = [];
const said: string[] = [];
const found: Record<string, number> = {};

/** Number of blocks and reads that the data server has answered. */
async function served(): Promise<number> {
  const headers = { Authorization: `Bearer ${CORRIDOR_E2E_TOKEN ?? ""}` };
  const text = await (await fetch(CORRIDOR_E2E_METRICS ?? "", { headers })).text();
  const count = /^corridor_reads_total (\d+)$/m.exec(text)?.[1];
  if (count === undefined) throw new Error(`expected the number of reads, found ${text}`);
  return Number(count);
}

async function joinAs(name: string): Promise<Page> {
  const { page } = await open(browser, url, { width: 800, height: 560 });
  await complete(page);
  await page.getByRole("button", { name: /^People/ }).click();
  await page.locator("#together").getByLabel("Your name").fill(name);
  await page.locator("#together form").first().getByRole("button", { name: "Save" }).click();
  pages.push(page);
  names.push(name);
  return page;
}

/** Lines of the chat of a page. */
const lines = (page: Page): Promise<string[]> => page.locator(".chat li span").allInnerTexts();

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message to all").fill(text);
  await page.getByLabel("Message to all").press("Enter");
  said.push(text);
}

/** Waits until a page shows these lines, each once. Lines that were said by different people at once may be in any order. */
async function hasAll(page: Page): Promise<void> {
  await expect
    .poll(async () => (await lines(page)).toSorted(), { timeout: WAIT_MILLIS })
    .toEqual(said.toSorted());
}

async function isConnected(page: Page): Promise<void> {
  await page.waitForFunction(() => document.body.dataset.state !== "disconnected", undefined, {
    timeout: WAIT_MILLIS,
  });
}

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  if (CORRIDOR_E2E_OUT === undefined) return;
  mkdirSync(CORRIDOR_E2E_OUT, { recursive: true });
  writeFileSync(join(CORRIDOR_E2E_OUT, "people.json"), JSON.stringify(found));
});

describe.runIf(people > 0)("people in one session", () => {
  it(
    "fetch each block once",
    async () => {
      const first = await joinAs("Person 1");
      const blocks = await served();
      expect(blocks).toBeGreaterThan(0);
      for (let i = 2; i <= people; i++) await joinAs(`Person ${i}`);
      // Each has an own camera; by keys, because a resting pointer reads a value.
      for (const [i, page] of pages.entries()) {
        await page.locator("#picture").focus();
        for (let turn = 0; turn <= i; turn++) await page.keyboard.press("ArrowLeft");
      }
      for (const page of pages) await complete(page);
      expect(await served()).toBe(blocks);
      found.blocks = blocks;
      await screenshot(first, "people");
    },
    STEP_MILLIS,
  );

  it(
    "see the pointers of others",
    async () => {
      const [from, to] = pages;
      if (!from || !to) throw new Error("expected two pages");
      // Both pages have the clock of this machine.
      await from.evaluate(() => {
        const times: number[] = [];
        Object.assign(window, { times });
        document.querySelector("#picture")?.addEventListener("pointermove", () => times.push(Date.now()));
      });
      await to.evaluate(() => {
        const times: number[] = [];
        Object.assign(window, { times });
        const overlay = document.querySelector(".together-overlay");
        const watch = new MutationObserver(() => times.push(Date.now()));
        if (overlay) watch.observe(overlay, { subtree: true, childList: true, attributes: true });
      });
      // Between the panels.
      await from.mouse.move(345, 250);
      await to.locator(".pointer text", { hasText: "Person 1" }).waitFor({ timeout: WAIT_MILLIS });
      const delays: number[] = [];
      for (let i = 0; i < POINTER_MOVES; i++) {
        await to.waitForTimeout(400);
        const began = Date.now();
        await from.mouse.move(345 + 5 * i, 252);
        const sent = await from.evaluate(
          (after) => (window as unknown as Timed).times.find((time) => time >= after),
          began,
        );
        const seen = await to.waitForFunction(
          (after) => (window as unknown as Timed).times.find((time) => time >= after),
          sent ?? began,
          {
            timeout: WAIT_MILLIS,
          },
        );
        delays.push(Number(await seen.jsonValue()) - (sent ?? began));
      }
      found.pointer_millis = delays.toSorted((a, b) => a - b)[Math.floor(delays.length / 2)] ?? 0;
      await from.mouse.move(300, 2);
    },
    STEP_MILLIS,
  );

  it(
    "lose nothing when connections break",
    async () => {
      for (let cut = 1; cut <= CUTS; cut++) {
        const speaker = pages[cut % pages.length];
        const other = pages[(cut + 1) % pages.length];
        if (!speaker || !other) throw new Error("expected two pages");
        await say(speaker, `before ${cut}`);
        await fetch(CORRIDOR_E2E_CUT ?? "");
        await say(other, `after ${cut}`);
        for (const page of pages) await isConnected(page);
        for (const page of [speaker, other]) await hasAll(page);
      }
      for (const page of pages) await hasAll(page);
      // Everybody is still the same participant.
      for (const page of pages) {
        const texts = () => page.locator(".person:not(.away) .person-name").allInnerTexts();
        const own = (text: string) => text.replace(" (you)", "");
        await expect
          .poll(async () => (await texts()).map(own).toSorted(), { timeout: WAIT_MILLIS })
          .toEqual(names.toSorted());
      }
    },
    2 * STEP_MILLIS,
  );

  it(
    "have the same chat in the same order, also those who join late",
    async () => {
      for (let i = 1; i <= LATE; i++) await joinAs(`Late ${i}`);
      const [first] = pages;
      const order = first ? await lines(first) : [];
      expect(order).toHaveLength(2 * CUTS);
      for (const page of pages) {
        await hasAll(page);
        expect(await lines(page)).toEqual(order);
      }
    },
    STEP_MILLIS,
  );
});
