//! Gamepads, by the browser's interface for them: sticks and triggers move the camera, buttons are commands. Pure except for the reading.

import { speedOf, type Motion } from "./motion.ts";

/** The parts of `Gamepad` that are used. */
export interface GamepadLike {
  readonly id: string;
  readonly mapping: string;
  readonly connected: boolean;
  readonly axes: readonly number[];
  readonly buttons: readonly { readonly pressed: boolean; readonly value: number }[];
}

export type PadCommand = "play" | "reset" | "timeBack" | "timeForward" | "nextSlice" | "previousSlice";

/** Share of a stick's way that counts as its middle: worn sticks rest away from it. */
const DEAD_ZONE = 0.15;
/** Numbers of buttons in the standard mapping. */
const LEFT_TRIGGER = 6;
const RIGHT_TRIGGER = 7;
const COMMANDS: readonly (readonly [button: number, command: PadCommand])[] = [
  [0, "play"],
  [1, "reset"],
  [12, "nextSlice"],
  [13, "previousSlice"],
  [14, "timeBack"],
  [15, "timeForward"],
];
/** Names of 3-D mice that systems report as gamepads; their six axes are translation and rotation. */
const SPACE_MOUSE = /space(mouse|navigator|pilot|explorer)|3dconnexion/i;

/** Returns the gamepad to use: the first that is connected and has two sticks, or is a 3-D mouse. */
export function usableGamepad(pads: readonly (GamepadLike | null)[]): GamepadLike | null {
  const isUsable = (pad: GamepadLike | null): pad is GamepadLike =>
    pad !== null && pad.connected && (pad.mapping === "standard" || isSpaceMouse(pad));
  return pads.find(isUsable) ?? null;
}

export function isSpaceMouse(pad: GamepadLike): boolean {
  return SPACE_MOUSE.test(pad.id) && pad.axes.length >= 6;
}

/** Returns the motion that a gamepad asks for. */
export function motionOf(pad: GamepadLike): Motion {
  const axis = (number: number) => speedOf(pad.axes[number] ?? 0, DEAD_ZONE);
  if (isSpaceMouse(pad)) {
    return { panX: axis(0), panY: axis(2), nearer: -axis(1), yaw: axis(5), pitch: axis(3) };
  }
  const trigger = (number: number) => speedOf(pad.buttons[number]?.value ?? 0, 0.05);
  return {
    yaw: axis(0),
    pitch: axis(1),
    panX: axis(2),
    panY: axis(3),
    nearer: trigger(RIGHT_TRIGGER) - trigger(LEFT_TRIGGER),
  };
}

/** Commands of buttons, each once when it is pressed. */
export class PadButtons {
  #pressed = new Set<number>();

  /** Returns the commands of the buttons that were pressed since the last call. */
  commands(pad: GamepadLike): readonly PadCommand[] {
    const now = new Set(pad.buttons.flatMap((button, number) => (button.pressed ? [number] : [])));
    const isNew = (number: number) => now.has(number) && !this.#pressed.has(number);
    const found = COMMANDS.filter(([number]) => isNew(number)).map(([, command]) => command);
    this.#pressed = now;
    return isSpaceMouse(pad) ? found.slice(0, 1).map(() => "reset") : found;
  }
}
