//! Each control of the page once, on data of one kind: whatever a person presses, the page has no error, and the picture comes back.
//! Controls are found in the page; only those that are left alone are listed here.
//!
//! `CORRIDOR_E2E_KIND`: the kind, for names of screenshots; `CORRIDOR_E2E_CONTROLS`: how many controls there are at least;
//! `CORRIDOR_E2E_BEGIN`: `shown` if the first picture need not be complete.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { errors as playwright, type Browser, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

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
/** How long a control may be covered or move. */
const STILL_MILLIS = 5000;
/** After this time no other control is operated: on a busy machine a part of them is. */
const WALK_MILLIS = 40_000;
/** How long a change may take to be on the screen before the next control is operated. */
const SHOWN_MILLIS = 100;

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
/** Controls that hide others, which go first. */
const HIDING = /: (Close|Hide .*|Cancel|Skip|Dismiss|Delete|Remove.*)$/;

interface Control {
  /** Selector of the element. */
  readonly at: string;
  /** Places in which it lies and label, without numbers: the same after the page has made the element anew. */
  readonly name: string;
  /** Its number among those of the same name. */
  readonly number: number;
  readonly how: "press" | "choose" | "tick" | "pick" | "slide" | "color" | "type" | "nudge";
  readonly isEnabled: boolean;
}

let browser: Browser;
let page: Page;
let errors: string[];
let deadline: number;
/** Keys of controls that the walk has come to, and of those that it could operate. */
const seen = new Set<string>();
const operated = new Set<string>();

beforeAll(async () => {
  browser = await launch();
  ({ page, errors } = await open(browser, url));
  page.setDefaultTimeout(STILL_MILLIS);
  // Blurred grounds and transitions would take a busy machine most of the time.
  await page.evaluate(() => {
    const plain = new CSSStyleSheet();
    plain.replaceSync("* { backdrop-filter: none !important; transition: none !important; }");
    document.adoptedStyleSheets.push(plain);
  });
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
});

afterAll(async () => {
  await browser.close();
});

/** Returns the controls that can be seen: of the topmost dialog, else of the page. */
async function shownControls(): Promise<Control[]> {
  return page.evaluate(
    ({ mostOptions, mostAlike }) => {
      const text = (nodes: Iterable<Node>) => [...nodes].map((node) => node.textContent?.trim()).join(" ");
      const titles = [":scope > h2", ":scope > .group-head h2", ":scope > .help-head h2"].join(", ");
      const places = "dialog, section, aside, nav, form, article, details, [role=group]";
      const placeOf = (element: Element | null): string => {
        const place = element?.closest(places);
        if (!place) return "";
        const title = place.querySelector(titles)?.textContent ?? place.getAttribute("aria-label");
        return [placeOf(place.parentElement), title].filter(Boolean).join(" / ");
      };
      const nameOf = (element: Element) => {
        const label = element.closest("label")?.childNodes ?? [];
        const words = text([...label].filter((node) => !node.contains(element)));
        return element.getAttribute("aria-label") ?? (words || text([element]));
      };
      const howOf = (element: Element) => {
        if (element instanceof HTMLSelectElement) return "choose";
        if (element instanceof HTMLTextAreaElement) return "type";
        if (!(element instanceof HTMLInputElement))
          return element.matches("[role=slider]") ? "nudge" : "press";
        const { type } = element;
        if (type === "checkbox") return "tick";
        return type === "radio" ? "pick" : type === "range" ? "slide" : type === "color" ? "color" : "type";
      };
      const counts = new Map<string, number>();
      const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1).get(name) ?? 1;
      const marked = window as unknown as { controls: number };
      // Elements keep their number.
      marked.controls ||= 0;
      const top = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
      return [...top.querySelectorAll<HTMLElement>("button, summary, select, textarea, input, [role=slider]")]
        .filter((element) => element.checkVisibility({ visibilityProperty: true }))
        .filter((element) => element.closest(`li:nth-child(n + ${mostAlike + 1})`) === null)
        .filter((element) => !element.matches("[type=radio]") || count("radio") <= mostOptions)
        .map((element) => {
          const id = element.getAttribute("data-control") ?? String(++marked.controls);
          element.dataset.control = id;
          const name = `${placeOf(element)}: ${nameOf(element)}`.replace(/\d+/g, "#");
          const isEnabled = !element.matches(":disabled, [readonly]");
          return { at: `[data-control="${id}"]`, name, number: count(name), how: howOf(element), isEnabled };
        });
    },
    { mostOptions: MOST_OPTIONS, mostAlike: MOST_ALIKE },
  );
}

function keyOf({ name, number }: Control): string {
  return `${name} ${number}`;
}

/** Waits a moment for the change to be shown, and expects no error on the page, in the console or in a notice. */
async function healthy(what: string): Promise<void> {
  const said = await page.evaluate(async (millis) => {
    const end = performance.now() + millis;
    const frame = () => new Promise((shown) => requestAnimationFrame(shown));
    // After two frames the action has reached the page's state.
    for (let i = 0; i < 2 || (document.body.dataset.current !== "true" && performance.now() < end); i++)
      await frame();
    const bad = document.querySelectorAll('.toast.error, .notice[data-tone="bad"]');
    return [...bad].filter((element) => element.checkVisibility()).map((element) => element.textContent);
  }, SHOWN_MILLIS);
  expect([...errors, ...said], what).toEqual([]);
}

