//! Colors of labels in the color map `labels`, as the node computes them: a table for the first 256, else from the bits of the number. Pure.

import { cssColor, type Colormap } from "../../transfer/colormap.ts";

/** Color of a label as CSS; null for labels of more than 32 bits, whose colors the page does not compute. */
export function labelColor(label: number, table: Colormap | undefined): string | null {
  if (!Number.isInteger(label) || label < -(2 ** 31) || label >= 2 ** 32) return null;
  if (label >= 0 && label < 256) return table ? cssColor(table, label / 255) : null;
  const bits = mix32(label >>> 0);
  const value = 0.75 + (((bits >>> 16) & 0xff) * 0.25) / 255;
  const saturation = 0.4 + ((bits >>> 24) * 0.5) / 255;
  const hue = ((bits & 0xffff) * 6) / 65_536;
  const part = (offset: number) => {
    const k = (offset + hue) % 6;
    return Math.round(255 * value * (1 - saturation * Math.min(Math.max(Math.min(k, 4 - k), 0), 1)));
  };
  return `rgb(${part(5)} ${part(3)} ${part(1)})`;
}

/** Hash of the bits of a number (`lowbias32`). */
function mix32(number: number): number {
  let bits = number;
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b) >>> 0;
  return (bits ^ (bits >>> 16)) >>> 0;
}
