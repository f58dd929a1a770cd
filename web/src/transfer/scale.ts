//! Scales of the editor. Opacity has a square-root scale: useful opacities per voxel are small and would not be
//! distinguishable on a linear one.

export interface Domain {
  readonly low: number;
  readonly high: number;
}

/** Domain of the editor: all values that occur and all of the color range. */
export function domainOf(range: readonly [number, number], occurring: Domain | null): Domain {
  const low = Math.min(range[0], occurring?.low ?? range[0]);
  const high = Math.max(range[1], occurring?.high ?? range[1]);
  return low < high ? { low, high } : { low: low - 0.5, high: low + 0.5 };
}

/** Horizontal position of a value: 0 at the left edge, 1 at the right one. */
export function fractionOf(domain: Domain, value: number): number {
  return (value - domain.low) / (domain.high - domain.low);
}

export function valueAt(domain: Domain, fraction: number): number {
  return domain.low + fraction * (domain.high - domain.low);
}

/** Height of an opacity: 0 at the bottom, 1 at the top. */
export function heightOf(alpha: number): number {
  return Math.sqrt(Math.max(0, alpha));
}

export function alphaAt(height: number): number {
  const bounded = Math.min(Math.max(height, 0), 1);
  return bounded * bounded;
}

/** Counts as heights from 0 to 1 on a logarithmic scale. */
export function logHeights(counts: readonly number[]): number[] {
  const max = Math.log1p(counts.reduce((a, b) => Math.max(a, b), 0));
  return counts.map((count) => (max > 0 ? Math.log1p(count) / max : 0));
}
