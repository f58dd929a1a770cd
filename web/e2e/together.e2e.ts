//! Two people in one session: names, presenting, pointers, chat, notes, bookmarks, undo, and a connection that breaks.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, difference, drag, launch, open, screenshot, thumbnail } from "./helpers.ts";

const SAME = 0.5;
const CHANGED = 2.5;
const url = inject("baseUrl");
let browser: Browser;
let ada: Page;
let bob: Page;
const errors: string[][] = [];

async function join(name: string): Promise<Page> {
  const { page, errors: found } = await open(browser, url);
  errors.push(found);
  await complete(page);
  await page.getByRole("button", { name: /^People/ }).click();
  await page.locator("#together").getByLabel("Your name").fill(name);
  await page.locator("#together form").first().getByRole("button", { name: "Save" }).click();
  return page;
}

beforeAll(async () => {
  browser = await launch();
  ada = await join("Ada");
  bob = await join("Bob");
});

afterAll(async () => {
  await browser.close();
});

describe("two people", () => {
  it("see each other, present and follow", async () => {
    await ada.locator(".person-name", { hasText: "Bob" }).waitFor();
    await ada.getByRole("button", { name: "Present to all" }).click();
    await bob.locator(".follow-bar", { hasText: "Presented by Ada" }).waitFor();
    const before = await thumbnail(bob);
    await drag(ada, [560, 320], [120, 40]);
    await complete(ada);
    await complete(bob);
    expect(difference(before, await thumbnail(bob))).toBeGreaterThan(CHANGED);
    expect(difference(await thumbnail(ada), await thumbnail(bob))).toBeLessThan(SAME);
    await drag(bob, [560, 320], [-90, 10]);
    await bob.locator(".toast", { hasText: "You no longer follow Ada" }).waitFor();
    await bob.locator(".follow-bar").waitFor({ state: "hidden" });
    await ada.getByRole("button", { name: "End presenting" }).click();
  });

  it("undo a drag in one step", async () => {
    await complete(bob);
    const before = await thumbnail(bob);
    await drag(bob, [560, 320], [60, 90]);
    await complete(bob);
    expect(difference(before, await thumbnail(bob))).toBeGreaterThan(CHANGED);
    await bob.locator("#picture").focus();
    await bob.keyboard.press("Control+z");
    await bob.waitForFunction(() => document.querySelector('[aria-label="Redo"]:not([disabled])'));
    await complete(bob);
    expect(difference(before, await thumbnail(bob))).toBeLessThan(CHANGED);
  });

  it("point, chat, pin notes and save bookmarks", async () => {
    await ada.mouse.move(540, 320);
    await ada.mouse.move(545, 325);
    await bob.locator(".pointer text", { hasText: "Ada" }).waitFor();

    await bob.getByLabel("Message to all").fill("Look at this");
    await bob.keyboard.press("Enter");
    await ada.locator(".chat", { hasText: "Bob Look at this" }).waitFor();

    await ada.getByRole("button", { name: "Pin to a place" }).click();
    await ada.mouse.click(560, 320);
    await ada.getByLabel("Text of the note").first().fill("A crack");
    await ada.keyboard.press("Control+Enter");
    await bob.locator(".note", { hasText: "A crack" }).waitFor();

    await bob.getByLabel("Name of the bookmark").fill("Side");
    await bob.keyboard.press("Enter");
    const picture = ada.locator(".bookmark img");
    await picture.waitFor();
    expect(await picture.getAttribute("src")).toMatch(/^data:image\/jpeg;base64,/);
    await screenshot(ada, "together");
    const download = ada.waitForEvent("download");
    await ada.getByRole("button", { name: "Save as Markdown" }).click();
    expect((await download).suggestedFilename()).toMatch(/notes\.md$/);
    await ada.locator(".bookmark-go").click();
    await complete(ada);
    await complete(bob);
    expect(difference(await thumbnail(ada), await thumbnail(bob))).toBeLessThan(SAME);
  });

  it("are the same after a reload", async () => {
    await bob.reload();
    await complete(bob);
    await bob.getByRole("button", { name: /^People/ }).click();
    await bob.locator(".chat", { hasText: "Look at this" }).waitFor();
    await ada.locator(".person-name", { hasText: "Bob" }).waitFor();
    expect(await ada.locator(".person").count()).toBe(2);
    // Still the author of the bookmark.
    await bob.getByRole("button", { name: "Rename" }).waitFor();
    expect(errors.flat()).toEqual([]);
  });
});
