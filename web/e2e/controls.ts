//! Controls of the page, for the test that operates each of them. `install` runs in the page, where the test calls its functions: one
//! call does the work of several, because each waits for its turn on a busy machine.

export type How = "press" | "choose" | "tick" | "pick" | "slide" | "color" | "type" | "nudge";

export interface Control {
  /** Selector of the element. */
  readonly at: string;
  /** Places in which it lies and label, without numbers: the same after the page has made the element anew. */
  readonly name: string;
  /** Its number among those of the same name. */
  readonly number: number;
  readonly how: How;
  readonly isEnabled: boolean;
  /** It shows other controls in the place of some. */
  readonly isTab: boolean;
}

/** The page after an action. */
export interface Look {
  /** The controls that can be seen: of the topmost dialog, else of the page. */
  readonly controls: readonly Control[];
  /** Texts of errors that the page shows. */
  readonly bad: readonly string[];
  /** Changes of the page since the last look. */
  readonly changes: number;
  readonly dialogs: number;
}

/** A control before or after it is operated. */
export interface Facts {
  /** Place to press, in the page. */
  readonly x: number;
  readonly y: number;
  /** What lies over that place; empty for nothing. */
  readonly cover: string;
  readonly value: string;
  readonly isChecked: boolean;
  /** `aria-expanded`. */
  readonly expanded: string | null;
  /** Selectors of the pressed ones among the buttons beside it. */
  readonly pressed: readonly string[];
  /** Values of the options of a choice. */
  readonly options: readonly string[];
  /** Middle of a slider. */
  readonly middle: string;
  /** Selector of the checked one of its group. */
  readonly checked: string;
  /** A text of a form waits for the button that sends it. */
  readonly isInForm: boolean;
  /** The page need not change: a button that is pressed already, a choice of one, a text of a form. */
  readonly isInert: boolean;
}

export interface Limits {
  /** Options of one choice, and buttons of which one is chosen, that are tried. */
  readonly options: number;
  /** Rows of a list that are tried. */
  readonly alike: number;
}

/** Functions in the page. */
export interface Walker {
  /** Waits until the last action has reached the page's state, and up to `millis` for the page to change. */
  look(millis: number): Promise<Look>;
  /** Brings a control into sight; null if it is gone or disabled. */
  find(at: string): Facts | null;
  /** Sets a value as a person does who chooses or slides. */
  set(at: string, value: string): void;
  focus(at: string): void;
  blur(): void;
}

declare global {
  interface Window {
    walker: Walker;
  }
}

