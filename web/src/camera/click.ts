//! Difference between a click and a drag: how far a pointer may move while it is pressed. A press is one or the other, never both.

/** Farthest move of a click, CSS pixels: fingers are less steady. */
export const CLICK_PIXELS = { mouse: 3, touch: 12 } as const;

/** True if a pointer has moved farther from where it was pressed than in a click. */
export function isDrag(dx: number, dy: number, isTouch: boolean): boolean {
  return Math.hypot(dx, dy) > (isTouch ? CLICK_PIXELS.touch : CLICK_PIXELS.mouse);
}
