//! The viewer: the picture becomes complete, rotates, changes with color and time, is saved, and is restored from its link.

import { readFileSync } from "node:fs";

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import {
  badge,
  complete,
  difference,
  drag,
  screenshot,
  launch,
  open,
  thumbnail,
  touch,
  visibleShare,
} from "./helpers.ts";

/** Mean difference (see `difference`) beyond which two pictures show different things, and within which the same. */
const CHANGED = 2.5;
const SAME = 0.5;

const url = inject("baseUrl");
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  browser = await launch();
  ({ page, errors } = await open(browser, url));
});

afterAll(async () => {
  await browser.close();
});

async function changes(what: () => Promise<void>): Promise<number> {
  const before = await thumbnail(page);
  await what();
  await complete(page);
  return difference(before, await thumbnail(page));
}

async function choose(select: Locator, option: string): Promise<void> {
  await select.selectOption(option);
}

describe("the picture", () => {
  it("becomes complete at the wanted level and shows something", async () => {
    await complete(page);
    const facts = await badge(page);
    await screenshot(page, "1-complete");
    expect(facts.state).toBe("complete");
    expect(facts.levelShown).toBe(facts.levelWanted);
    expect(facts.blocksPresent).toBe(facts.blocksTotal);
    const level = process.env.CORRIDOR_E2E_LEVEL;
    if (level !== undefined) expect(facts.levelShown).toBe(level);
    const share = visibleShare(await thumbnail(page));
    expect(share).toBeGreaterThan(0.02);
    expect(share).toBeLessThan(0.98);
  });

  it("keeps the token out of the address", () => {
    expect(page.url()).not.toContain("token=");
  });

  it("turns with the mouse and with the keys, and comes back", async () => {
    expect(await changes(() => drag(page, [480, 300], [150, -60]))).toBeGreaterThan(CHANGED);
    await screenshot(page, "2-turned");
    await page.locator("#picture").focus();
    expect(await changes(() => page.keyboard.press("3"))).toBeGreaterThan(CHANGED);
    const turned = changes(async () => {
      for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowLeft");
    });
    expect(await turned).toBeGreaterThan(CHANGED);
    await page.keyboard.press("r");
    await complete(page);
  });

  it("comes nearer with the wheel", async () => {
    const before = visibleShare(await thumbnail(page));
    await page.mouse.move(500, 320);
    await page.mouse.wheel(0, -300);
    // The wheel rests a moment after its last turn.
    await page.waitForTimeout(400);
    await complete(page);
    expect(visibleShare(await thumbnail(page))).toBeGreaterThan(before);
    await page.keyboard.press("r");
    await complete(page);
  });
});

describe("fingers", () => {
  it("turn with one, come nearer with two", async () => {
    expect(await changes(() => touch(page, [{ from: [400, 300], to: [520, 260] }]))).toBeGreaterThan(CHANGED);
    await page.locator("#picture").focus();
    await page.keyboard.press("r");
    await complete(page);
    const before = visibleShare(await thumbnail(page));
    await touch(page, [
      { from: [380, 300], to: [330, 300] },
      { from: [420, 300], to: [470, 300] },
    ]);
    await complete(page);
    expect(visibleShare(await thumbnail(page))).toBeGreaterThan(before);
    await page.keyboard.press("r");
    await complete(page);
  });
});

describe("the transfer function", () => {
  it("has a histogram", async () => {
    await page.waitForFunction(
      () => (document.querySelector(".tf-histogram")?.getAttribute("d") ?? "").length > 20,
    );
  });

  it("changes the picture when a point is dragged", async () => {
    // Of the middle: the highest values may be few.
    const points = page.locator(".tf-point");
    const point = points.nth(Math.floor((await points.count()) / 2));
    const box = await point.locator(".tf-dot").boundingBox();
    const plot = await page.locator(".tf-plot").boundingBox();
    if (!box || !plot) throw new Error("expected a point in the plot");
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const isLow = y > plot.y + 60;
    const change = await changes(() => drag(page, [x, y], [0, isLow ? -55 : 55]));
    await screenshot(page, "3-opacity");
    expect(change).toBeGreaterThan(CHANGED);
  });

  it("that hides everything causes a message, and one click makes the volume visible again", async () => {
    const points = page.locator(".tf-point");
    for (let i = 0; i < (await points.count()); i++) {
      await points.nth(i).focus();
      for (let n = 0; n < 11; n++) await page.keyboard.press("Shift+ArrowDown");
    }
    await complete(page);
    expect(visibleShare(await thumbnail(page))).toBeLessThan(0.002);
    await page.waitForSelector(".notice:has-text('Nothing visible')");
    await screenshot(page, "4-nothing-visible");
    await page.click(".notice button:visible");
    await complete(page);
    expect(visibleShare(await thumbnail(page))).toBeGreaterThan(0.01);
  });

  it("takes another color map", async () => {
    const other = page.locator(".map input:not(:checked)").first();
    expect(await changes(() => other.check({ force: true }))).toBeGreaterThan(CHANGED);
    await screenshot(page, "5-colors");
  });
});

