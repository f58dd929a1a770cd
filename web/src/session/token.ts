//! Storage of the token: it is moved from the link's fragment to the session storage of the tab, so that a copied
//! address or a screenshot gives no access. A reload finds it again.

export interface KeyValueStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** Key per page path: several nodes may share the host of one proxy. */
const keyFor = (path: string) => `corridor-token:${path}`;

export function storeToken(store: KeyValueStore, path: string, token: string): void {
  try {
    store.setItem(keyFor(path), token);
  } catch {
    // Storage may be disabled; then the token lasts as long as the page.
  }
}

export function storedToken(store: KeyValueStore, path: string): string {
  try {
    return store.getItem(keyFor(path)) ?? "";
  } catch {
    return "";
  }
}
