//! Plots of lines: exact values, charts by unit, zoom to single values, the value at the pointer, CSV.

import { readFileSync } from "node:fs";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

import { launch, open, screenshot } from "./helpers.ts";

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

async function csv(): Promise<string[][]> {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save CSV" }).click();
  const text = readFileSync(await (await download).path(), "utf8");
  return text
    .trim()
    .split("\n")
    .map((row) => row.split(","));
}

const isDrawn = () =>
  page.waitForFunction(() => (document.querySelector(".chart-lines path")?.getAttribute("d") ?? "") !== "");

it("a line opens as a plot of its values", async () => {
  await isDrawn();
  expect(await page.locator(".chart").count()).toBe(1);
  const rows = await csv();
  // 20,000 values share the columns of pixels: extremes of each.
  expect(rows[0]?.slice(-2)).toEqual(["level [m] least", "level [m] largest"]);
  const numbers = rows.slice(1).map((row) => row.slice(-2).map(Number));
  // The only spike of the file is in the plot, however many values share a column.
  expect(Math.max(...numbers.map(([, high]) => high ?? 0))).toBe(50);
  await screenshot(page, "plot-whole");
});

it("shows each value after zooming, and its date at the pointer", async () => {
  const chart = page.locator(".chart").first();
  await chart.focus();
  for (let i = 0; i < 14; i += 1) await page.keyboard.press("+");
  await page.waitForTimeout(1500);
  const rows = await csv();
  expect(rows[0]?.at(-1)).toBe("level [m]");
  for (const row of rows.slice(1)) {
    const index = Number(row[0]);
    const expected = index === 12_345 ? 50 : (index % 1000) / 32;
    expect(Number(row.at(-1))).toBe(expected);
  }
  const box = await chart.boundingBox();
  if (!box) throw new Error("expected the chart");
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForFunction(() =>
    /\d{4}-\d\d-\d\d/.test(document.querySelector(".plot-place")?.textContent ?? ""),
  );
  await screenshot(page, "plot-zoomed");
  await page.getByRole("button", { name: "Whole axis" }).click();
});

it("has a chart for each unit", async () => {
  await page.getByLabel("heat", { exact: true }).check();
  await page.waitForFunction(() => document.querySelectorAll(".chart-lines path").length === 2);
  expect(await page.locator(".chart").count()).toBe(2);
  await page.getByLabel("tide", { exact: true }).check();
  await page.waitForFunction(() => document.querySelectorAll(".chart-lines path").length === 3);
  expect(await page.locator(".chart").count()).toBe(2);
  await screenshot(page, "plot-units");
  expect(errors).toEqual([]);
});
