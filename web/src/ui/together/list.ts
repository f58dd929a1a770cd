//! Lists whose rows keep their elements while their items change, so that the focus and unfinished text stay.

export interface ListRow<T, C> {
  readonly element: HTMLElement;
  readonly update: (item: T, context: C) => void;
}

/** Returns a function that shows items in `parent`, one row each, created by `make` when it first appears. */
export function keyedList<T, C>(
  parent: HTMLElement,
  keyOf: (item: T) => string,
  make: (item: T) => ListRow<T, C>,
): (items: readonly T[], context: C) => void {
  const rows = new Map<string, ListRow<T, C>>();
  return (items, context) => {
    const keys = new Set(items.map(keyOf));
    for (const [key, row] of rows) {
      if (keys.has(key)) continue;
      row.element.remove();
      rows.delete(key);
    }
    items.forEach((item, at) => {
      const key = keyOf(item);
      const row = rows.get(key) ?? make(item);
      rows.set(key, row);
      row.update(item, context);
      // Moving an element takes its focus away.
      if (parent.children[at] !== row.element) parent.insertBefore(row.element, parent.children[at] ?? null);
    });
  };
}
