//! Meaning of integer values, which a person can change. `CORRIDOR_E2E_MEANING` is the meaning in the file.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, difference, screenshot, launch, open, thumbnail } from "./helpers.ts";

/** Thresholds as in `viewer.e2e.ts`. */
const CHANGED = 2.5;
const SAME = 0.5;

const said = process.env.CORRIDOR_E2E_MEANING;
let browser: Browser;
let page: Page;
let errors: string[];
let before: number[];

beforeAll(async () => {
  if (said === undefined) return;
  browser = await launch();
  ({ page, errors } = await open(browser, inject("baseUrl"), { width: 1000, height: 900 }));
  await complete(page);
  before = await thumbnail(page);
});

afterAll(async () => {
  if (said !== undefined) await browser.close();
});

const chooser = (): Locator => page.getByLabel("Meaning of the values");
const hasMap = (name: string) =>
  page.waitForSelector(`.map input[value='${name}']:checked`, { state: "attached" });

describe.runIf(said !== undefined)("the meaning of values", () => {
  it("is that of the file at first", async () => {
    expect(await chooser().inputValue()).toBe(said);
  });

  it("becomes labels, each in a color of its own", async () => {
    await chooser().selectOption("labels");
    await hasMap("labels");
    await complete(page);
    expect(await chooser().inputValue()).toBe("labels");
    expect(difference(before, await thumbnail(page))).toBeGreaterThan(CHANGED);
    await screenshot(page, "meaning-1-labels");
  });

  it.each(["intensity", "file"])(
    "becomes intensities again by `%s`, with the same picture as at first",
    async (choice) => {
      await chooser().selectOption("labels");
      await hasMap("labels");
      await complete(page);
      await chooser().selectOption(choice);
      await page.waitForSelector(".map input[value='labels']:not(:checked)", { state: "attached" });
      await complete(page);
      expect(await chooser().inputValue()).toBe("intensity");
      expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
      expect(errors).toEqual([]);
    },
  );
});
