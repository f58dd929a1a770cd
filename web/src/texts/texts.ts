//! Texts of the page, in English: all that a person reads or hears there, except what is listed in `texts.test.ts`, and those of `index.html`,
//! which are shown while there is no script. Another language is another value of this type.

import { chrome } from "./chrome.ts";
import { connectionTexts } from "./network.ts";
import { controls } from "./controls.ts";
import { controllerTexts } from "./controller.ts";
import { keyCaps, keyTexts } from "./keys.ts";
import { notices } from "./notices.ts";
import { openTexts } from "./open.ts";
import { panels } from "./panels.ts";
import { placeTexts } from "./places.ts";
import { saveTexts } from "./save.ts";
import { togetherTexts } from "./together.ts";
import { transferTexts } from "./transfer.ts";
import { valueTexts } from "./values.ts";

const en = {
  ...chrome,
  ...connectionTexts,
  ...controls,
  ...panels,
  ...placeTexts,
  ...saveTexts,
  ...togetherTexts,
  ...transferTexts,
  ...valueTexts,
  keys: keyTexts,
  keyCaps,
  notices,
  open: openTexts,
  controller: controllerTexts,
};

/** Texts of the page by area; texts with variable parts are functions. */
export type Texts = typeof en;

export const texts: Texts = en;
