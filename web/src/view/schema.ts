//! The view: what is looked at and how. Schema 1, the same value in a link's fragment, in the session and in
//! `corridor render`. Its fields are described in `fields.ts`; `parse.ts` reads a view, `fragment.ts` puts it into a link.

import type { Json } from "../json.ts";
import { DEFAULTS, type Mode, type ViewFields } from "./fields.ts";

export * from "./fields.ts";

export interface View extends ViewFields {
  /** Fields of a newer schema: kept, passed on, not understood. */
  readonly other: Readonly<Record<string, Json>>;
}

export type ViewPatch = Partial<View>;

/** Modes that show values, which have their own colors and no others. */
export const EXTREME_MODES: readonly Mode[] = ["maximum", "minimum"];
/** Distance of the eyes, as a share of that to what they look at, where somebody asks for a pair. */
export const DEFAULT_PARALLAX = 1 / 30;

export const EMPTY_VIEW: View = { ...DEFAULTS, other: {} };
