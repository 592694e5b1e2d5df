/** Counts recent events, one count per time slot; the oldest slot is dropped as time passes. */
export type RecentCount = { slotMs: number; slots: number[]; slot: number; total: number };

/** The window covered is `windowMs` at most, and one slot less at least. */
export function createRecentCount(windowMs: number, slots: number): RecentCount {
  return { slotMs: windowMs / slots, slots: new Array<number>(slots).fill(0), slot: 0, total: 0 };
}

/** `now` is monotonic, in ms. */
export function countAt(count: RecentCount, now: number): void {
  dropOld(count, now);
  const at = count.slot % count.slots.length;
  count.slots[at] = (count.slots[at] as number) + 1;
  count.total++;
}

export function recentTotal(count: RecentCount, now: number): number {
  dropOld(count, now);
  return count.total;
}

export function clearCount(count: RecentCount): void {
  count.slots.fill(0);
  count.total = 0;
}

function dropOld(count: RecentCount, now: number): void {
  const slot = Math.floor(now / count.slotMs);
  if (slot === count.slot) return;
  const { slots } = count;
  for (let passed = Math.min(slot - count.slot, slots.length); passed > 0; passed--) {
    const at = (slot - passed + 1) % slots.length;
    count.total -= slots[at] as number;
    slots[at] = 0;
  }
  count.slot = slot;
}
