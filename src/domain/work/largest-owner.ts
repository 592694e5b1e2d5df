/**
 * Takes up to `most` items out of a list, the oldest ones of the owner that has most: so one who adds ever more displaces
 * only its own. Of owners that have equally many, the one whose oldest item came first gives up.
 */
export function takeOfLargest<Item>(oldestFirst: Item[], ownerOf: (item: Item) => string, most: number): Item[] {
  const counts = new Map<string, number>();
  for (const item of oldestFirst) counts.set(ownerOf(item), (counts.get(ownerOf(item)) ?? 0) + 1);
  let largest = '';
  let size = 0;
  for (const [owner, count] of counts) if (count > size) [largest, size] = [owner, count];
  const taken: Item[] = [];
  let kept = 0;
  for (const item of oldestFirst) {
    if (taken.length < most && ownerOf(item) === largest) taken.push(item);
    else oldestFirst[kept++] = item;
  }
  oldestFirst.length = kept;
  return taken;
}
