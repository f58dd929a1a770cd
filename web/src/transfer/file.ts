//! Transfer functions as JSON files: what `corridor render --tf` takes, with a member that says what the file is. Pure.

import { texts } from "../texts/texts.ts";
import { isObject, type Json } from "../json.ts";
import { readTransfer } from "../view/parse.ts";
import type { Transfer } from "../view/schema.ts";

/** Member by which a file is recognized. */
const KIND = "corridor-transfer";
/** Size of the largest file that is read, bytes: far more than a transfer function of 256 points. */
export const MAX_FILE_BYTES = 1 << 18;

export function toFile(transfer: Transfer): string {
  return `${JSON.stringify({ kind: KIND, ...transfer }, null, 2)}\n`;
}

/** Name of the file for an array: letters, digits and dots of its name. */
export function fileName(array: string): string {
  const name = array.replace(/[^\p{L}\p{N}.-]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${name === "" ? "transfer" : name.slice(0, 80)}.tf.json`;
}

/** Reads a file, or the member `transfer` of a whole view; throws an `Error` that says what is wrong. */
export function fromFile(text: string): Transfer {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    throw new Error(texts.transferFile.notJson);
  }
  const inner = isObject(value) && isObject(value.transfer) ? value.transfer : value;
  const transfer = readTransfer(inner);
  if (!transfer) {
    throw new Error(texts.transferFile.noTransfer);
  }
  const members = Object.entries(transfer).filter(([name, member]) => name !== "kind" || member !== KIND);
  return Object.fromEntries(members) as unknown as Transfer;
}
