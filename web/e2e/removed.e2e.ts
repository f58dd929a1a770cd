//! An owner removes a guest. `CORRIDOR_E2E_INVITATION` is the link of guests.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, launch, open, screenshot } from "./helpers.ts";

const invitation = process.env.CORRIDOR_E2E_INVITATION;
let browser: Browser;

async function join(url: string, name: string): Promise<Page> {
  const { page } = await open(browser, url);
  await complete(page);
  await page.getByRole("button", { name: /^People/ }).click();
  await page.locator("#together").getByLabel("Your name").fill(name);
  await page.locator("#together form").first().getByRole("button", { name: "Save" }).click();
  return page;
}

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

describe.runIf(invitation !== undefined)("somebody who is removed", () => {
  it("is told, does not come back, and the others stay", async () => {
    const ada = await join(inject("baseUrl"), "Ada");
    const bob = await join(invitation ?? "", "Bob");
    const eve = await join(invitation ?? "", "Eve");
    await ada.locator(".person-name", { hasText: "Eve" }).waitFor();
    const remove = ada.locator(".person", { hasText: "Bob" });
    await remove.getByRole("button", { name: "Remove Bob" }).click();
    await remove.getByRole("button", { name: /^Press again to remove Bob/ }).click();
    await bob.locator(".notice", { hasText: "Ada removed you" }).waitFor();
    await screenshot(bob, "removed");
    await ada.locator(".person-name", { hasText: "Bob" }).waitFor({ state: "detached" });
    await ada.locator(".toast", { hasText: "the link for the role" }).waitFor();
    // The page does not connect again by itself, and its link is not valid any more.
    await bob.waitForTimeout(5000);
    await bob.locator(".notice", { hasText: "Ada removed you" }).waitFor();
    const { page: again } = await open(browser, invitation ?? "");
    await again.locator(".notice", { hasText: "token" }).waitFor();
    // Another guest of the same link stays, also through a reload.
    await eve.reload();
    await complete(eve);
    await ada.getByRole("button", { name: /^People/ }).waitFor();
    expect(await ada.locator(".person").count()).toBe(2);
    await ada.locator(".person-name", { hasText: "Eve" }).waitFor();
  });
});
