//! Each control of the page once, on data of one kind: whatever a person presses, the page answers, has no error, and the picture comes
//! back. Controls are found in the page; only those that are left alone are listed here.
//!
//! `CORRIDOR_E2E_KIND`: the kind, for names of screenshots; `CORRIDOR_E2E_CONTROLS`: how many controls there are at least;
//! `CORRIDOR_E2E_BEGIN`: `shown` if the first picture need not be complete.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

import { install, type Control, type Facts, type How, type Look } from "./controls.ts";
import { complete, launch, open, screenshot, thumbnail, visibleShare } from "./helpers.ts";

const url = inject("baseUrl");
const kind = process.env.CORRIDOR_E2E_KIND ?? "data";
const leastControls = Number(process.env.CORRIDOR_E2E_CONTROLS ?? 1);
/** Options of one choice that are tried. */
const MOST_OPTIONS = 6;
/** Rows of a list, and controls whose names differ by a number only, such as points of the opacity curve, that are tried. */
const MOST_ALIKE = 2;
/** Share of the picture that shows data. */
const NOT_EMPTY = 0.01;
/** How long a control may be covered, as by a message. */
const COVERED_MILLIS = 10_000;
/** After this time no other control is operated, and the test fails; on an idle machine all take less than a minute. */
const WALK_MILLIS = 200_000;

