//! Storage of the token: it comes in the link's fragment, moves into this tab's session storage and leaves the
//! address bar, so that a copied address or a screenshot does not give access away. A reload finds it again.

export interface KeyValueStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** One token per page address: several nodes may be reached through one proxy. */
const keyFor = (path: string) => `corridor-token:${path}`;

export function storeToken(store: KeyValueStore, path: string, token: string): void {
  try {
    store.setItem(keyFor(path), token);
  } catch {
    // Storage may be switched off; then the token lives as long as the page.
  }
}

export function storedToken(store: KeyValueStore, path: string): string {
  try {
    return store.getItem(keyFor(path)) ?? "";
  } catch {
    return "";
  }
}