describe("isosurfaces", () => {
  it("are added, alone or with the volume around them, and taken away", async () => {
    const before = await thumbnail(page);
    const add = page.locator(".group:has(h2:text-is('Isosurfaces')) button:text-is('Add')");
    expect(await changes(() => add.click())).toBeGreaterThan(CHANGED);
    await screenshot(page, "6-isosurface");
    const volume = page.getByLabel("Rendering mode");
    expect(await changes(() => choose(volume, "surfaces"))).toBeGreaterThan(SAME);
    const alone = await thumbnail(page);
    expect(visibleShare(alone)).toBeGreaterThan(0.005);
    await screenshot(page, "7-isosurface-alone");
    await choose(volume, "composite");
    await page.click("[aria-label='Remove surface 1']");
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
  });

  it("stay unchanged if the input is not a number", async () => {
    await page.click(".group:has(h2:text-is('Isosurfaces')) button:text-is('Add')");
    await complete(page);
    const value = page.getByRole("textbox", { name: "Value of surface 1" });
    expect(await changes(() => value.fill("a lot").then(() => value.blur()))).toBeLessThan(SAME);
    expect(await value.getAttribute("aria-invalid")).toBe("true");
    await page.click("[aria-label='Remove surface 1']");
    await complete(page);
  });

  it("and shading of the volume changes the picture", async () => {
    const light = page.getByLabel("Shading");
    expect(await changes(() => light.uncheck())).toBeGreaterThan(SAME);
    await screenshot(page, "8-light");
    await light.check();
    await complete(page);
  });
});

describe("the volume", () => {
  it("is drawn as its largest and its smallest values, and as before again", async () => {
    const before = await thumbnail(page);
    const volume = page.getByLabel("Rendering mode");
    expect(await changes(() => choose(volume, "maximum"))).toBeGreaterThan(CHANGED);
    const largest = await thumbnail(page);
    expect(visibleShare(largest)).toBeGreaterThan(0.05);
    await screenshot(page, "9-largest");
    expect(await changes(() => choose(volume, "minimum"))).toBeGreaterThan(CHANGED);
    await choose(volume, "composite");
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
  });

  it("is cut by slices, alone and in it, which slide along their axes", async () => {
    const before = await thumbnail(page);
    const volume = page.getByLabel("Rendering mode");
    const across = page.getByLabel("Slice across z", { exact: true });
    expect(await changes(() => across.check())).toBeGreaterThan(SAME);
    await screenshot(page, "10-slice-in-the-volume");
    expect(await changes(() => choose(volume, "surfaces"))).toBeGreaterThan(SAME);
    expect(visibleShare(await thumbnail(page))).toBeGreaterThan(0.02);
    const place = page.getByLabel("Position of the slice across z");
    await place.focus();
    const moves = async () => {
      for (let i = 0; i < 15; i++) await page.keyboard.press("ArrowLeft");
    };
    expect(await changes(moves)).toBeGreaterThan(SAME);
    await page.getByLabel("Slice across x", { exact: true }).check();
    await complete(page);
    await screenshot(page, "10-slices");
    await page.getByLabel("Slice across x", { exact: true }).uncheck();
    await across.uncheck();
    await choose(volume, "composite");
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
  });

  it("is clipped with the mouse and with the keys, and whole again", async () => {
    const before = await thumbnail(page);
    await choose(page.getByLabel("Rendering mode"), "maximum");
    await complete(page);
    const whole = visibleShare(await thumbnail(page));
    const to = page.getByLabel("x to");
    await to.scrollIntoViewIfNeeded();
    const box = await to.boundingBox();
    if (!box) throw new Error("expected the slider");
    const [x, y] = [box.x + box.width - 8, box.y + box.height / 2];
    expect(await changes(() => drag(page, [x, y], [-box.width / 2, 0]))).toBeGreaterThan(SAME);
    const half = visibleShare(await thumbnail(page));
    expect(half).toBeLessThan(0.9 * whole);
    await screenshot(page, "10-clipped");
    const from = page.getByLabel("z from");
    await from.focus();
    for (let i = 0; i < 60; i++) await page.keyboard.press("ArrowRight");
    await complete(page);
    expect(Number(await from.inputValue())).toBeCloseTo(0.6);
    expect(visibleShare(await thumbnail(page))).toBeLessThan(0.9 * half);
    await page.click("button:text-is('Whole volume')");
    await choose(page.getByLabel("Rendering mode"), "composite");
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);
  });
});

