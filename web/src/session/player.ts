//! Plays time: the next step is shown once the current one is on the screen, and not faster than a person follows.

/** Shortest time that one step stays. */
export const STEP_MILLIS = 120;

/** When (milliseconds) the next step may be asked for, the last having been asked for at `askedMillis`. */
export function nextStepMillis(askedMillis: number, isShown: boolean): number {
  return isShown ? askedMillis + STEP_MILLIS : Infinity;
}

/** The step after `time`, from the start again after the last of `steps`. */
export function nextTime(time: number, steps: number): number {
  return steps > 0 ? (time + 1) % steps : 0;
}
