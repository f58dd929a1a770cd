//! Saving the picture on the screen: an exact one is requested first, and what is shown is saved if it does not come in time.

import { texts } from "../texts/texts.ts";
import type { Picture, PixelSize } from "../draw/picture.ts";
import type { FrameInfo } from "../session/messages.ts";
import { fileNameFor, saveFile } from "./save.ts";
import type { State } from "./state.ts";
import type { Toasts } from "./toasts.ts";

/** Longest wait for an exact picture. */
const STILL_LIMIT_MILLIS = 6000;

/** Paints over a picture of this size that is saved. */
export type PaintOver = (
  context: OffscreenCanvasRenderingContext2D,
  picture: PixelSize,
  state: State,
) => void;

export interface ScreenshotOptions {
  readonly picture: Picture;
  readonly toasts: Toasts;
  readonly state: () => State;
  /** Asks the node for an exact picture. */
  readonly requestStill: () => void;
  /** Paints the marks over it, if they are wanted. */
  readonly paint: PaintOver;
}

export class Screenshot {
  readonly #options: ScreenshotOptions;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ScreenshotOptions) {
    this.#options = options;
  }

  /** Saves the picture, now or once an exact one is on the screen. Without a connection none will come. */
  take(): void {
    const { connection, frame, fidelity, isCurrent } = this.#options.state();
    if (!frame) return;
    if (connection.kind !== "open" || (isCurrent && fidelity?.exact === true)) {
      void this.#save();
      return;
    }
    this.#options.requestStill();
    this.#options.toasts.show("info", texts.page.waitingForExact);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#options.toasts.show("warning", texts.page.noExactPicture);
      void this.#save();
    }, STILL_LIMIT_MILLIS);
  }

  /** Saves a frame that is on the screen if it is the awaited one. */
  drawn(frame: FrameInfo): void {
    const isExact = frame.fidelity.exact || frame.codec === "png";
    if (this.#timer === undefined || !this.#options.state().isCurrent || !isExact) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    void this.#save();
  }

  async #save(): Promise<void> {
    const { picture, toasts, state, paint } = this.#options;
    const blob = await picture.toPng((context, size) => {
      paint(context, size, state());
    });
    if (!blob) return;
    saveFile(blob, fileNameFor(state()));
    toasts.show(
      "info",
      state().fidelity?.exact === true ? texts.page.exactPictureSaved : texts.page.pictureSaved,
    );
  }
}
