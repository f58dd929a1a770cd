//! Gamepad and 3-D mouse together: read once for each animation frame while one is in use, and turned into movements of the camera.

import type { Camera } from "../../view/schema.ts";
import type { Size } from "../camera.ts";
import { motionOf, PadButtons, usableGamepad, type GamepadLike, type PadCommand } from "./gamepad.ts";
import { isStill, moved, STILL, sum, type Motion } from "./motion.ts";
import { hidOf, SpaceMouse } from "./space-mouse.ts";
import { NO_DEVICES, type DeviceState } from "./state.ts";

export interface DeviceTarget {
  camera(): Camera | null;
  size(): Size;
  diagonal(): number;
  /** True if an image is shown head on. */
  isFlat(): boolean;
  move(camera: Camera): void;
  rest(): void;
  command(command: PadCommand): void;
  show(devices: DeviceState): void;
}

/** The parts of the browser that are used. */
export interface DeviceBrowser {
  readonly gamepads: () => readonly (GamepadLike | null)[];
  readonly requestFrame: (run: (nowMillis: number) => void) => void;
  readonly events: Pick<EventTarget, "addEventListener">;
  readonly navigator: object;
}

export class Devices {
  readonly #target: DeviceTarget;
  readonly #browser: DeviceBrowser;
  readonly #spaceMouse: SpaceMouse | null;
  readonly #buttons = new PadButtons();
  #state: DeviceState = NO_DEVICES;
  #mouseMotion: Motion = STILL;
  #isRunning = false;
  #isMoving = false;
  #lastMillis: number | null = null;

  constructor(target: DeviceTarget, browser: DeviceBrowser) {
    this.#target = target;
    this.#browser = browser;
    const hid = hidOf(browser.navigator);
    this.#spaceMouse =
      hid &&
      new SpaceMouse(hid, {
        onDevice: (spaceMouse) => {
          this.#set({ spaceMouse });
        },
        onMotion: (motion) => {
          this.#mouseMotion = motion;
          this.#run();
        },
        onButton: () => {
          target.command("reset");
        },
      });
    this.#set({ mayUseSpaceMouse: hid !== null });
    for (const name of ["gamepadconnected", "gamepaddisconnected"]) {
      browser.events.addEventListener(name, () => {
        this.#run();
      });
    }
    this.#spaceMouse?.resume().catch(() => {
      // A device that another program uses; the person may connect it again.
    });
  }

  /** Asks the person for a 3-D mouse; throws the browser's error if that is impossible. */
  async connectSpaceMouse(): Promise<void> {
    await this.#spaceMouse?.connect();
  }

  #set(change: Partial<DeviceState>): void {
    this.#state = { ...this.#state, ...change };
    this.#target.show(this.#state);
  }

  /** Runs a step for each animation frame until there is no gamepad and no motion. */
  #run(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#lastMillis = null;
    const step = (nowMillis: number) => {
      this.#isRunning = this.#step(nowMillis);
      if (this.#isRunning) this.#browser.requestFrame(step);
    };
    this.#browser.requestFrame(step);
  }

  /** Returns whether another step is needed. */
  #step(nowMillis: number): boolean {
    const pad = usableGamepad(this.#browser.gamepads());
    if ((pad?.id ?? null) !== this.#state.gamepad) this.#set({ gamepad: pad?.id ?? null });
    const motion = sum(pad ? motionOf(pad) : STILL, this.#mouseMotion);
    for (const command of pad ? this.#buttons.commands(pad) : []) this.#target.command(command);
    const secs = this.#lastMillis === null ? 0 : (nowMillis - this.#lastMillis) / 1000;
    this.#lastMillis = nowMillis;
    const camera = this.#target.camera();
    if (!isStill(motion) && camera) {
      const { size, diagonal, isFlat } = {
        size: this.#target.size(),
        diagonal: this.#target.diagonal(),
        isFlat: this.#target.isFlat(),
      };
      if (secs > 0) this.#target.move(moved(camera, motion, secs, { size, diagonal, isFlat }));
      this.#isMoving = true;
    } else if (this.#isMoving) {
      this.#isMoving = false;
      this.#target.rest();
    }
    return pad !== null || !isStill(motion);
  }
}
