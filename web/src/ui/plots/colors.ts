//! Colors of lines in plots, which the style sheet sets for dark and for light pages.

const COUNT = 6;
const COLORS = Array.from({ length: COUNT }, (_, number) => `var(--plot-${number})`);

/** Returns the CSS color of a line by its number, from 0. */
export function lineColor(number: number): string {
  return COLORS[number % COUNT] ?? "";
}