describe("time", () => {
  it("steps where there is a time axis", async (context) => {
    const hasTime = await page.locator("#time").isVisible();
    if (process.env.CORRIDOR_E2E_TIME !== undefined) {
      expect(hasTime).toBe(process.env.CORRIDOR_E2E_TIME === "1");
    }
    if (!hasTime) {
      context.skip("no time axis");
      return;
    }
    await page.locator("#picture").focus();
    expect(await changes(() => page.keyboard.press("."))).toBeGreaterThan(SAME);
    await screenshot(page, "11-time");
    expect(await page.locator("#time").inputValue()).toBe("1");
  });
});

describe("the view", () => {
  it("is saved as PNG", async () => {
    await page.click('[aria-label="Save a picture or film"]');
    const shown = page.waitForEvent("download");
    await page.click("text=Save what is shown now");
    const file = await shown;
    expect(file.suggestedFilename()).toMatch(/\.png$/);
    const bytes = readFileSync(await file.path());
    expect([...bytes.subarray(1, 4)]).toEqual([0x50, 0x4e, 0x47]);
    expect(bytes.length).toBeGreaterThan(2000);
  });

  it("is saved by the node in any size, without a background", async () => {
    await page.keyboard.press("s");
    await page.fill('[aria-label="Width, pixels"]', "2100");
    await page.fill('[aria-label="Height, pixels"]', "1501");
    await page.selectOption('.save select:has(option[value="transparent"])', "transparent");
    await screenshot(page, "12-saving");
    const download = page.waitForEvent("download");
    await page.click(".save-actions .button");
    const bytes = readFileSync(await (await download).path());
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20), bytes[25]]).toEqual([2100, 1501, 6]);
    expect(await page.locator(".save").isVisible()).toBe(false);
  });

  it("is filmed by the node, and saving is cancelled", async () => {
    await page.keyboard.press("s");
    await page.fill('[aria-label="Width, pixels"]', "16384");
    await page.fill('[aria-label="Height, pixels"]', "16384");
    await page.click(".save-actions .button");
    await page.waitForFunction(() => /%/.test(document.querySelector(".save-progress")?.textContent ?? ""));
    await page.click(".save-progress >> text=Cancel");
    await page.click("#save-tab-film");
    await page.selectOption('.save select:has(option[value="turn"])', "turn");
    await page.fill('[aria-label="Number of pictures"]', "3");
    await screenshot(page, "12-film");
    const download = page.waitForEvent("download");
    await page.click(".save-actions .button");
    const file = await download;
    expect(file.suggestedFilename()).toMatch(/\.mp4$/);
    expect(
      readFileSync(await file.path())
        .subarray(4, 8)
        .toString(),
    ).toBe("ftyp");
  });

  it("is written as a command and as Python", async () => {
    await page.keyboard.press("s");
    await page.click("#save-tab-text");
    const text = (name: string) => page.inputValue(`[data-text="${name}"]`);
    expect(await text("command")).toMatch(/^corridor render corridor:.* --view '/);
    expect(await text("python")).toMatch(/^import corridor\n/);
    expect(await text("link")).not.toContain("token=");
    await page.click("text=With the access token");
    expect(await text("link")).toContain("token=");
    await page.keyboard.press("Escape");
  });

  it("survives a reload and travels by its link", async () => {
    // Messages take room from the picture.
    await page.evaluate(() => {
      for (const close of document.querySelectorAll<HTMLElement>(".toasts .icon-button")) close.click();
    });
    await page.waitForFunction(() => location.hash.includes("view="));
    await page.waitForTimeout(700); // the address follows the view with a delay
    await complete(page);
    const before = await thumbnail(page);
    await page.reload();
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(SAME);

    const token = /token=[^&]*/.exec(url)?.[0] ?? "";
    const other = await open(browser, `${page.url()}&${token}`);
    await complete(other.page);
    expect(difference(before, await thumbnail(other.page))).toBeLessThan(SAME);
    expect(other.errors).toEqual([]);
    await other.page.context().close();
  });

  it("is copied as a link without the token", async () => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click('[aria-label="Copy a link to this view"]');
    await page.waitForSelector(".toast:has-text('without the access token')");
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toContain("#view=");
    expect(copied).not.toContain("token=");
  });

  it("fits the screen of a phone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(400); // a size is sent to the node with a delay
    await complete(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await screenshot(page, "12-phone");
    await page.setViewportSize({ width: 1000, height: 640 });
  });
});

describe("a wrong token", () => {
  it("causes a message with an input for the right one", async (context) => {
    const token = /token=([^&]*)/.exec(url)?.[1];
    if (token === undefined) {
      context.skip("this viewer needs no token");
      return;
    }
    const wrong = await open(browser, url.replace(token, "wrong"));
    await wrong.page.waitForSelector('body[data-state="failed"]');
    await screenshot(wrong.page, "13-refused");
    await wrong.page.fill(".token input", decodeURIComponent(token));
    await wrong.page.click(".token button");
    await complete(wrong.page);
    await wrong.page.context().close();
  });
});

it("there were no errors on the page", () => {
  expect(errors).toEqual([]);
});
