//! The value under the pointer: requested when the pointer rests, one request at a time.

import { isDrag } from "../../camera/click.ts";

/** Time without a move after which the pointer counts as at rest. */
export const REST_MILLIS = 60;

export interface Position {
  readonly x: number;
  readonly y: number;
}

export interface RestTarget {
  /** Requests the value at a position; `done` follows once, with or without an answer. */
  request(position: Position, done: () => void): void;
  /** The pointer has moved or left: what is shown is not under it any more. */
  hide(): void;
}

/** Decides when to request what is under the pointer: after a rest, and never while another request is under way. */
export class PointerRest {
  readonly #target: RestTarget;
  #position: Position | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isUnderWay = false;
  /** The pointer rested somewhere else, or the picture changed, during the request. */
  #isOutdated = false;

  constructor(target: RestTarget) {
    this.#target = target;
  }

  /** Position of the pointer; null while it is not over the picture or takes part in a gesture. */
  get position(): Position | null {
    return this.#position;
  }

  moved(position: Position): void {
    const { x, y } = this.#position ?? {};
    if (x === position.x && y === position.y) return;
    this.#position = position;
    this.#target.hide();
    this.#wait();
  }

  left(): void {
    if (!this.#position) return;
    this.#position = null;
    this.#isOutdated = false;
    clearTimeout(this.#timer);
    this.#target.hide();
  }

  /** The picture has changed: what is under a resting pointer is requested again. */
  changed(): void {
    if (this.#position) this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#rested();
    }, REST_MILLIS);
  }

  #rested(): void {
    if (!this.#position) return;
    if (this.#isUnderWay) {
      this.#isOutdated = true;
      return;
    }
    this.#isUnderWay = true;
    this.#target.request(this.#position, () => {
      this.#isUnderWay = false;
      const isOutdated = this.#isOutdated;
      this.#isOutdated = false;
      if (isOutdated) this.#rested();
    });
  }
}

/** Longest time between press and release of a click. */
const CLICK_MILLIS = 500;

/** Tells clicks and taps from gestures of the camera, which drag or use two fingers. */
export class ClickDetector {
  #pressed: { readonly position: Position; readonly at: number; readonly id: number } | null = null;
  readonly #down = new Set<number>();

  /** A pointer was pressed; only the first button without Shift can click. */
  down(id: number, position: Position, isPlain: boolean, atMillis: number): void {
    this.#down.add(id);
    this.#pressed = isPlain && this.#down.size === 1 ? { position, at: atMillis, id } : null;
  }

  /** A pointer was moved: beyond the distance of a click it drags, also if it comes back. */
  moved(id: number, position: Position, isTouch: boolean): void {
    const pressed = this.#pressed;
    if (pressed?.id !== id) return;
    const { x, y } = pressed.position;
    if (isDrag(position.x - x, position.y - y, isTouch)) this.#pressed = null;
  }

  /** A pointer was released; true if that was a click. */
  up(id: number, position: Position, isTouch: boolean, atMillis: number): boolean {
    this.#down.delete(id);
    const pressed = this.#pressed;
    this.#pressed = null;
    if (pressed?.id !== id || atMillis - pressed.at > CLICK_MILLIS) return false;
    return !isDrag(position.x - pressed.position.x, position.y - pressed.position.y, isTouch);
  }

  cancel(id: number): void {
    this.#down.delete(id);
    this.#pressed = null;
  }
}
