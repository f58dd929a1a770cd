//! Whether handles are drawn over the picture: a choice on this page, which is no part of the view.

export class HandleSettings {
  readonly #listeners: (() => void)[] = [];
  #isOn = true;
  #hasBox = false;
  #cuts = false;

  /** True if slices, the clip box and oblique planes have handles. */
  get isOn(): boolean {
    return this.#isOn;
  }

  set isOn(isOn: boolean) {
    this.#isOn = isOn;
    this.#changed();
  }

  /** True if the clip box has handles also while it contains the whole volume. */
  get hasBox(): boolean {
    return this.#hasBox;
  }

  set hasBox(hasBox: boolean) {
    this.#hasBox = hasBox;
    this.#changed();
  }

  /** True if the clip box removes what lies in front of the slices. */
  get cuts(): boolean {
    return this.#cuts;
  }

  set cuts(cuts: boolean) {
    this.#cuts = cuts;
    this.#changed();
  }

  /** Calls a function after each change. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
