/**
 * Durations are counted in classes, each at most a quarter of its lower bound wide: below 8 ms one millisecond, then 8 and
 * 9 ms, 10 and 11, 12 to 14, and so on. A class stands for its middle, so a percentile is exact below 8 ms and within an
 * eighth above. These are the lower bounds, in ms; the last class has no upper one. The table `call_counts` names
 * a class by its index, so a change of them needs a new table.
 */
export const durationClasses: readonly number[] = lowerBounds();

function lowerBounds(): number[] {
  const bounds: number[] = [];
  for (let lower = 0; lower < 30_000; lower = Math.max(lower + 1, Math.floor(lower * 1.25))) bounds.push(lower);
  return bounds;
}

/** The index of the class of a duration in ms. */
export function durationClassOf(ms: number): number {
  let [low, high] = [0, durationClasses.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((durationClasses[middle] as number) <= ms) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The duration that a class stands for, in ms. */
export function middleOfClass(index: number): number {
  const lower = durationClasses[index] ?? 0;
  const next = durationClasses[index + 1] ?? Math.floor(lower * 1.25);
  return lower + Math.floor((next - lower) / 2);
}

/** Nearest rank of durations that are counted by class; undefined when there is none. */
export function percentile(counts: readonly number[], share: number): number | undefined {
  let left = Math.ceil(counts.reduce((sum, count) => sum + count, 0) * share);
  if (left === 0) return undefined;
  return middleOfClass(
    counts.findIndex((count) => {
      left -= count;
      return left <= 0;
    }),
  );
}
