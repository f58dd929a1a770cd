//! The view: the data that are drawn, and how. Schema 1, the same value in a link's fragment, in the session and in
//! `corridor render`. Its fields are described in `fields.ts`; `parse.ts` reads a view, `fragment.ts` puts it into a link.

import type { Json } from "../json.ts";
import { DEFAULTS, type Mode, type ViewFields } from "./fields.ts";

export * from "./fields.ts";

export interface View extends ViewFields {
  /** Fields of a newer schema, which are kept and passed on unchanged. */
  readonly other: Readonly<Record<string, Json>>;
}

export type ViewPatch = Partial<View>;

/** Modes that show values, which have their own colors and no others. */
export const EXTREME_MODES: readonly Mode[] = ["maximum", "minimum"];
/** Default distance of the eyes of a stereo pair, as a fraction of their distance to the camera's target. */
export const DEFAULT_PARALLAX = 1 / 30;

export const EMPTY_VIEW: View = { ...DEFAULTS, other: {} };

/** Returns the view that a link or a bookmark shows: what it leaves out has its default, and the array stays as it is. */
export function wholeView(patch: ViewPatch, array: string): View {
  return { ...EMPTY_VIEW, array, ...patch };
}
