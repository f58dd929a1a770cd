//! Comfort of the page: accessibility in its main states, colors and backgrounds, keys and their help, the page on a phone, opening of
//! other data, and a phone as controller.

import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, difference, launch, open, screenshot, thumbnail, touch } from "./helpers.ts";

const url = inject("baseUrl");
const CHANGED = 2.5;
const SAME = 0.5;
const PHONE = { width: 390, height: 844 };
let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
});

/** Returns the rules of axe that a page breaks, with the elements. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    return (await axe.run(document, { resultTypes: ["violations"] })).violations;
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
}

async function opened(colorScheme: "dark" | "light", size = { width: 1400, height: 900 }): Promise<Page> {
  const context = await browser.newContext({ viewport: size, colorScheme, hasTouch: size.width < 500 });
  const page = await context.newPage();
  await page.goto(url);
  await complete(page);
  return page;
}

describe("the page is accessible", () => {
  for (const scheme of ["dark", "light"] as const)
    for (const size of [{ width: 1400, height: 900 }, PHONE])
      it(`in ${scheme} colors at ${size.width} pixels`, async () => {
        const page = await opened(scheme, size);
        expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe(scheme);
        const check = async (state: string) => {
          await screenshot(page, `comfort-${scheme}-${size.width}-${state}`);
          expect(await violations(page), state).toEqual([]);
        };
        await check("picture");
        await page.keyboard.press("p");
        await check("panel");
        await page.keyboard.press("p");
        await page.keyboard.press("t");
        await page.locator("#together").waitFor();
        await check("people");
        await page.keyboard.press("Escape");
        await page.keyboard.press("?");
        await page.locator("dialog.help[open]").first().waitFor();
        await check("help");
        await page.locator("dialog.help[open] .icon-button").first().click();
        await page.keyboard.press("d");
        await page.locator(".open-dialog[open] .open-entry").first().waitFor();
        await check("open");
        await page.context().close();
      });
});

describe("colors", () => {
  it("follow the choice of the person, and the picture keeps its background", async () => {
    const page = await opened("dark");
    await page.locator("#display > button").click();
    await page.locator("#theme").selectOption("light");
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    expect(await page.evaluate(() => document.body.dataset.background)).toBe("dark");
    await page.locator('[data-background="white"]').last().click();
    await complete(page);
    expect((await thumbnail(page)).slice(0, 3)).toEqual([255, 255, 255]);
    expect(await page.evaluate(() => document.body.dataset.background)).toBe("light");
    await page.reload();
    await complete(page);
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await page.context().close();
  });
});

describe("keys", () => {
  it("are found in the help, and do what it says", async () => {
    const page = await opened("dark");
    await page.keyboard.press("?");
    await page.keyboard.type("full screen");
    const rows = page.locator("dialog.help[open] .help-row:visible");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain("F");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog[open]") === null);
    const before = await thumbnail(page);
    for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowLeft");
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeGreaterThan(CHANGED);
    await page.context().close();
  });
});

describe("other data", () => {
  it("open by their location in a room of their own, and by dropping a file", async () => {
    const { page } = await open(browser, url);
    await complete(page);
    await page.keyboard.press("d");
    await page.locator("#open-location").fill("synthetic:waves?shape=32,32,32");
    await page.locator("#open-location").press("Enter");
    await page.waitForURL(/\/room\/\d+\//);
    await complete(page);
    expect(await page.title()).toContain("waves");
    await page.keyboard.press("d");
    await page.locator(".open-dialog[open] .open-entry").first().waitFor();
    const header = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 8 8 8\nencoding: raw\n\n";
    const values = Uint8Array.from({ length: 512 }, (_, i) => i % 251);
    const buffer = Buffer.concat([Buffer.from(header), values]);
    const before = page.url();
    await page.locator(".open-dialog input[type=file]").setInputFiles({
      name: "dropped.nrrd",
      mimeType: "application/octet-stream",
      buffer,
    });
    await page.waitForURL((to) => to.pathname !== new URL(before).pathname);
    await complete(page);
    expect(await page.title()).toContain("dropped.nrrd");
    await page.context().close();
  });

  it("that do not exist are refused with a sentence", async () => {
    const { page } = await open(browser, url);
    await complete(page);
    await page.keyboard.press("d");
    await page.locator("#open-location").fill("/absent/data.h5");
    await page.locator("#open-location").press("Enter");
    await page.locator(".open-status.bad", { hasText: "/absent/data.h5" }).waitFor();
    await page.context().close();
  });
});

describe("a phone", () => {
  it("steers the view of the page that invited it, until that is moved itself", async () => {
    const page = await opened("dark", { width: 1000, height: 640 });
    await page.locator("#display > button").click();
    await page.getByRole("button", { name: "Use a phone as controller" }).click();
    expect(await page.locator(".qr path").count()).toBe(1);
    const link = await page.locator(".invite-dialog input").inputValue();
    await page.keyboard.press("Escape");
    const context = await browser.newContext({ viewport: PHONE, hasTouch: true });
    const phone = await context.newPage();
    await phone.goto(link);
    await phone.locator(".controller[data-phase=resting]").waitFor();
    await phone.waitForSelector('body[data-state="complete"]');
    const before = await thumbnail(page);
    await touch(phone, [{ from: [120, 400], to: [280, 460] }]);
    await phone.locator(".controller[data-phase=steering]").waitFor();
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeGreaterThan(CHANGED);
    await page.locator("#picture").focus();
    await page.keyboard.press("3");
    await phone.locator(".controller[data-phase=resting]").waitFor();
    await complete(page);
    const rest = await thumbnail(page);
    await touch(phone, [{ from: [120, 400], to: [260, 400] }]);
    await phone.locator(".controller[data-phase=steering]").waitFor();
    await complete(page);
    expect(difference(rest, await thumbnail(page))).toBeGreaterThan(SAME);
    await screenshot(phone, "comfort-controller");
    await context.close();
    await page.context().close();
  });
});
