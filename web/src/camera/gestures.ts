//! Gestures on the picture: one finger or the left button rotates, two fingers or the right button (or shift) pan,
//! pinch and wheel zoom.

import type { Camera } from "../view/schema.ts";
import { orbit, pan, zoom, type Size } from "./camera.ts";
import { isDrag } from "./click.ts";

export interface GestureTarget {
  /** The camera now; null while there is none. */
  camera(): Camera | null;
  /** Longest diagonal of the volume, world units. */
  diagonal(): number;
  move(camera: Camera): void;
  rest(): void;
}

/** Time without events after which the wheel counts as at rest. */
const WHEEL_REST_MILLIS = 180;
/** Scale per pixel of wheel travel; a notch of a mouse wheel is about 100. */
const WHEEL_RATE = 0.0014;
const LINE_PIXELS = 16;

interface Point {
  readonly x: number;
  readonly y: number;
}

export class Gestures {
  readonly #element: HTMLElement;
  readonly #target: GestureTarget;
  readonly #pointers = new Map<number, Point>();
  #isPanning = false;
  /** Place where the first pointer was pressed; null once it has moved farther than in a click. */
  #pressed: Point | null = null;
  #wheelTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(element: HTMLElement, target: GestureTarget) {
    this.#element = element;
    this.#target = target;
    element.addEventListener("pointerdown", (event) => {
      this.#down(event);
    });
    element.addEventListener("pointermove", (event) => {
      this.#move(event);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      element.addEventListener(name, (event) => {
        this.#up(event);
      });
    }
    element.addEventListener(
      "wheel",
      (event) => {
        this.#wheel(event);
      },
      { passive: false },
    );
    element.addEventListener("contextmenu", (event) => {
      event.preventDefault();
    });
  }

  #size(): Size {
    return { width: this.#element.clientWidth, height: this.#element.clientHeight };
  }

  #down(event: PointerEvent): void {
    if (this.#pointers.size >= 2) return;
    this.#element.setPointerCapture(event.pointerId);
    this.#element.focus({ preventScroll: true });
    this.#isPanning = event.button === 1 || event.button === 2 || event.shiftKey;
    const at = { x: event.clientX, y: event.clientY };
    this.#pressed = this.#pointers.size === 0 ? at : null;
    this.#pointers.set(event.pointerId, at);
  }

  #move(event: PointerEvent): void {
    const before = this.#pointers.get(event.pointerId);
    const camera = this.#target.camera();
    if (!before || !camera) return;
    const now = { x: event.clientX, y: event.clientY };
    if (this.#isClick(now, event.pointerType === "touch")) return;
    const [dx, dy] = [now.x - before.x, now.y - before.y];
    if (dx === 0 && dy === 0) return;
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.#pointers.set(event.pointerId, now);
    if (other) this.#target.move(this.#pinch(camera, before, now, other));
    else this.#target.move((this.#isPanning ? pan : orbit)(camera, dx, dy, this.#size()));
  }

  /** True until the only pointer has moved farther than in a click; the camera turns from there on. */
  #isClick(now: Point, isTouch: boolean): boolean {
    if (!this.#pressed) return false;
    if (!isDrag(now.x - this.#pressed.x, now.y - this.#pressed.y, isTouch)) return true;
    this.#pressed = null;
    for (const id of this.#pointers.keys()) this.#pointers.set(id, now);
    return true;
  }

  /** Handles a move of one of two fingers: their middle pans, their distance zooms. */
  #pinch(camera: Camera, before: Point, now: Point, other: Point): Camera {
    const size = this.#size();
    const panned = pan(camera, (now.x - before.x) / 2, (now.y - before.y) / 2, size);
    const spread = (a: Point) => Math.max(8, Math.hypot(a.x - other.x, a.y - other.y));
    const middle = this.#fromCenter({ x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
    return zoom(panned, spread(before) / spread(now), this.#target.diagonal(), size, middle.x, middle.y);
  }

  #up(event: PointerEvent): void {
    if (!this.#pointers.delete(event.pointerId)) return;
    this.#pressed = null;
    if (this.#pointers.size === 0) this.#target.rest();
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    const camera = this.#target.camera();
    if (!camera) return;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    // Browsers report a pinch on a track pad as a wheel with `ctrlKey`, in smaller steps.
    const rate = WHEEL_RATE * unit * (event.ctrlKey ? 6 : 1);
    const at = this.#fromCenter({ x: event.clientX, y: event.clientY });
    const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY * rate)));
    this.#target.move(zoom(camera, factor, this.#target.diagonal(), this.#size(), at.x, at.y));
    clearTimeout(this.#wheelTimer);
    this.#wheelTimer = setTimeout(() => {
      this.#target.rest();
    }, WHEEL_REST_MILLIS);
  }

  #fromCenter(point: Point): Point {
    const box = this.#element.getBoundingClientRect();
    return { x: point.x - box.left - box.width / 2, y: point.y - box.top - box.height / 2 };
  }
}
