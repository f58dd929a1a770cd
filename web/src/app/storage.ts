//! Storage of the browser for this page. It is missing in the sandboxed frames of notebooks, and may be switched off; then values last
//! as long as the page.

export interface PageStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

const inMemory = { localStorage: memoryStorage(), sessionStorage: memoryStorage() };

export function pageStorage(kind: "localStorage" | "sessionStorage"): PageStorage {
  try {
    return window[kind];
  } catch {
    return inMemory[kind];
  }
}

function memoryStorage(): PageStorage {
  const values = new Map<string, string>();
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}
