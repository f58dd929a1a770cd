//! Name of the person at this page, kept for later visits, and the secret by which a page that is loaded again is the same
//! participant.

import type { KeyValueStore } from "../token.ts";

const NAME_KEY = "corridor-name";
const resumeKey = (path: string) => `corridor-resume:${path}`;

/** Returns the name; null if the person was never asked. */
export function storedName(store: KeyValueStore): string | null {
  try {
    return store.getItem(NAME_KEY);
  } catch {
    return "";
  }
}

/** Keeps the name; an empty one means that the person does not want to give one. */
export function storeName(store: KeyValueStore, name: string): void {
  try {
    store.setItem(NAME_KEY, name);
  } catch {
    // Storage may be disabled; then the name lasts as long as the page.
  }
}

/**
 * Takes the secret that the page left when it was unloaded. It is kept only in between, because a duplicated tab copies the
 * storage of the first one, and two pages cannot be the same participant.
 */
export function takeResume(store: KeyValueStore & { removeItem(key: string): void }, path: string): string {
  try {
    const secret = store.getItem(resumeKey(path)) ?? "";
    store.removeItem(resumeKey(path));
    return secret;
  } catch {
    return "";
  }
}

export function leaveResume(store: KeyValueStore, path: string, secret: string): void {
  try {
    store.setItem(resumeKey(path), secret);
  } catch {
    // Then the page joins as somebody new.
  }
}

/** Returns one or two initials of a name. */
export function initials(name: string): string {
  const words = name.split(/[\s._-]+/u).filter((word) => word !== "");
  const letters = (words.length > 1 ? [words[0], words.at(-1)] : words).map(
    (word) => Array.from(word ?? "")[0] ?? "",
  );
  return letters.join("").toUpperCase() || "?";
}
