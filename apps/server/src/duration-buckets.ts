/**
 * Lower bounds of the duration buckets, in ms. Each bucket is at most a quarter of its lower bound wide: one
 * millisecond below 8 ms, then 8–9 ms, 10–11, 12–14, and so on; the last bucket has no upper bound. A bucket stands for
 * its middle, so a percentile is exact below 8 ms and within an eighth above. The table `call_counts` stores the
 * bucket's index, so changing the bounds needs a new table.
 */
export const durationBuckets: readonly number[] = computeLowerBounds();

function computeLowerBounds(): number[] {
  const bounds: number[] = [];
  for (let lower = 0; lower < 30_000; lower = Math.max(lower + 1, Math.floor(lower * 1.25))) bounds.push(lower);
  return bounds;
}

/** Returns the index of the bucket for a duration in ms. */
export function getDurationBucket(ms: number): number {
  let [low, high] = [0, durationBuckets.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((durationBuckets[middle] as number) <= ms) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Returns the duration that a bucket stands for, in ms. */
export function getBucketMiddle(index: number): number {
  const lower = durationBuckets[index] ?? 0;
  const upper = durationBuckets[index + 1] ?? Math.floor(lower * 1.25);
  return lower + Math.floor((upper - lower) / 2);
}

/** Returns the nearest-rank percentile in ms of durations counted per bucket. `share` 0.95 is the 95th percentile. */
export function getPercentile(counts: readonly number[], share: number): number | undefined {
  let remaining = Math.ceil(counts.reduce((sum, count) => sum + count, 0) * share);
  if (remaining === 0) return undefined;
  return getBucketMiddle(
    counts.findIndex((count) => {
      remaining -= count;
      return remaining <= 0;
    }),
  );
}
