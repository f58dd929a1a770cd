//! Playback of time steps: the next one is requested once the current one is on the screen, at a limited rate.

/** Shortest time that a step is shown. */
export const STEP_MILLIS = 120;

/** Time in milliseconds at which the next step may be requested, given the time of the last request. */
export function nextStepMillis(requestedMillis: number, isShown: boolean): number {
  return isShown ? requestedMillis + STEP_MILLIS : Infinity;
}

/** Step after `time`; wraps around after the last of `steps`. */
export function nextTime(time: number, steps: number): number {
  return steps > 0 ? (time + 1) % steps : 0;
}
