//! Requests for histograms of the array shown: the newest one replaces older ones, and it is repeated when a finer level
//! has become complete.

import { clipRanges } from "../dataset/clip-ranges.ts";
import { HISTOGRAM_BINS, statsKey, statsLevel, statsRanges, type Stats } from "../dataset/stats.ts";
import type { Fidelity } from "../session/messages.ts";
import type { ToWorker } from "../worker/messages.ts";
import type { ArrayStats, State, StatsTarget } from "./state.ts";

export class StatsRequests {
  readonly #send: (message: ToWorker) => void;
  #newest: StatsTarget | null = null;
  #id = 0;
  #isWaiting = false;

  constructor(send: (message: ToWorker) => void) {
    this.#send = send;
  }

  /** True while the newest request, or its answer, holds. */
  get isValid(): boolean {
    return this.#newest !== null;
  }

  /** Forgets the newest request: its answer is ignored, and a new request may follow. */
  reset(): void {
    this.#isWaiting = false;
    this.#newest = null;
  }

  /** Returns the statistics of the newest request; null if the answer is to an older one. */
  accept(id: number, stats: Stats): ArrayStats | null {
    if (id === this.#id) this.#isWaiting = false;
    return id === this.#id && this.#newest ? { ...this.#newest, stats } : null;
  }

  /** Notes that the newest request has failed. */
  failed(): void {
    this.#isWaiting = false;
  }

  /** Requests a histogram of the values shown, unless one as good is known or requested. */
  update({ array, dataset, view, stats }: State, fidelity: Fidelity): void {
    if (!array || !dataset) return;
    // Colors are an array of the node, unknown to the data server; late answers are not for them.
    if (array.meaning === "colors") {
      this.reset();
      return;
    }
    const shown = fidelity.levelShown ?? array.levels.length - 1;
    if (shown >= array.levels.length) return;
    const position = statsKey(array, view);
    if (stats?.position === position && fidelity.state !== "complete") return;
    const level = statsLevel(array, shown);
    const isAsGood = (known: StatsTarget | null) =>
      known?.array === array.name && known.position === position && known.level <= level;
    if (isAsGood(this.#newest) || isAsGood(stats)) return;
    // While a clip box is dragged, one request at a time.
    if (this.#isWaiting && view.clip !== null && this.#newest?.array === array.name) return;
    this.#newest = { array: array.name, level, position };
    this.#id++;
    const place = { dataset: dataset.id, generation: dataset.generation, array: array.number, level };
    const ranges = clipRanges(array, statsRanges(array, level, view.time, view.at), view.clip);
    this.#isWaiting = true;
    this.#send({ kind: "stats", id: this.#id, place, bins: HISTOGRAM_BINS, ranges });
  }
}