export function install(limits: Limits): void {
  const titles = [":scope > h2", ":scope > .group-head h2", ":scope > .help-head h2"].join(", ");
  const places = "dialog, section, aside, nav, form, article, details, [role=group]";
  const kinds = "button, summary, select, textarea, input, [role=slider]";
  const errors = '.toast.error, .notice[data-tone="bad"]';
  let changes = 0;
  let lastId = 0;
  new MutationObserver((all) => {
    changes += all.length;
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });

  const text = (nodes: Iterable<Node>) => [...nodes].map((node) => node.textContent?.trim()).join(" ");
  const isSeen = (element: Element) => element.checkVisibility({ visibilityProperty: true });
  const placeOf = (element: Element | null): string => {
    const place = element?.closest(places);
    if (!place) return "";
    const title = place.querySelector(titles)?.textContent ?? place.getAttribute("aria-label");
    return [placeOf(place.parentElement), title].filter(Boolean).join(" / ");
  };
  const nameOf = (element: Element): string => {
    const label = element.closest("label")?.childNodes ?? [];
    const words = text([...label].filter((node) => !node.contains(element)));
    return element.getAttribute("aria-label") ?? (words || text([element]));
  };
  const howOf = (element: Element): How => {
    if (element instanceof HTMLSelectElement) return "choose";
    if (element instanceof HTMLTextAreaElement) return "type";
    if (!(element instanceof HTMLInputElement)) return element.matches("[role=slider]") ? "nudge" : "press";
    const { type } = element;
    if (type === "checkbox") return "tick";
    return type === "radio" ? "pick" : type === "range" ? "slide" : type === "color" ? "color" : "type";
  };
  const isEnabled = (element: Element) => !element.matches(":disabled, [readonly]");
  const selectorOf = (element: HTMLElement): string => {
    // Elements keep their number.
    element.dataset.control ??= String(++lastId);
    return `[data-control="${element.dataset.control}"]`;
  };
  const controls = (): Control[] => {
    const counts = new Map<string, number>();
    const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1).get(name) ?? 1;
    const top = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
    return [...top.querySelectorAll<HTMLElement>(kinds)]
      .filter((element) => isSeen(element) && !element.closest(`li:nth-child(n + ${limits.alike + 1})`))
      .filter((element) => !element.matches("[type=radio]") || count("radio") <= limits.options)
      .map((element) => {
        const name = `${placeOf(element)}: ${nameOf(element)}`.replace(/\d+/g, "#");
        const [how, enabled] = [howOf(element), isEnabled(element)];
        const isTab = element.matches("[role=tab]");
        return { at: selectorOf(element), name, number: count(name), how, isEnabled: enabled, isTab };
      });
  };
  /** The element to press: the label of an input that is drawn by its label. */
  const targetOf = (element: HTMLElement): Element => {
    const isDrawn = element.checkVisibility({ opacityProperty: true }) && element.offsetWidth > 4;
    return isDrawn || !(element instanceof HTMLInputElement)
      ? element
      : (element.closest("label") ?? element.labels?.[0] ?? element);
  };
  const coverOf = (target: Element, x: number, y: number): string => {
    const hit = document.elementFromPoint(x, y);
    const isOwn =
      hit && (target.contains(hit) || hit.contains(target) || hit.closest("label")?.contains(target));
    return isOwn ? "" : `${hit?.tagName ?? "nothing"} ${hit?.className.toString() ?? ""}`;
  };
  const element = (at: string) => document.querySelector<HTMLElement>(at);

  window.walker = {
    look: async (millis) => {
      const frame = () => new Promise((shown) => requestAnimationFrame(shown));
      await frame();
      await frame();
      for (const end = performance.now() + millis; changes === 0 && performance.now() < end;) await frame();
      const bad = [...document.querySelectorAll(errors)].filter((one) => one.checkVisibility());
      const [since, { length: dialogs }] = [changes, document.querySelectorAll("dialog[open]")];
      const found = controls();
      // The marks of new controls are no changes by the page.
      await Promise.resolve();
      changes = 0;
      return { controls: found, bad: bad.map((one) => one.textContent), changes: since, dialogs };
    },
    find: (at) => {
      const found = element(at);
      if (!found || !isSeen(found) || !isEnabled(found)) return null;
      const target = targetOf(found);
      const within = target.getBoundingClientRect();
      const isInside = within.top >= 0 && within.bottom <= window.innerHeight;
      const isCovered = () => {
        const { left, top, width, height } = target.getBoundingClientRect();
        return coverOf(target, left + width / 2, top + height / 2);
      };
      if (!isInside || isCovered() !== "") found.scrollIntoView({ block: "center", behavior: "instant" });
      const box = target.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      const input = found instanceof HTMLInputElement ? found : null;
      const { min, max, step, name } = input ?? { min: "0", max: "0", step: "1", name: "" };
      const steps = Math.round((Number(max) - Number(min)) / 2 / Number(step));
      const beside = [...(found.parentElement?.children ?? [])].filter((one) => one.matches("button"));
      const pressed = beside.filter((one) => one.getAttribute("aria-pressed") === "true") as HTMLElement[];
      const group = document.querySelector<HTMLElement>(`input[name="${CSS.escape(name)}"]:checked`);
      const select = found instanceof HTMLSelectElement ? found : null;
      const options = [...(select?.options ?? [])].filter((one) => !one.matches(":disabled, :checked"));
      const isInForm = found.closest("form") !== null;
      const isChosen = found.matches("[aria-pressed=true], [aria-selected=true], [type=radio]:checked");
      return {
        x,
        y,
        cover: coverOf(target, x, y),
        value: (found as HTMLInputElement).value,
        isChecked: input?.checked ?? false,
        expanded: found.getAttribute("aria-expanded"),
        pressed: pressed.map(selectorOf),
        options: options.map((one) => one.value).slice(0, limits.options),
        middle: String(Number(min) + steps * Number(step)),
        checked: group ? selectorOf(group) : "",
        isInForm,
        isInert: isChosen || (select ? options.length === 0 : isInForm && howOf(found) === "type"),
      };
    },
    set: (at, value) => {
      const found = element(at) as HTMLInputElement | null;
      if (!found) return;
      found.focus();
      found.value = value;
      for (const name of ["input", "change"]) found.dispatchEvent(new Event(name, { bubbles: true }));
    },
    focus: (at) => {
      const found = element(at);
      found?.focus();
      if (found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement) found.select();
    },
    blur: () => {
      (document.activeElement as HTMLElement | null)?.blur();
    },
  };
}
