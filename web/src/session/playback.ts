//! Playback of time steps: the next one is requested once the current one is on the screen, at a chosen rate. Pure.

/** Continuation after the last step. */
export const REPEATS = ["loop", "once", "bounce"] as const;
export type Repeat = (typeof REPEATS)[number];

/** How time is played. */
export interface Playback {
  /** Steps per second, at most: a step that takes longer until it is on the screen is waited for. */
  readonly rate: number;
  readonly repeat: Repeat;
}

export const DEFAULT_PLAYBACK: Playback = { rate: 8, repeat: "loop" };
/** Rates that people choose from; up to what a screen can show as motion. */
export const RATES: readonly number[] = [0.5, 1, 2, 4, 8, 12, 24, 30];

/** Time in milliseconds at which the next step may be requested, given the time of the last request. */
export function nextStepMillis(requestedMillis: number, isShown: boolean, { rate }: Playback): number {
  return isShown ? requestedMillis + 1000 / rate : Infinity;
}

/** Step after `time` among `steps` in a direction (1 or -1), and the direction afterwards; null at the end of what is played once. */
export function nextTime(
  time: number,
  steps: number,
  direction: 1 | -1,
  repeat: Repeat,
): { readonly time: number; readonly direction: 1 | -1 } | null {
  if (steps < 2) return null;
  const next = time + direction;
  if (next >= 0 && next < steps) return { time: next, direction };
  switch (repeat) {
    case "loop":
      return { time: (next + steps) % steps, direction };
    case "once":
      return null;
    case "bounce":
      return { time: time - direction, direction: direction === 1 ? -1 : 1 };
  }
}

/** Step at which playing begins: once from the last step means from the beginning. */
export function firstTime(time: number, steps: number, repeat: Repeat): number {
  return repeat === "once" && time >= steps - 1 ? 0 : time;
}
