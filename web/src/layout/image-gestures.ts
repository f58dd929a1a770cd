//! Gestures on a plane seen head on: drag pans, right drag or Alt and drag change the window of values, wheel and pinch zoom, Shift and
//! wheel step through slices, a double click fits. A click, or a drag of the crosshair, moves the crosshair where there is one.

import { pan, type Size } from "../camera/camera.ts";
import { isDrag } from "../camera/click.ts";
import type { Camera } from "../view/schema.ts";
import type { ScreenPoint } from "./plane-camera.ts";

export interface ImageTarget {
  /** False while the element shows no plane; then no gesture has an effect. */
  isEnabled(): boolean;
  camera(): Camera | null;
  /** Returns the camera zoomed about a point, pixels from the center. */
  zoomed(camera: Camera, factor: number, x: number, y: number): Camera;
  move(camera: Camera): void;
  rest(): void;
  fit(): void;
  step(by: number): void;
  /** Changes the window of values by shares of the picture. */
  window(right: number, down: number): void;
  /** True if the crosshair can be grabbed at a place. */
  isGrabbed?(at: ScreenPoint): boolean;
  moveCrosshair?(at: ScreenPoint, isMoving: boolean): void;
}

export type DragKind = "pan" | "window" | "crosshair";

/** Returns what a drag does, by its button and keys. */
export function dragKind(
  event: { readonly button: number; readonly altKey: boolean },
  isGrabbed: boolean,
): DragKind {
  if (event.button === 2 || event.altKey) return "window";
  return isGrabbed && event.button === 0 ? "crosshair" : "pan";
}

/** Wheel travel of one slice; a notch of a mouse wheel is about 100, track pads send small parts. */
const PIXELS_PER_SLICE = 50;
/** Scale per pixel of wheel travel. */
const WHEEL_RATE = 0.0014;
const LINE_PIXELS = 16;
const WHEEL_REST_MILLIS = 180;

/** Collects wheel travel into whole steps. */
export class WheelSteps {
  #rest = 0;

  /** Returns the steps of a further travel; turning back starts anew. */
  add(pixels: number): number {
    if (Math.sign(pixels) !== Math.sign(this.#rest)) this.#rest = 0;
    this.#rest += pixels;
    const steps = Math.trunc(this.#rest / PIXELS_PER_SLICE);
    this.#rest -= steps * PIXELS_PER_SLICE;
    // A notch of a mouse is one slice, however long browsers report it.
    return Math.abs(pixels) >= PIXELS_PER_SLICE ? Math.sign(steps) : steps;
  }
}

interface Drag {
  readonly kind: DragKind;
  readonly start: ScreenPoint;
  hasMoved: boolean;
}

export class ImageGestures {
  readonly #element: HTMLElement;
  readonly #target: ImageTarget;
  readonly #pointers = new Map<number, ScreenPoint>();
  readonly #steps = new WheelSteps();
  #drag: Drag | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(element: HTMLElement, target: ImageTarget) {
    this.#element = element;
    this.#target = target;
    const on = <K extends keyof HTMLElementEventMap>(
      name: K,
      handle: (event: HTMLElementEventMap[K]) => void,
      options: AddEventListenerOptions = {},
    ) => {
      element.addEventListener(
        name,
        (event) => {
          if (target.isEnabled()) handle(event);
        },
        options,
      );
    };
    on("pointerdown", (event) => {
      this.#down(event);
    });
    on("pointermove", (event) => {
      this.#move(event);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      element.addEventListener(name, (event) => {
        this.#up(event);
      });
    }
    on(
      "wheel",
      (event) => {
        this.#wheel(event);
      },
      { passive: false },
    );
    on("dblclick", () => {
      target.fit();
    });
    on("contextmenu", (event) => {
      event.preventDefault();
    });
  }

  #size(): Size {
    return { width: this.#element.clientWidth, height: this.#element.clientHeight };
  }

  /** Position in the element, pixels from its top left corner. */
  #place(event: MouseEvent): ScreenPoint {
    const box = this.#element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #down(event: PointerEvent): void {
    if (this.#pointers.size >= 2) return;
    this.#element.setPointerCapture(event.pointerId);
    this.#element.focus({ preventScroll: true });
    const at = this.#place(event);
    this.#pointers.set(event.pointerId, at);
    const kind = dragKind(event, this.#target.isGrabbed?.(at) ?? false);
    this.#drag = { kind, start: at, hasMoved: this.#pointers.size > 1 };
  }

  #move(event: PointerEvent): void {
    const before = this.#pointers.get(event.pointerId);
    const camera = this.#target.camera();
    const drag = this.#drag;
    if (!before || !camera || !drag) return;
    const now = this.#place(event);
    const [dx, dy] = [now.x - before.x, now.y - before.y];
    if (dx === 0 && dy === 0) return;
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    const isTouch = event.pointerType === "touch";
    if (!drag.hasMoved && !isDrag(now.x - drag.start.x, now.y - drag.start.y, isTouch)) return;
    this.#pointers.set(event.pointerId, now);
    drag.hasMoved = true;
    const size = this.#size();
    if (other) this.#target.move(this.#pinch(camera, before, now, other));
    else if (drag.kind === "window")
      this.#target.window(dx / Math.max(1, size.width), dy / Math.max(1, size.height));
    else if (drag.kind === "crosshair") this.#target.moveCrosshair?.(now, true);
    else this.#target.move(pan(camera, dx, dy, size));
  }

  #pinch(camera: Camera, before: ScreenPoint, now: ScreenPoint, other: ScreenPoint): Camera {
    const size = this.#size();
    const panned = pan(camera, (now.x - before.x) / 2, (now.y - before.y) / 2, size);
    const spread = (a: ScreenPoint) => Math.max(8, Math.hypot(a.x - other.x, a.y - other.y));
    const [x, y] = [(now.x + other.x - size.width) / 2, (now.y + other.y - size.height) / 2];
    return this.#target.zoomed(panned, spread(before) / spread(now), x, y);
  }

  #up(event: PointerEvent): void {
    if (!this.#pointers.delete(event.pointerId) || this.#pointers.size > 0) return;
    const drag = this.#drag;
    this.#drag = null;
    if (!this.#target.isEnabled()) return;
    const isClick = drag !== null && !drag.hasMoved && event.type === "pointerup" && event.button === 0;
    if (isClick && drag.kind !== "window") this.#target.moveCrosshair?.(this.#place(event), false);
    this.#target.rest();
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    // With Shift some browsers report the wheel as horizontal.
    const pixels = (event.deltaY === 0 ? event.deltaX : event.deltaY) * unit;
    if (event.shiftKey) {
      const steps = this.#steps.add(pixels);
      if (steps !== 0) this.#target.step(steps);
    } else {
      const camera = this.#target.camera();
      if (!camera) return;
      const size = this.#size();
      const at = this.#place(event);
      // Browsers report a pinch on a track pad as a wheel with `ctrlKey`, in smaller steps.
      const exponent = pixels * WHEEL_RATE * (event.ctrlKey ? 6 : 1);
      const factor = Math.exp(Math.max(-1, Math.min(1, exponent)));
      this.#target.move(this.#target.zoomed(camera, factor, at.x - size.width / 2, at.y - size.height / 2));
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#target.rest();
    }, WHEEL_REST_MILLIS);
  }
}
