//! Files that are dropped on the page: copied to the node, if that runs on this machine, with progress.

import { formatBytes } from "../../dataset/labels.ts";
import { texts } from "../../texts/texts.ts";

/** Maximum number of files of one drop; those of a data set with headers of their own are fewer. */
export const MAX_DROPPED_FILES = 256;
/** Number of files of a drop that are tried until one can be opened. */
export const MAX_TRIED_FILES = 8;

/** Returns a message if these files cannot be dropped, otherwise null. */
export function dropProblem(files: readonly { readonly size: number }[], maxBytes: number): string | null {
  const words = texts.open;
  if (maxBytes === 0) return words.dropElsewhere;
  if (files.length === 0) return words.dropFolder;
  if (files.length > MAX_DROPPED_FILES) return words.dropTooMany(MAX_DROPPED_FILES);
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  return bytes > maxBytes ? words.dropTooLarge(formatBytes(maxBytes)) : null;
}

/** Returns a name for the folder of one drop. */
export function batchName(random: Crypto = crypto): string {
  return Array.from(random.getRandomValues(new Uint8Array(8)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/** Returns the address to which a file is sent, relative to the page. */
export function uploadAddress(page: string, batch: string, name: string): string {
  const url = new URL(`upload/${batch}/${encodeURIComponent(name)}`, page);
  url.hash = "";
  url.search = "";
  return url.href;
}

export interface Upload {
  readonly address: string;
  readonly token: string;
  readonly file: File;
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

/** Sends a file; returns its path on the node. Throws an `Error` with the node's reason. */
export function upload({ address, token, file, onProgress, signal }: Upload): Promise<string> {
  return new Promise((resolve, reject) => {
    // `fetch` reports no progress of what it sends.
    const request = new XMLHttpRequest();
    request.open("PUT", address);
    if (token !== "") request.setRequestHeader("authorization", `Bearer ${token}`);
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      onProgress(total > 0 ? loaded / total : 0);
    });
    request.addEventListener("load", () => {
      const text = request.responseText.trim();
      if (request.status === 200) resolve(text);
      else reject(new Error(text.replace(/^refused: /, "")));
    });
    request.addEventListener("error", () => {
      reject(new Error(texts.open.uploadBroke));
    });
    request.addEventListener("abort", () => {
      reject(new Error(texts.open.uploadCancelled));
    });
    signal.addEventListener("abort", () => {
      request.abort();
    });
    request.send(file);
  });
}
