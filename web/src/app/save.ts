//! Files that the browser downloads: pictures and their names.

import type { State } from "./state.ts";

export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => {
    URL.revokeObjectURL(link.href);
  }, 10_000);
}

/** Returns a file name made of data set, array and time. */
export function fileNameFor(state: State): string {
  const parts = [state.dataset?.name ?? "corridor", state.array?.name ?? "", `t${state.view.time}`];
  const legal = parts.map((part) => part.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^-+|-+$/g, ""));
  return `${legal.filter((part) => part !== "").join("_")}.png`;
}