/** Controls that are left alone, by place and name, and why. */
const LEFT_ALONE: readonly (readonly [control: RegExp, reason: string])[] = [
  [/Opacity: Save$/, "downloads the transfer function"],
  [/Opacity: Load$/, "waits for the system's dialog for files"],
  [/^Save: Save( what is shown now)?$/, "downloads a picture or film"],
  [/: Save CSV$/, "downloads values"],
  [/: Save journey$/, "downloads bookmarks"],
  [/: Save as (JSON|Markdown)$/, "downloads notes"],
  [
    /^Open other data.*: (?!Close)/,
    "leaves the page for other data, or waits for the system's dialog for files",
  ],
  [/: Connect a #-D mouse…$/, "waits for the browser's dialog for devices"],
  [/: Role of /, "takes the right to change the session from this page"],
];
/** Ways to operate a control by a press on its place. */
const PRESSED: ReadonlySet<How> = new Set(["press", "tick", "pick"]);
/** How long the page may take to answer, where that comes from the node. */
const ANSWER_MILLIS = 3000;
/** Controls after whose answer, which comes from the node, others can be operated. */
const LATE = /: Undo the last change of your view$/;
/** Controls that disappear by themselves. */
const FLEETING = /: Dismiss \d$/;
/** How often a button is pressed to operate all controls that appear by it. */
const MOST_PRESSES = 3;
/** Controls that may disappear, by what the walk does elsewhere, before it comes to them. */
const MOST_LEFT = 5;
/** The choice of other data, of which some layers are left out, goes last. */
const LAST = /^: Array$/;
/** Controls that hide others, which go after these. */
const HIDING = /: (Close|Hide .*|Cancel|Skip|Dismiss|Delete|Remove.*)$/;

let browser: Browser;
let page: Page;
let errors: string[];
let deadline: number;
/** Keys of controls that could be seen, of those that were operated, and of those after which the page changed. */
const offered = new Set<string>();
const operated = new Set<string>();
const answered = new Set<string>();

beforeAll(async () => {
  browser = await launch();
  ({ page, errors } = await open(browser, url));
  // Blurred grounds and transitions would take a busy machine most of the time.
  await page.evaluate(() => {
    const plain = new CSSStyleSheet();
    plain.replaceSync("* { backdrop-filter: none !important; transition: none !important; }");
    document.adoptedStyleSheets.push(plain);
  });
  await page.evaluate(install, { options: MOST_OPTIONS, alike: MOST_ALIKE });
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
});

afterAll(async () => {
  await browser.close();
});

/**
 * Returns the page once the last action has reached its state; expects no error on it, in the console or in a notice. `millis`: how long to
 * wait for a change of the page.
 */
async function look(what: string, millis = 0): Promise<Look> {
  const now = await page.evaluate((most) => window.walker.look(most), millis);
  expect([...errors, ...now.bad], what).toEqual([]);
  for (const one of now.controls.filter(isOffered)) offered.add(keyOf(one));
  return now;
}

/** Brings a control into sight, and waits while something lies over one that is pressed; null if it is gone. */
async function find(at: string, isPressed = true): Promise<Facts | null> {
  const end = performance.now() + COVERED_MILLIS;
  for (;;) {
    const facts = await page.evaluate((selector) => window.walker.find(selector), at);
    if (!isPressed || !facts?.cover) return facts;
    if (performance.now() > end) throw new Error(`covered by ${facts.cover}`);
    await page.waitForTimeout(100);
  }
}

function keyOf({ name, number }: Control): string {
  return `${name} ${number}`;
}

/** True for a control that is to be operated: of many alike the first ones. */
function isOffered(one: Control): boolean {
  return one.isEnabled && one.number <= MOST_ALIKE && !LEFT_ALONE.some(([what]) => what.test(one.name));
}

/** Operates each control that can be seen, besides those that could be operated `before`, and all that appears by it. */
async function walk(first: Look, before: ReadonlyMap<string, boolean> = new Map()): Promise<void> {
  const missed = new Set<string>();
  const gone = new Set<string>();
  const isLeft = (one: Control) =>
    isOffered(one) && before.get(keyOf(one)) !== true && !operated.has(keyOf(one)) && !gone.has(keyOf(one));
  // What has just opened goes first, because it closes when something else is pressed; what shows other controls instead of these, later.
  const rank = (one: Control) =>
    (LAST.test(one.name) ? 8 : 0) +
    (HIDING.test(one.name) ? 4 : 0) +
    (before.has(keyOf(one)) ? 2 : 0) +
    (one.isTab ? 1 : 0);
  for (let now = first; ; now = await look("after all that could be seen")) {
    const left = now.controls.filter(isLeft).sort((a, b) => rank(a) - rank(b));
    if (left.length === 0) return;
    for (const one of left) {
      if (performance.now() > deadline) return;
      // What has appeared meanwhile was operated at once.
      if (!isLeft(one)) continue;
      const isFound = await operate(one, now).catch((error: unknown) => {
        throw new Error(`${keyOf(one)}: ${String(error)}`, { cause: error });
      });
      if (isFound) continue;
      // A message disappears at any time, and a list is made anew: then the others may have other elements, too.
      if (missed.has(keyOf(one))) gone.add(keyOf(one));
      missed.add(keyOf(one));
      break;
    }
  }
}

/** Operates one control, then all that appeared by it, and takes its change back where it can; false if it is gone. */
async function operate(one: Control, before: Look): Promise<boolean> {
  const { at, how } = one;
  const key = keyOf(one);
  const shown = new Map(before.controls.map((control) => [keyOf(control), control.isEnabled]));
  const facts = await find(at, PRESSED.has(how));
  if (!facts) return false;
  operated.add(key);
  const isNew = (other: Control) =>
    isOffered(other) && shown.get(keyOf(other)) !== true && !operated.has(keyOf(other));
  const act = async (run: () => Promise<unknown>) => {
    await run();
    let now = await look(key, facts.isInert || answered.has(key) ? 0 : ANSWER_MILLIS);
    if (facts.isInert || now.changes > 0) answered.add(key);
    const end = performance.now() + ANSWER_MILLIS;
    while (LATE.test(one.name) && !now.controls.some(isNew) && performance.now() < end) now = await look(key);
    await walk(now, shown);
    return now.controls.some(isNew);
  };
  const set = (value: string) =>
    page.evaluate(
      ([selector, text]) => {
        window.walker.set(selector, text);
      },
      [at, value] as const,
    );
  const type = async (text: string) => {
    await page.evaluate((selector) => {
      window.walker.focus(selector);
    }, at);
    await page.keyboard.insertText(text);
    await page.evaluate(() => {
      window.walker.blur();
    });
  };
  const click = async (selector: string) => {
    const place = await find(selector);
    if (place) await page.mouse.click(place.x, place.y);
  };
  switch (how) {
    case "press":
      // What has opened may close before all in it was operated.
      for (let round = 0; round < MOST_PRESSES && (await press(at, before.dialogs, act)); round++);
      break;
    case "nudge":
      await page.evaluate((selector) => {
        window.walker.focus(selector);
      }, at);
      await act(() => page.keyboard.press("ArrowUp"));
      await page.evaluate((selector) => {
        window.walker.focus(selector);
      }, at);
      await page.keyboard.press("ArrowDown");
      break;
    case "tick":
      await act(() => click(at));
      await click(at);
      break;
    case "pick":
      await act(() => click(at));
      if (facts.checked !== "") await click(facts.checked);
      break;
    case "choose":
      for (const option of facts.options.length > 0 ? facts.options : [facts.value])
        await act(() => set(option));
      await set(facts.value);
      break;
    case "color":
    case "slide":
      await act(() => set(how === "color" ? "#3366cc" : facts.middle));
      await set(facts.value);
      break;
    case "type":
      await act(() => type("1"));
      // A text for others is left for the button that sends it.
      if (!facts.isInForm) await type(facts.value);
  }
  return true;
}

/**
 * Presses a button, and takes back what it opened, closed or chose; true if controls that appeared by it were not operated. `act` tells that
 * after an action.
 */
async function press(
  at: string,
  dialogs: number,
  act: (run: () => Promise<unknown>) => Promise<boolean>,
): Promise<boolean> {
  const click = ({ x, y }: Facts) => page.mouse.click(x, y);
  const dialogsNow = () => page.locator("dialog[open]").count();
  const before = await find(at);
  if (!before) return false;
  const isMore = await act(() => click(before));
  if ((await dialogsNow()) > dialogs) await page.keyboard.press("Escape");
  // A button of a dialog may have closed it.
  await expect.poll(dialogsNow).toBeLessThanOrEqual(dialogs);
  const now = await find(at);
  if (!now) return false;
  if (now.expanded !== before.expanded) await act(() => click(now));
  // Of several that exclude one another, the one before; else the button itself.
  const other =
    before.pressed.find((one) => !now.pressed.includes(one)) ??
    now.pressed.find((one) => !before.pressed.includes(one));
  const pressed = other === undefined ? null : await find(other);
  if (pressed) await act(() => click(pressed));
  return isMore;
}

it("the first picture shows something", async () => {
  if (process.env.CORRIDOR_E2E_BEGIN === "shown") await page.waitForSelector('body[data-current="true"]');
  else await complete(page);
  await expect
    .poll(async () => visibleShare(await thumbnail(page)), { timeout: 30_000 })
    .toBeGreaterThan(NOT_EMPTY);
  await screenshot(page, `${kind}-begin`);
});

it("each control of the page can be operated", async () => {
  deadline = performance.now() + WALK_MILLIS;
  await walk(await look("at the beginning"));
  await screenshot(page, `${kind}-walked`);
  const not = (keys: ReadonlySet<string>, others: ReadonlySet<string>) =>
    [...keys].filter((key) => !others.has(key) && !FLEETING.test(key));
  const [left, silent] = [not(offered, operated), not(operated, answered)];
  const folder = process.env.CORRIDOR_E2E_OUT;
  if (folder !== undefined) {
    writeFileSync(join(folder, "controls.txt"), [...operated].join("\n"));
    writeFileSync(join(folder, "controls-left.txt"), left.join("\n"));
  }
  expect(performance.now(), "end of the walk").toBeLessThan(deadline);
  expect(silent, "controls to which the page did not answer").toEqual([]);
  expect(left.length, left.join("\n")).toBeLessThanOrEqual(MOST_LEFT);
  expect(operated.size, [...operated].join("\n")).toBeGreaterThanOrEqual(leastControls);
});

it("the picture comes back", async () => {
  const whole = page.getByRole("button", { name: "Whole volume" });
  if ((await whole.isVisible()) && (await whole.isEnabled())) await whole.click();
  await page.locator('.toolbar [aria-label="Reset the camera"]').click();
  await complete(page);
  await screenshot(page, `${kind}-end`);
  expect(visibleShare(await thumbnail(page))).toBeGreaterThan(NOT_EMPTY);
  await look("at the end");
});
