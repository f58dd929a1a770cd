//! Texts of the page, in English. Another language is another value of this type. Reasons why an input is refused still stand beside the code
//! that refuses it, in `dataset/position.ts`, `layout/place.ts` and `ui`.

import { chrome } from "./chrome.ts";
import { controls } from "./controls.ts";
import { controllerTexts } from "./controller.ts";
import { keyTexts } from "./keys.ts";
import { notices } from "./notices.ts";
import { openTexts } from "./open.ts";
import { panels } from "./panels.ts";

const en = {
  ...chrome,
  ...panels,
  ...controls,
  keys: keyTexts,
  notices,
  open: openTexts,
  controller: controllerTexts,
};

/** Texts of the page by area; texts with variable parts are functions. */
export type Texts = typeof en;

export const texts: Texts = en;
