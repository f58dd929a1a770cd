//! Puts decoded pictures on the canvas, newest first, on demand: one drawing per new picture, none otherwise.

import type { FrameInfo } from "../session/messages.ts";

export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** Largest side asked of the node, pixels: beyond, a picture costs more than it shows. */
export const MAX_SIDE = 2048;

/** Device pixels of a `width` by `height` CSS box, scaled down evenly where a side would exceed the bound. */
export function pixelSize(width: number, height: number, devicePixelRatio: number): PixelSize {
  const longest = Math.max(width, height, 1) * devicePixelRatio;
  const scale = devicePixelRatio * Math.min(1, MAX_SIDE / longest);
  return { width: Math.max(16, Math.round(width * scale)), height: Math.max(16, Math.round(height * scale)) };
}

/** Aspects closer than this are the same: sizes are rounded to pixels. */
const SAME_ASPECT = 0.02;

export class Picture {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #onDrawn: (frame: FrameInfo) => void;
  #newest: { readonly frame: FrameInfo; readonly bitmap: ImageBitmap } | null = null;
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

  show(frame: FrameInfo, bitmap: ImageBitmap): void {
    this.#newest?.bitmap.close();
    this.#newest = { frame, bitmap };
    this.#isNew = true;
    this.#schedule();
  }

  resize(size: PixelSize): void {
    if (this.#canvas.width === size.width && this.#canvas.height === size.height) return;
    this.#canvas.width = size.width;
    this.#canvas.height = size.height;
    this.#draw();
  }

  /** Colour around a picture whose aspect is not the canvas's, for the moment after a resize. */
  setBackground(rgb: readonly [number, number, number]): void {
    this.#background = `rgb(${rgb.join(" ")})`;
  }

  /** The newest picture in its own size as PNG: lossless from what was decoded. */
  async toPng(): Promise<Blob | null> {
    if (!this.#newest) return null;
    const { bitmap } = this.#newest;
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
    return canvas.convertToBlob({ type: "image/png" });
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
    const [across, down] = [width / bitmap.width, height / bitmap.height];
    this.#context.imageSmoothingQuality = "high";
    if (Math.abs(across / down - 1) < SAME_ASPECT) {
      this.#context.drawImage(bitmap, 0, 0, width, height);
      return;
    }
    // The node keeps the vertical angle: the middle of the picture stays where it is.
    const [w, h] = [bitmap.width * down, height];
    this.#context.drawImage(bitmap, (width - w) / 2, 0, w, h);
  }
}
