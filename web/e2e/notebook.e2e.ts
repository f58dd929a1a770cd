//! The widget in JupyterLab: `CORRIDOR_E2E_NOTEBOOK` is the address of an open notebook, whose first cell shows a viewer of
//! three time steps, whose second sets the time, and whose others print what Python knows.

import type { Browser, Frame, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { complete, difference, drag, launch, screenshot, thumbnail, visibleShare } from "./helpers.ts";

/** Thresholds as in `viewer.e2e.ts`. */
const CHANGED = 2.5;
/** JupyterLab on two busy cores. */
const START_MILLIS = 120_000;
const CELL_MILLIS = 60_000;

const address = process.env.CORRIDOR_E2E_NOTEBOOK;
let browser: Browser;
let page: Page;
let viewer: Frame;

beforeAll(async () => {
  if (address === undefined) return;
  browser = await launch();
  page = await (await browser.newContext({ viewport: { width: 1200, height: 1000 } })).newPage();
}, START_MILLIS);

afterAll(async () => {
  if (address !== undefined) await browser.close();
});

const cell = (number: number): Locator => page.locator(".jp-Notebook .jp-Cell").nth(number);

/** Runs a cell and waits until it has ended; returns what it printed. */
async function run(number: number): Promise<string> {
  await cell(number).locator(".cm-content").click();
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(
    (index) => {
      const prompt = document.querySelectorAll(".jp-Notebook .jp-Cell")[index];
      return /\[\d+\]/.test(prompt?.querySelector(".jp-InputPrompt")?.textContent ?? "");
    },
    number,
    { timeout: CELL_MILLIS },
  );
  return (await cell(number).locator(".jp-OutputArea").allInnerTexts()).join("\n");
}

/** Runs a cell until it prints `expected`: changes of the page reach Python a little later. */
async function eventually(number: number, expected: RegExp): Promise<void> {
  let printed = "";
  for (let attempt = 0; attempt < 40; attempt++) {
    printed = await run(number);
    if (expected.test(printed)) return;
    await page.waitForTimeout(250);
  }
  expect(printed).toMatch(expected);
}

describe.runIf(address !== undefined)("the widget", () => {
  it("shows a picture of the data", async () => {
    await page.goto(address ?? "");
    await cell(0).waitFor({ timeout: START_MILLIS });
    // A cell that is run before the kernel is connected is never run.
    await page.locator(".jp-StatusBar-TextItem", { hasText: "| Idle" }).waitFor({ timeout: START_MILLIS });
    await run(0);
    const frame = await page.waitForSelector(".corridor-viewer iframe", { timeout: CELL_MILLIS });
    const content = await frame.contentFrame();
    if (!content) throw new Error("expected the viewer's frame");
    viewer = content;
    await complete(viewer);
    expect(visibleShare(await thumbnail(viewer))).toBeGreaterThan(0.05);
    await screenshot(page, "notebook-1");
  }, 240_000);

  it("shows another time step that Python sets", async () => {
    const before = await thumbnail(viewer);
    await run(1);
    await viewer
      .waitForFunction(
        () => document.querySelector<HTMLElement>("#fidelity")?.dataset.state !== "complete",
        undefined,
        { timeout: 2000 },
      )
      .catch(() => undefined);
    await expect
      .poll(async () => difference(before, await thumbnail(viewer)), { timeout: CELL_MILLIS })
      .toBeGreaterThan(CHANGED);
    await complete(viewer);
    await screenshot(page, "notebook-2-time");
  });

  it("tells Python of the camera and of clicks", async () => {
    const place = await viewer.locator("#picture").boundingBox();
    if (!place) throw new Error("expected a visible picture");
    const middle = [place.x + place.width / 2, place.y + place.height / 2] as const;
    const before = await run(2);
    await drag(page, middle, [120, 30]);
    await complete(viewer);
    await page.mouse.click(middle[0], middle[1]);
    await eventually(2, /time 2 /);
    await eventually(3, /picked 2 at 0\.5\d* 0\.5/);
    // The element of the array under the click, and its place in space.
    await eventually(3, /element volume True \(-?\d/);
    expect(await run(2)).not.toBe(before);
    await screenshot(page, "notebook-3-camera");
  });
});
