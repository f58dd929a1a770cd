//! Time steps that were complete when they were on the screen: the node reports what the present picture lacks, not which other steps it
//! holds, so this is what the page knows about what will be shown at once. Pure.

/** Most steps that are remembered: longer series keep those shown last. */
export const MAX_STEPS_KNOWN = 4096;

export class CompleteSteps {
  readonly #steps = new Set<number>();
  #of = "";
  /** Runs of the steps; null until they are asked for. */
  #runs: readonly (readonly [first: number, last: number])[] | null = null;

  /** Notes that a step was complete. */
  add(step: number): void {
    if (this.#steps.has(step)) return;
    const [oldest] = this.#steps;
    if (this.#steps.size >= MAX_STEPS_KNOWN && oldest !== undefined) this.#steps.delete(oldest);
    this.#steps.add(step);
    this.#runs = null;
  }

  /**
   * Forgets the steps of other data. `of` names all else that decides which blocks a picture needs: array, positions along other
   * axes, level.
   */
  begin(of: string): void {
    if (of === this.#of) return;
    this.#of = of;
    this.#steps.clear();
    this.#runs = null;
  }

  /** Runs of neighboring steps, ascending; the same list until it changes. */
  get runs(): readonly (readonly [first: number, last: number])[] {
    this.#runs ??= runs([...this.#steps]);
    return this.#runs;
  }
}

/** Returns the runs of neighbors among whole numbers, ascending. */
export function runs(steps: readonly number[]): readonly (readonly [first: number, last: number])[] {
  const found: [number, number][] = [];
  for (const step of [...steps].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && step <= last[1] + 1) last[1] = step;
    else found.push([step, step]);
  }
  return found;
}
