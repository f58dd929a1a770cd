//! Arrangements of pictures. `CORRIDOR_E2E_LAYOUT` is `map` (an array of one layer and several time steps), `volume`, or `series` (a
//! volume of several time steps).

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { complete, difference, drag, launch, open, screenshot, thumbnail, viewNow } from "./helpers.ts";

const kind = process.env.CORRIDOR_E2E_LAYOUT;
const SIZE = { width: 1360, height: 820 };
let browser: Browser;
let page: Page;
let errors: string[];

beforeAll(async () => {
  if (kind === undefined) return;
  browser = await launch();
  ({ page, errors } = await open(browser, inject("baseUrl"), SIZE));
  await complete(page);
});

afterAll(async () => {
  if (kind === undefined) return;
  expect(errors).toEqual([]);
  await browser.close();
});

const layout = () => page.evaluate(() => document.body.dataset.layout ?? "");
const pane = (name: string) => page.locator(`.pane[data-pane="${name}"]`);
const slicesOf = async (name: string) => (await pane(name).getAttribute("data-slices")) ?? "";

/** Waits until every picture is complete. */
async function allComplete(): Promise<void> {
  await complete(page);
  await page.waitForFunction(
    () =>
      [...document.querySelectorAll<HTMLElement>(".pane[data-pane]")].every(
        (one) => one.hidden || one.dataset.pane === "main" || one.dataset.state === "complete",
      ),
    null,
    { timeout: 90_000 },
  );
}

/** The view in the page's address, which follows the view on the screen. */
async function viewInLink(): Promise<Record<string, unknown>> {
  await page.waitForTimeout(700);
  return page.evaluate(() => {
    const text = /view=([^&]*)/.exec(window.location.hash)?.[1] ?? "";
    return JSON.parse(atob(text.replaceAll("-", "+").replaceAll("_", "/"))) as Record<string, unknown>;
  });
}

/** Share of pixels of a canvas that are not background. */
function covered(name: string): Promise<number> {
  return pane(name)
    .locator("canvas")
    .evaluate((canvas: HTMLCanvasElement) => {
      const small = new OffscreenCanvas(64, 64).getContext("2d");
      if (!small) throw new Error("expected a canvas");
      small.drawImage(canvas, 0, 0, 64, 64);
      const { data } = small.getImageData(0, 0, 64, 64);
      const isSeen = (i: number) => [0, 1, 2].some((c) => Math.abs((data[4 * i + c] ?? 0) - 14) > 8);
      return Array.from({ length: 64 * 64 }, (_, i) => i).filter(isSeen).length / (64 * 64);
    });
}

/** The camera, after the node was told the newest size of the picture. */
async function cameraNow(): Promise<unknown> {
  await page.waitForTimeout(400);
  await complete(page);
  return (await viewNow(page)).camera;
}

describe.runIf(kind !== undefined)("the first camera", () => {
  // A picture that is higher than wide: in all others the height of the volume decides.
  const narrow = () => page.setViewportSize({ ...SIZE, width: 860 });
  const wide = () => page.setViewportSize(SIZE);

  it("is that of a reset, also in a window of another size", async () => {
    const first = await cameraNow();
    await page.keyboard.press("r");
    expect(await cameraNow()).toEqual(first);
    await narrow();
    const other = await cameraNow();
    expect(other).not.toEqual(first);
    await page.keyboard.press("r");
    expect(await cameraNow()).toEqual(other);
    await wide();
    expect(await cameraNow()).toEqual(first);
  });

  it("stays once it was moved", async () => {
    await page.mouse.move(600, 400);
    await page.mouse.wheel(0, -200);
    const moved = await cameraNow();
    await narrow();
    expect(await cameraNow()).toEqual(moved);
    await wide();
    await page.locator("#picture").focus();
    await page.keyboard.press("r");
    await complete(page);
  });
});

describe.runIf(kind === "map")("a map", () => {
  it("opens as an image with parallel rays, and drags move it", async () => {
    expect(await layout()).toBe("image");
    const { camera } = (await viewNow(page)) as { camera: { projection: object; up: number[] } };
    expect(camera.projection).toHaveProperty("orthographic");
    expect(camera.up).toEqual([0, 1, 0]);
    await screenshot(page, "map-1-whole");
    const before = await thumbnail(page);
    await drag(page, [500, 400], [120, 60]);
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeGreaterThan(2.5);
    await page.mouse.dblclick(500, 400);
    await complete(page);
    expect(difference(before, await thumbnail(page))).toBeLessThan(0.5);
  });

  it("shows squares when voxels are large", async () => {
    await page.mouse.move(600, 400);
    for (let notch = 0; notch < 16; notch++) await page.mouse.wheel(0, -100);
    await complete(page);
    expect(await viewInLink()).toMatchObject({ slices: [{ at: 0, nearest: true }], mode: "surfaces" });
    await screenshot(page, "map-2-squares");
    // Neighboring pixels within a voxel have the same color, so most differences from left to right are zero.
    const equal = await page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>("#picture");
      const data = canvas?.getContext("2d")?.getImageData(400, 400, 200, 1).data ?? new Uint8ClampedArray();
      const steps = Array.from({ length: 199 }, (_, i) => i);
      return (
        steps.filter((i) => [0, 1, 2].every((c) => data[4 * i + c] === data[4 * i + 4 + c])).length / 199
      );
    });
    expect(equal).toBeGreaterThan(0.75);
    await page.mouse.dblclick(600, 400);
    await complete(page);
    expect(await viewInLink()).not.toHaveProperty("slices");
  });

  it("is shown at several time steps in a grid with one camera", async () => {
    await page.selectOption("#grid", "2x2");
    await allComplete();
    expect(await page.locator(".pane[data-pane^=cell]").count()).toBe(3);
    const times = await Promise.all([1, 2, 3].map((i) => pane(`cell-${i}`).getAttribute("data-time")));
    expect(times).toEqual(["1", "2", "3"]);
    expect(await covered("cell-2")).toBeGreaterThan(0.3);
    await pane("cell-1").getByLabel("time of this picture").fill("4");
    await allComplete();
    expect(await pane("cell-1").getAttribute("data-time")).toBe("4");
    await screenshot(page, "map-3-grid");
    expect(await viewInLink()).toMatchObject({
      grid: { rows: 2, columns: 2, cells: [{ time: 4 }, { time: 2 }, { time: 3 }] },
    });
    await page.selectOption("#grid", "1x1");
    await complete(page);
  });
});

