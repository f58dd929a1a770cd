//! Requests of the values of lines: a few at a time, of which only the newest matter.

import type { Calls } from "../../app/calls.ts";
import { isObject, type Json } from "../../json.ts";
import { parseColumns, type PlotColumns } from "./columns.ts";

/** A part of a line, at a time and at indices along other axes. */
export interface LineRequest {
  readonly array: string;
  readonly time: number;
  readonly at: Readonly<Record<string, number>>;
  readonly from: number;
  readonly count: number;
  readonly columns: number;
}

/** Requests under way: other calls of the page have room beside them. */
const AT_ONCE = 4;
/** Most lines whose values are kept. */
const MAX_KEPT = 24;

interface Kept {
  readonly key: string;
  readonly columns: PlotColumns;
}

export class LineRequests {
  readonly #calls: Calls;
  readonly #onChange: () => void;
  /** Newest values of each line. */
  readonly #kept = new Map<string, Kept>();
  readonly #running = new Map<string, { readonly key: string; readonly cancel: () => void }>();
  readonly #failed = new Map<string, { readonly key: string; readonly reason: string }>();
  #wanted: readonly LineRequest[] = [];

  constructor(calls: Calls, onChange: () => void) {
    this.#calls = calls;
    this.#onChange = onChange;
  }

  /** Sets what is wanted; other requests end. */
  want(requests: readonly LineRequest[]): void {
    this.#wanted = requests;
    const keys = new Map(requests.map((request) => [request.array, keyOf(request)]));
    for (const [array, { key, cancel }] of [...this.#running]) if (keys.get(array) !== key) cancel();
    for (const [array, { key }] of this.#failed) if (keys.get(array) !== key) this.#failed.delete(array);
    this.#next();
  }

  /** Forgets all values: they are of other data, or the connection is new. */
  reset(): void {
    this.want([]);
    this.#kept.clear();
    this.#failed.clear();
  }

  /** Newest values of a line, perhaps of another part than the one wanted. */
  columnsOf(array: string): PlotColumns | null {
    return this.#kept.get(array)?.columns ?? null;
  }

  /** Reason why the values of a line are missing. */
  reasonOf(array: string): string | null {
    return this.#failed.get(array)?.reason ?? null;
  }

  get isLoading(): boolean {
    return this.#running.size > 0;
  }

  #next(): void {
    for (const request of this.#wanted) {
      if (this.#running.size >= AT_ONCE) return;
      const key = keyOf(request);
      const isKnown =
        this.#kept.get(request.array)?.key === key || this.#failed.get(request.array)?.key === key;
      if (!isKnown && !this.#running.has(request.array)) this.#request(request, key);
    }
  }

  #request(request: LineRequest, key: string): void {
    const { array, time, at, from, count, columns } = request;
    let result: Json | undefined;
    const view = {
      ...{ array, time, at: { ...at }, level: null, camera: null, transfer: null, color_by: null },
      ...{ surfaces: [], slices: [], mode: null, grids: null, stereo: null, clip: null, grid: null },
    };
    // A call may end while it is made, when too many are under way.
    const state = { hasEnded: false };
    const cancel = this.#calls.call(
      "measure",
      { kind: "plot", view, from, count, columns },
      {
        item: (item) => {
          if (isObject(item) && item.result !== undefined) ({ result } = item);
        },
        ended: (reason) => {
          state.hasEnded = true;
          this.#running.delete(array);
          if (reason === null) this.#accept(array, key, result);
          else if (reason !== "cancelled") this.#failed.set(array, { key, reason });
          this.#onChange();
          this.#next();
        },
      },
    );
    if (!state.hasEnded) this.#running.set(array, { key, cancel });
  }

  #accept(array: string, key: string, result: Json | undefined): void {
    try {
      this.#kept.delete(array);
      this.#kept.set(array, { key, columns: parseColumns(result) });
      const [oldest] = this.#kept.keys();
      if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    } catch (error) {
      this.#failed.set(array, { key, reason: error instanceof Error ? error.message : String(error) });
    }
  }
}

function keyOf(request: LineRequest): string {
  return JSON.stringify([
    request.array,
    request.time,
    request.at,
    request.from,
    request.count,
    request.columns,
  ]);
}
