//! Switches of the marks: kept by the browser, and in links as `marks=...` where they differ from the default. Pure, besides `stored` and
//! `store`.

export interface MarkSettings {
  readonly colors: boolean;
  readonly axes: boolean;
  readonly scale: boolean;
  readonly orientation: boolean;
  readonly time: boolean;
  readonly title: boolean;
  /** Whether saved pictures have the marks. */
  readonly saved: boolean;
}

export type MarkName = keyof MarkSettings;

/** Switches with their labels, in the order of the menu. */
export const MARKS: readonly { readonly name: MarkName; readonly label: string; readonly title: string }[] = [
  {
    name: "colors",
    label: texts.marks.colorBar,
    title: texts.marks.colorBarHint,
  },
  { name: "axes", label: texts.marks.axes, title: texts.marks.axesHint },
  {
    name: "scale",
    label: texts.marks.scaleBar,
    title: texts.marks.scaleBarHint,
  },
  {
    name: "orientation",
    label: texts.marks.orientation,
    title: texts.marks.orientationHint,
  },
  { name: "time", label: texts.marks.timeAndPosition, title: texts.marks.timeHint },
  { name: "title", label: texts.marks.title, title: texts.marks.titleHint },
  { name: "saved", label: texts.marks.saved, title: texts.marks.savedHint },
];

/** The page shows time and title in its panels already; saved pictures are the node's own unless the user wants the marks. */
export const DEFAULT_MARKS: MarkSettings = {
  colors: true,
  axes: true,
  scale: true,
  orientation: true,
  time: false,
  title: false,
  saved: false,
};

const KEY = "corridor.marks";

/** Text of a link: the names that are on, or `none`; null for the default. */
export function formatMarks(settings: MarkSettings): string | null {
  const names = MARKS.map(({ name }) => name);
  if (names.every((name) => settings[name] === DEFAULT_MARKS[name])) return null;
  const on = names.filter((name) => settings[name]);
  return on.length === 0 ? "none" : on.join(",");
}

/** Reads the text of a link; null if there is none. Unknown names, of newer pages, are left out. */
export function parseMarks(text: string | null): MarkSettings | null {
  if (text === null) return null;
  const names = new Set(text.split(","));
  const on = (name: MarkName) => names.has(name);
  return {
    colors: on("colors"),
    axes: on("axes"),
    scale: on("scale"),
    orientation: on("orientation"),
    time: on("time"),
    title: on("title"),
    saved: on("saved"),
  };
}

/** The browser's storage; browsers may forbid its use, in which case nothing is kept. */
type MarkStorage = Pick<Storage, "getItem" | "setItem">;

export function storedMarks(storage: MarkStorage): MarkSettings {
  try {
    return parseMarks(storage.getItem(KEY)) ?? DEFAULT_MARKS;
  } catch {
    return DEFAULT_MARKS;
  }
}

export function storeMarks(storage: MarkStorage, settings: MarkSettings): void {
  try {
    const on = MARKS.map(({ name }) => name).filter((name) => settings[name]);
    storage.setItem(KEY, on.length === 0 ? "none" : on.join(","));
  } catch {
    // Not allowed, or full: the setting holds until the page is closed.
  }
}
import { texts } from "../../texts/texts.ts";