describe.runIf(kind === "volume")("a volume", () => {
  it("is shown as three planes and a volume", async () => {
    expect(await layout()).toBe("space");
    await page.keyboard.press("m");
    await allComplete();
    expect(await layout()).toBe("planes");
    for (const name of ["plane-z", "plane-y", "plane-x"]) expect(await covered(name)).toBeGreaterThan(0.2);
    await screenshot(page, "volume-1-planes");
  });

  it("moves the other planes with the crosshair, and keeps them in the link", async () => {
    const box = await pane("plane-z").boundingBox();
    if (!box) throw new Error("expected the pane");
    const before = {
      y: await slicesOf("plane-y"),
      x: await slicesOf("plane-x"),
      z: await slicesOf("plane-z"),
    };
    const line = pane("plane-z").locator("line[data-axis=x]").first();
    const at = await line.evaluate((element) => Number(element.getAttribute("x2")));
    // Across the line of the plane across x, which is a vertical line here, away from the other one.
    await drag(page, [box.x + at, box.y + box.height * 0.8], [-60, 0]);
    await allComplete();
    expect(await slicesOf("plane-z")).toBe(before.z);
    expect(await slicesOf("plane-x")).not.toBe(before.x);
    const asked = [await slicesOf("plane-x"), await slicesOf("plane-y"), await slicesOf("plane-z")];
    const { slices } = (await viewInLink()) as { slices: { axis: string; at: number }[] };
    const inLink = Object.fromEntries(slices.map(({ axis, at: index }) => [axis, `${axis}=${index}`]));
    expect(asked).toEqual([inLink.x, inLink.y, inLink.z]);
    await screenshot(page, "volume-2-crosshair");
    await page.reload();
    await allComplete();
    expect([await slicesOf("plane-x"), await slicesOf("plane-y"), await slicesOf("plane-z")]).toEqual(asked);
  });

  it("steps through slices by keys, and enlarges a plane by a double click on its title", async () => {
    const before = await slicesOf("plane-y");
    await pane("plane-y").hover();
    await page.keyboard.press("PageUp");
    await allComplete();
    expect(Number((await slicesOf("plane-y")).slice(2))).toBe(Number(before.slice(2)) + 1);
    await pane("plane-y").locator(".pane-name").dblclick();
    await allComplete();
    expect(await pane("plane-z").isVisible()).toBe(false);
    await screenshot(page, "volume-3-enlarged");
    await pane("plane-y").locator(".pane-name").dblclick();
    await allComplete();
    expect(await pane("plane-z").isVisible()).toBe(true);
  });

  it("is shown as an image of one slice, and as a volume again", async () => {
    await page.keyboard.press("i");
    await complete(page);
    expect(await viewInLink()).toMatchObject({ layout: "image", mode: "surfaces" });
    expect(await covered("main")).toBeGreaterThan(0.2);
    await screenshot(page, "volume-4-image");
    await page.keyboard.press("v");
    await complete(page);
    expect(await viewInLink()).not.toHaveProperty("slices");
    await screenshot(page, "volume-5-space");
  });

  it("is cut by an oblique plane", async () => {
    const before = await thumbnail(page);
    await page.getByLabel("Oblique slice, facing the viewer").check();
    await page.getByLabel("Rendering mode").selectOption("surfaces");
    await complete(page);
    const { slices } = (await viewInLink()) as { slices: { normal: number[] }[] };
    expect(Math.hypot(...(slices[0]?.normal ?? []))).toBeCloseTo(1, 6);
    expect(difference(before, await thumbnail(page))).toBeGreaterThan(2.5);
    expect(await covered("main")).toBeGreaterThan(0.05);
    await screenshot(page, "volume-6-oblique");
  });
});

describe.runIf(kind === "series")("a series of volumes", () => {
  it("is shown at several time steps, with cameras tied and free", async () => {
    await page.selectOption("#grid", "1x2");
    await allComplete();
    const box = await pane("cell-1").boundingBox();
    if (!box) throw new Error("expected the pane");
    const before = await thumbnail(page);
    await drag(page, [box.x + box.width / 2, box.y + box.height / 2], [90, 20]);
    await allComplete();
    const tied = await thumbnail(page);
    expect(difference(before, tied)).toBeGreaterThan(1);
    await page.locator("#tied").click();
    await drag(page, [box.x + box.width / 2, box.y + box.height / 2], [-90, -40]);
    await allComplete();
    expect(difference(tied, await thumbnail(page))).toBeLessThan(0.5);
    await screenshot(page, "series-1-free");
  });
});
