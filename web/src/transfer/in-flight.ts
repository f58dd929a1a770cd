//! Changes of a slider that are sent one at a time: the newest one waits until the picture of the one before is on the
//! screen, so that pictures follow a pointer instead of queueing behind it. Pure.

/** Time after which the next change is sent although no picture has come, milliseconds. */
export const LONGEST_WAIT_MILLIS = 100;

export class InFlight<T> {
  #waiting: { readonly value: T } | null = null;
  #sentAt: number | null = null;

  /** Offers a change; returns it if it is to be sent now, otherwise it replaces the one that waits. */
  offer(value: T, nowMillis: number): T | null {
    if (this.#sentAt === null || nowMillis - this.#sentAt >= LONGEST_WAIT_MILLIS) {
      this.#sentAt = nowMillis;
      this.#waiting = null;
      return value;
    }
    this.#waiting = { value };
    return null;
  }

  /** Tells that the picture of the last change is on the screen; returns the change to send next. */
  shown(nowMillis: number): T | null {
    this.#sentAt = null;
    const next = this.#waiting;
    if (!next) return null;
    this.#waiting = null;
    this.#sentAt = nowMillis;
    return next.value;
  }

  /** Takes the change that waits, at the end of a movement. */
  take(): T | null {
    const next = this.#waiting;
    this.#waiting = null;
    this.#sentAt = null;
    return next?.value ?? null;
  }
}