/** Operates each control that can be seen, besides those that could be operated `before`, and all that appears by it. */
async function walk(before: ReadonlyMap<string, boolean> = new Map()): Promise<void> {
  for (;;) {
    const shown = await shownControls();
    const left = shown.filter(
      (one) =>
        one.isEnabled &&
        one.number <= MOST_ALIKE &&
        before.get(keyOf(one)) !== true &&
        !seen.has(keyOf(one)) &&
        !LEFT_ALONE.some(([what]) => what.test(one.name)),
    );
    // What has just opened goes first, because it closes when something else is pressed.
    const rank = (one: Control) => (HIDING.test(one.name) ? 2 : 0) + (before.has(keyOf(one)) ? 1 : 0);
    const [next] = left.sort((a, b) => rank(a) - rank(b));
    if (!next || performance.now() > deadline) return;
    seen.add(keyOf(next));
    await operate(next, new Map(shown.map((one) => [keyOf(one), one.isEnabled]))).catch(
      async (error: unknown) => {
        // A message may disappear at any time, and a list may be made anew.
        const isGone = error instanceof playwright.TimeoutError && !(await page.locator(next.at).isVisible());
        if (!isGone) throw new Error(`${keyOf(next)}: ${String(error)}`, { cause: error });
      },
    );
  }
}

/** Operates one control, then all that appeared by it, and takes its change back where it can. */
async function operate(one: Control, shown: ReadonlyMap<string, boolean>): Promise<void> {
  const { at, how } = one;
  const key = keyOf(one);
  const control = page.locator(`${at}:not(:disabled)`);
  /** Does nothing where the control is gone. */
  const back = async (run: () => Promise<unknown>) => {
    if (await control.isVisible()) await run();
  };
  const act = async (run: () => Promise<unknown>) => {
    if (!(await control.isVisible())) return;
    await run();
    operated.add(key);
    await healthy(key);
    await walk(shown);
  };
  const enter = (text: string) => control.fill(text).then(() => control.blur());
  switch (how) {
    case "press":
      await press(control, act);
      break;
    case "nudge":
      await act(() => control.press("ArrowUp"));
      await back(() => control.press("ArrowDown"));
      break;
    case "tick":
      await act(() => control.click());
      await back(() => control.click());
      break;
    case "pick": {
      const group = page.locator(`input[name="${(await control.getAttribute("name")) ?? ""}"]`);
      const before = await group.and(page.locator(":checked")).first().inputValue();
      await act(() => control.check({ force: true }));
      await back(() => group.and(page.locator(`[value="${before}"]`)).check({ force: true }));
      break;
    }
    case "choose": {
      const before = await control.inputValue();
      const options = await control
        .locator("option:enabled")
        .evaluateAll((all) => all.map((option) => (option as HTMLOptionElement).value));
      for (const option of options.slice(0, MOST_OPTIONS)) await act(() => control.selectOption(option));
      await back(() => control.selectOption(before));
      break;
    }
    case "color":
    case "slide": {
      const before = await control.inputValue();
      const other = how === "color" ? "#3366cc" : await control.evaluate(middle);
      await act(() => enter(other));
      await back(() => enter(before));
      break;
    }
    case "type": {
      const before = await control.inputValue();
      await act(() => enter("1"));
      // A text for others is left for the button that sends it.
      const isForOthers = await control.evaluate((input) => input.closest("form") !== null);
      if (!isForOthers) await back(() => enter(before));
    }
  }
}

/** Returns the middle of a slider. */
function middle(slider: Element): string {
  const { min, max, step } = slider as HTMLInputElement;
  const steps = Math.round((Number(max) - Number(min)) / 2 / Number(step));
  return String(Number(min) + steps * Number(step));
}

/** Presses a button, and takes back what it opened, closed or chose. */
async function press(control: Locator, act: (run: () => Promise<unknown>) => Promise<void>): Promise<void> {
  const dialogs = page.locator("dialog[open]");
  const [open, expanded] = [await dialogs.count(), await control.getAttribute("aria-expanded")];
  const siblings = control.locator("xpath=../button");
  const pressed = (await siblings.count()) > 0 ? await siblings.evaluateAll(pressedOf) : [];
  await act(() => control.click());
  if ((await dialogs.count()) > open) await page.keyboard.press("Escape");
  // A button of a dialog may have closed it.
  await expect.poll(() => dialogs.count()).toBeLessThanOrEqual(open);
  if (!(await control.isVisible())) return;
  if ((await control.getAttribute("aria-expanded")) !== expanded) await act(() => control.click());
  const now = await siblings.evaluateAll(pressedOf);
  // Of several that exclude one another, the one before; else the button itself.
  const other = pressed.find((at) => !now.includes(at)) ?? now.find((at) => !pressed.includes(at));
  if (other !== undefined) await act(() => page.locator(other).click());
}

/** Returns the pressed ones of buttons. */
function pressedOf(buttons: readonly Element[]): string[] {
  const pressed = buttons.filter((button) => button.getAttribute("aria-pressed") === "true");
  return pressed.map((button) => `[data-control="${button.getAttribute("data-control") ?? ""}"]`);
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
  await walk();
  await screenshot(page, `${kind}-walked`);
  const folder = process.env.CORRIDOR_E2E_OUT;
  if (folder !== undefined) writeFileSync(join(folder, "controls.txt"), [...operated].join("\n"));
  expect(operated.size, [...operated].join("\n")).toBeGreaterThanOrEqual(leastControls);
});

it("the picture comes back", async () => {
  await page.locator('.toolbar [aria-label="Reset the camera"]').click();
  await complete(page);
  await screenshot(page, `${kind}-end`);
  expect(visibleShare(await thumbnail(page))).toBeGreaterThan(NOT_EMPTY);
  await healthy("at the end");
});
