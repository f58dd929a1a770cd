//! Draws decoded pictures on the canvas, on demand: once per new picture, and for each movement of the camera that the newest picture can
//! follow by itself; only the newest is kept.

import type { FrameInfo } from "../session/messages.ts";
import type { Camera } from "../view/schema.ts";
import { IN_PLACE, placementOf, type Placement } from "./placement.ts";

export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** Largest side of a picture, pixels: the node's limit, a little more than a 4K screen has. */
export const MAX_SIDE = 4096;
/** Maximum number of pixels of a picture, a limit of the node. */
export const MAX_PIXELS = 8 << 20;
const MIN_SIDE = 16;

/** Device pixels of a `width` by `height` CSS box. */
export function screenSize(width: number, height: number, devicePixelRatio: number): PixelSize {
  const side = (length: number) => Math.max(MIN_SIDE, Math.round(length * devicePixelRatio));
  return { width: side(width), height: side(height) };
}

/** Size of the picture to request: the screen's pixels, scaled down evenly where these exceed the node's limits. */
export function pictureSize(screen: PixelSize): PixelSize {
  const { width, height } = screen;
  const bySide = MAX_SIDE / Math.max(width, height);
  const byPixels = Math.sqrt(MAX_PIXELS / (width * height));
  const scale = Math.min(1, bySide, byPixels);
  const side = (length: number) => Math.max(MIN_SIDE, Math.floor(length * scale));
  return scale < 1 ? { width: side(width), height: side(height) } : screen;
}

/** True when a picture has fewer pixels than the place on the screen that it fills. */
export function isEnlarged(picture: PixelSize, screen: PixelSize): boolean {
  return picture.width < screen.width && picture.height < screen.height;
}

/** Aspect ratios closer than this count as equal: sizes are rounded to pixels. */
const SAME_ASPECT = 0.02;

export class Picture {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #onDrawn: (frame: FrameInfo) => void;
  #newest: {
    readonly frame: FrameInfo;
    readonly bitmap: ImageBitmap;
    readonly camera: Camera | null;
  } | null = null;
  /** Camera of the view, which may be ahead of the newest picture's. */
  #camera: Camera | null = null;
  #background = "#0d0e12";
  #isScheduled = false;
  #isNew = false;

  constructor(canvas: HTMLCanvasElement, onDrawn: (frame: FrameInfo) => void) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("expected a browser that can draw on a canvas");
    this.#canvas = canvas;
    this.#context = context;
    this.#onDrawn = onDrawn;
  }

  /** Shows a picture by a camera; null if that is not known. */
  show(frame: FrameInfo, bitmap: ImageBitmap, camera: Camera | null): void {
    this.#newest?.bitmap.close();
    this.#newest = { frame, bitmap, camera };
    this.#isNew = true;
    this.#schedule();
  }

  resize(size: PixelSize): void {
    if (this.#canvas.width === size.width && this.#canvas.height === size.height) return;
    this.#canvas.width = size.width;
    this.#canvas.height = size.height;
    this.#draw();
  }

  /** Sets the color around a picture whose aspect ratio differs from the canvas, as after a resize. */
  setBackground(rgb: readonly [number, number, number]): void {
    this.#background = `rgb(${rgb.join(" ")})`;
  }

  /** Lets the picture follow a camera, as far as it can, until the node has drawn it. */
  follow(camera: Camera | null): void {
    if (camera === this.#camera) return;
    const before = this.#placement();
    this.#camera = camera;
    const { scale, right, down } = this.#placement();
    if (scale !== before.scale || right !== before.right || down !== before.down) this.#schedule();
  }

  /** Returns the newest picture at its own size as PNG, without further loss, after `paint` has drawn over it. */
  async toPng(
    paint: (context: OffscreenCanvasRenderingContext2D, size: PixelSize) => void,
  ): Promise<Blob | null> {
    if (!this.#newest) return null;
    const { bitmap } = this.#newest;
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext("2d");
    context?.drawImage(bitmap, 0, 0);
    if (context) paint(context, { width: bitmap.width, height: bitmap.height });
    return canvas.convertToBlob({ type: "image/png" });
  }

  #placement(): Placement {
    const drawn = this.#newest?.camera;
    return (drawn && this.#camera && placementOf(drawn, this.#camera)) ?? IN_PLACE;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#draw();
      if (!this.#newest || !this.#isNew) return;
      this.#isNew = false;
      this.#onDrawn(this.#newest.frame);
    });
  }

  #draw(): void {
    const { width, height } = this.#canvas;
    this.#context.fillStyle = this.#background;
    this.#context.fillRect(0, 0, width, height);
    if (!this.#newest) return;
    const { bitmap } = this.#newest;
    const [across, upward] = [width / bitmap.width, height / bitmap.height];
    // The node keeps the vertical angle: the center of the picture stays in place.
    const whole = Math.abs(across / upward - 1) < SAME_ASPECT ? width : bitmap.width * upward;
    const { scale, right, down } = this.#placement();
    const [w, h] = [whole * scale, height * scale];
    this.#context.imageSmoothingQuality = "high";
    this.#context.drawImage(bitmap, (width - w) / 2 + right * height, (height - h) / 2 + down * height, w, h);
  }
}
