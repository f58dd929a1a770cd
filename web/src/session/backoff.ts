//! Exponential backoff before reconnecting.

const FIRST_MILLIS = 500;
const LONGEST_MILLIS = 15_000;

/**
 * Returns the wait before attempt `attempt` (from 0): doubling, at most 15 s, with jitter from `chance` (0 to 1) so
 * that many pages do not reconnect together.
 */
export function backoffMillis(attempt: number, chance: number): number {
  const full = Math.min(LONGEST_MILLIS, FIRST_MILLIS * 2 ** Math.min(attempt, 16));
  return full * (0.75 + 0.25 * chance);
}
