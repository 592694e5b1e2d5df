/** Ratio of two figures that were measured in pairs, with its confidence interval. */
export type Ratio = { ratio: number; low: number; high: number };

/**
 * 99% quantiles of Student's t for 1 to 15 degrees of freedom, rounded up. Each interval covers its ratio with 98%
 * confidence, so five intervals cover all five with at least 90%.
 */
const quantiles = [31.83, 6.97, 4.55, 3.75, 3.37, 3.15, 3, 2.9, 2.83, 2.77, 2.72, 2.69, 2.66, 2.63, 2.61];

/** Returns the geometric mean of `after / before`. With more than 16 pairs, the interval is slightly too wide. */
export function computeRatio(before: readonly number[], after: readonly number[]): Ratio {
  const logs = after.map((value, n) => Math.log(value / (before[n] ?? Number.NaN)));
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
  const quantile = quantiles[Math.min(logs.length - 1, quantiles.length) - 1] ?? Number.NaN;
  const halfWidth = quantile * Math.sqrt(variance / logs.length);
  return { ratio: Math.exp(mean), low: Math.exp(mean - halfWidth), high: Math.exp(mean + halfWidth) };
}
