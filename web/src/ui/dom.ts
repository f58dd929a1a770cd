//! Helpers that create elements. Text is always inserted as text, never as markup.

type Attributes = Readonly<Record<string, string | number | boolean>>;
type Child = Node | string;

/** An element with attributes (`true`: present without a value; `false`: absent) and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** Creates an SVG element, as `el` creates one of HTML. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

let lastId = 0;

/** Returns an id that no other element of the page has. */
export function uniqueId(name: string): string {
  lastId += 1;
  return `${name}-${lastId}`;
}

/** Sets text only if it changed, which saves layout and announcements of screen readers. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** SVG paths on a 20 by 20 grid. */
const ICONS = {
  reset: "M4 10a6 6 0 1 0 2-4.5M4 3.5V7h3.5",
  camera: "M3 7h3l1.5-2h5L14 7h3v9H3zM10 13.6a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8z",
  link: "M8.5 11.5l3-3M7 9L5.2 10.8a2.8 2.8 0 0 0 4 4L11 13M9 7l1.8-1.8a2.8 2.8 0 0 1 4 4L13 11",
  panel: "M3.5 6h7M14.5 6h2M3.5 14h2M9.5 14h7M12.5 4v4M7.5 12v4",
  help: "M7.6 7.6a2.4 2.4 0 1 1 3.4 2.2c-.7.3-1 .8-1 1.6v.3M10 14.6v.2",
  box: "M10 3l6 3.4v7.2L10 17l-6-3.4V6.4zM4 6.4l6 3.4 6-3.4M10 9.8V17",
  play: "M6.5 4.5l9 5.5-9 5.5z",
  pause: "M7 5v10M13 5v10",
  people:
    "M7.5 9.5a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM2.5 16c.4-3 2.3-4.5 5-4.5s4.6 1.5 5 4.5M13 4.2a2.6 2.6 0 0 1 0 5M14.6 11.8c1.7.6 2.7 2 2.9 4.2",
  undo: "M7 5L3.5 8.5 7 12M4 8.5h7.5a4 4 0 0 1 0 8H9",
  redo: "M13 5l3.5 3.5L13 12M16 8.5H8.5a4 4 0 0 0 0 8H11",
  display: "M3 4.5h14v9H3zM7.5 16.5h5M10 13.5v3",
  open: "M3 15.5v-11h5l1.5 2H17v9z",
  fullscreen: "M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  close: "M5.5 5.5l9 9M14.5 5.5l-9 9",
  eye: "M2.5 10S5.5 5 10 5s7.5 5 7.5 5-3 5-7.5 5-7.5-5-7.5-5zM10 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4z",
  hidden: "M2.5 10S5.5 5 10 5s7.5 5 7.5 5-3 5-7.5 5-7.5-5-7.5-5zM4 16L16 4",
  up: "M10 15.5v-11M5.5 9L10 4.5 14.5 9",
  down: "M10 4.5v11M5.5 11L10 15.5l4.5-4.5",
} as const;

export type IconName = keyof typeof ICONS;

export function icon(name: IconName): SVGSVGElement {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: ICONS[name] }),
  );
}

export function setIcon(button: Element, name: IconName): void {
  button.querySelector(".icon path")?.setAttribute("d", ICONS[name]);
}

/** A button that shows only an icon; `label` is its accessible name and, with the key, its tooltip. */
export function iconButton(name: IconName, label: string, key: string, run: () => void): HTMLButtonElement {
  const hint = key === "" ? label : `${label} (${key})`;
  const button = el(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: hint },
    icon(name),
  );
  button.addEventListener("click", run);
  return button;
}

export function textButton(label: string, run: () => void, className = "text-button"): HTMLButtonElement {
  const button = el("button", { type: "button", class: className }, label);
  button.addEventListener("click", run);
  return button;
}

/** A checkbox with its label. */
export function checkbox(
  label: string,
  toggle: (isOn: boolean) => void,
): { element: HTMLElement; set: (isOn: boolean) => void } {
  const input = el("input", { type: "checkbox" });
  input.addEventListener("change", () => {
    toggle(input.checked);
  });
  const set = (isOn: boolean) => {
    input.checked = isOn;
  };
  return { element: el("label", { class: "check" }, input, label), set };
}

/** Replaces the options of a select only when they changed, so that an open list stays open. */
export function setOptions(
  select: HTMLSelectElement,
  options: readonly { readonly value: string; readonly label: string; readonly isDisabled?: boolean }[],
  value: string,
): void {
  const key = JSON.stringify(options);
  if (select.dataset.options !== key) {
    select.dataset.options = key;
    select.replaceChildren(
      ...options.map((o) => el("option", { value: o.value, disabled: o.isDisabled === true }, o.label)),
    );
  }
  if (select.value !== value) select.value = value;
}
