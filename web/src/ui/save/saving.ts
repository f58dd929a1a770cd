//! A picture or film that the node makes: its progress, and its bytes, which become a file.

import { texts } from "../../texts/texts.ts";
import type { Calls } from "../../app/calls.ts";
import { isCount, isObject, textOr, type Json, type JsonObject } from "../../json.ts";

/** Largest file that is collected, bytes: the largest picture without compression, with its alpha. */
export const MAX_FILE_BYTES = 16_384 * 16_384 * 4 + 64 * 1024 * 1024;

export interface SavingReceiver {
  /** `share` is null while it is not known. */
  progress(text: string, share: number | null): void;
  /** The file, and what it shows. */
  saved(file: Blob, text: string): void;
  /** `reason` is what went wrong, for users. */
  failed(reason: string): void;
}

/** Starts making a file; returns a function that cancels it, after which nothing more is reported. */
export function startSaving(
  calls: Calls,
  name: "still" | "film",
  parameters: JsonObject,
  type: string,
  receiver: SavingReceiver,
): () => void {
  // Blobs, because the browser may move them out of memory.
  const parts: Blob[] = [];
  let bytes = 0;
  let result: JsonObject | null = null;
  let problem: string | null = null;
  let isOver = false;
  const end = (reason: string | null) => {
    if (isOver) return;
    isOver = true;
    if (reason !== null) receiver.failed(reason);
    else if (result?.bytes !== bytes) receiver.failed(texts.saving.partsMissing);
    else receiver.saved(new Blob(parts, { type }), textOr(result.text, ""));
  };
  const cancel = calls.call(name, parameters, {
    item: (item, bulk) => {
      if (!isObject(item) || isOver) return;
      if (isObject(item.progress)) receiver.progress(...progressOf(item.progress));
      if (isObject(item.piece)) {
        problem ??= item.piece.offset === bytes ? null : texts.saving.partsMissing;
        bytes += bulk.length;
        if (bytes > MAX_FILE_BYTES) problem ??= texts.saving.tooLarge;
        if (problem === null) parts.push(new Blob([bulk]));
        else {
          end(problem);
          cancel();
        }
      }
      if (isObject(item.result)) result = item.result;
    },
    ended: (reason) => {
      end(reason ?? problem);
    },
  });
  return () => {
    isOver = true;
    cancel();
  };
}

/** Returns progress as text and as a share. */
export function progressOf(progress: JsonObject): [text: string, share: number | null] {
  const done = countOr(progress.done);
  const total = countOr(progress.total);
  const share = total > 0 ? Math.min(1, done / total) : null;
  const percent = share === null ? null : Math.floor(share * 100);
  switch (progress.what) {
    case "waiting":
      return [texts.saving.waiting, null];
    case "blocks":
      return [texts.saving.reading(percent), share];
    case "rows":
      return [texts.saving.drawing(percent), share];
    case "pictures":
      return [texts.saving.drawingPicture(Math.min(done + 1, total), total), share];
    default:
      return [texts.saving.working(percent), share];
  }
}

function countOr(value: Json | undefined): number {
  return isCount(value) ? value : 0;
}
