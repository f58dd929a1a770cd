//! Colors of the page, light or dark: as the system has them, or as the person chose. Independent of the background of the picture, which
//! is a field of the view.

import type { Vec3 } from "../view/schema.ts";
import { pageStorage, type PageStorage } from "./storage.ts";

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];

const KEY = "corridor-theme";

/** Backgrounds of the picture that the page offers, in the order of the key; sRGB. */
export const BACKGROUNDS = [
  { name: "dark", color: [13, 14, 18] },
  { name: "black", color: [0, 0, 0] },
  { name: "gray", color: [128, 130, 134] },
  { name: "light", color: [236, 238, 241] },
  { name: "white", color: [255, 255, 255] },
] as const satisfies readonly { readonly name: string; readonly color: Vec3 }[];

export type BackgroundName = (typeof BACKGROUNDS)[number]["name"];
/** Backgrounds that the key runs through. */
const CYCLED: readonly BackgroundName[] = ["dark", "light", "white"];

/** Returns the name of a background; null for a color that the page does not offer. */
export function backgroundName(color: Vec3): BackgroundName | null {
  return BACKGROUNDS.find((one) => one.color.every((part, i) => part === color[i]))?.name ?? null;
}

/** Returns the background after the present one. */
export function nextBackground(color: Vec3): Vec3 {
  const at = CYCLED.findIndex((name) => name === backgroundName(color));
  const next = CYCLED[(at + 1) % CYCLED.length];
  return BACKGROUNDS.find((one) => one.name === next)?.color ?? BACKGROUNDS[0].color;
}

export function storedTheme(storage: PageStorage = pageStorage("localStorage")): Theme {
  const found = storage.getItem(KEY);
  return THEMES.find((theme) => theme === found) ?? "system";
}

export function storeTheme(theme: Theme, storage: PageStorage = pageStorage("localStorage")): void {
  try {
    storage.setItem(KEY, theme);
  } catch {
    // Storage may be full or disabled; then the choice lasts as long as the page.
  }
}

/** Returns whether a theme means dark colors now. */
export function isDark(theme: Theme, systemIsDark: boolean): boolean {
  return theme === "system" ? systemIsDark : theme === "dark";
}

/** Keeps the page in the colors of the theme, and follows the system. */
export class PageTheme {
  readonly #system = window.matchMedia("(prefers-color-scheme: dark)");
  #theme = storedTheme();

  constructor() {
    this.#system.addEventListener("change", () => {
      this.#show();
    });
    this.#show();
  }

  get theme(): Theme {
    return this.#theme;
  }

  set(theme: Theme): void {
    this.#theme = theme;
    storeTheme(theme);
    this.#show();
  }

  #show(): void {
    const name = isDark(this.#theme, this.#system.matches) ? "dark" : "light";
    document.documentElement.dataset.theme = name;
    const color = getComputedStyle(document.documentElement).getPropertyValue("--ground").trim();
    document.querySelector('meta[name="theme-color"]')?.setAttribute("content", color);
  }
}
