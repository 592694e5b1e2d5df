/**
 * Takes up to `most` items out of a list: the oldest ones of the owner that has most, and when these are all, those of the
 * owner that has most after it. So one who adds ever more displaces only its own, and a list of many small owners gets
 * room as well. Of owners that have equally many, the one whose oldest item came first gives up.
 */
export function takeOfLargest<Item>(oldestFirst: Item[], ownerOf: (item: Item) => string, most: number): Item[] {
  const shares = sharesOf(countsOf(oldestFirst, ownerOf), most);
  const taken: Item[] = [];
  let kept = 0;
  for (const item of oldestFirst) {
    const owner = ownerOf(item);
    const share = shares.get(owner) ?? 0;
    if (share > 0) {
      taken.push(item);
      shares.set(owner, share - 1);
    } else oldestFirst[kept++] = item;
  }
  oldestFirst.length = kept;
  return taken;
}

function countsOf<Item>(items: readonly Item[], ownerOf: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(ownerOf(item), (counts.get(ownerOf(item)) ?? 0) + 1);
  return counts;
}

/** How many items each owner gives up, of `most` in all. */
function sharesOf(counts: ReadonlyMap<string, number>, most: number): Map<string, number> {
  const shares = new Map<string, number>();
  let left = most;
  for (const [owner, count] of [...counts].toSorted(([, one], [, other]) => other - one)) {
    if (left <= 0) break;
    shares.set(owner, Math.min(count, left));
    left -= count;
  }
  return shares;
}
