//! Playback of the time axis: requests the next step once the current one is on the screen.

import { nextStepMillis, type Playback } from "../session/playback.ts";

export class TimePlayer {
  readonly #step: () => void;
  /** Direction in which time is played; back and forth reverses it. */
  direction: 1 | -1 = 1;
  #steppedMillis = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `step` shows the next time step; it is called by a timer, also after playback has ended. */
  constructor(step: () => void) {
    this.#step = step;
  }

  /** Schedules the next step; `isShown`: the current one is on the screen. */
  schedule(isShown: boolean, playback: Playback): void {
    const now = performance.now();
    const at = nextStepMillis(this.#steppedMillis, isShown, playback);
    if (!Number.isFinite(at)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#step, Math.max(0, at - now));
  }

  /** Notes the time of a step, from which the next one is at least an interval of the rate away. */
  stepped(): void {
    this.#steppedMillis = performance.now();
  }
}
