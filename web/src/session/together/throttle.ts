//! Limits how often a changing value is sent: at once after a pause, else the newest value after the interval. Pure but for
//! the timer that is passed in.

export interface Timer {
  readonly now: () => number;
  readonly after: (millis: number, run: () => void) => void;
}

const BROWSER_TIMER: Timer = {
  now: () => performance.now(),
  after: (millis, run) => {
    setTimeout(run, millis);
  },
};

export class Throttle<T> {
  readonly #intervalMillis: number;
  readonly #send: (value: T) => void;
  readonly #timer: Timer;
  #sentMillis = -Infinity;
  #waiting: { readonly value: T } | null = null;

  constructor(intervalMillis: number, send: (value: T) => void, timer: Timer = BROWSER_TIMER) {
    this.#intervalMillis = intervalMillis;
    this.#send = send;
    this.#timer = timer;
  }

  push(value: T): void {
    const isScheduled = this.#waiting !== null;
    this.#waiting = { value };
    if (isScheduled) return;
    const wait = this.#sentMillis + this.#intervalMillis - this.#timer.now();
    if (wait <= 0) this.#flush();
    else
      this.#timer.after(wait, () => {
        this.#flush();
      });
  }

  #flush(): void {
    if (!this.#waiting) return;
    const { value } = this.#waiting;
    this.#waiting = null;
    this.#sentMillis = this.#timer.now();
    this.#send(value);
  }
}
