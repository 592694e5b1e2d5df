/** How many items may wait for one workspace, and for all together. */
export type QueueLimits = { ofWorkspace: number; ofAll: number };

/**
 * A queue in which workspaces take turns; of one workspace, first come, first served. A workspace gets no more than half of
 * the free places, so that a few which fill all they can leave some to the others.
 */
export class FairQueue<Item> {
  readonly #limits: QueueLimits;
  /** In the order of their turns. */
  readonly #waiting = new Map<string, Item[]>();
  #size = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** False when the queue is full. */
  add(workspaceId: string, item: Item): boolean {
    const items = this.#waiting.get(workspaceId) ?? [];
    const free = this.#limits.ofAll - this.#size;
    if (free <= 0 || items.length * 2 > free || items.length >= this.#limits.ofWorkspace) return false;
    items.push(item);
    this.#waiting.set(workspaceId, items);
    this.#size++;
    return true;
  }

  /** Takes the next item that may run, of the next workspace that has one. */
  next(mayRun: (workspaceId: string, item: Item) => boolean): Item | undefined {
    for (const [workspaceId, items] of this.#waiting) {
      const item = items.find((one) => mayRun(workspaceId, one));
      if (item === undefined) continue;
      this.remove(workspaceId, item);
      this.#waiting.delete(workspaceId);
      if (items.length > 0) this.#waiting.set(workspaceId, items);
      return item;
    }
    return undefined;
  }

  /** Removes an item that is no longer wanted. False if it does not wait. */
  remove(workspaceId: string, item: Item): boolean {
    const items = this.#waiting.get(workspaceId) ?? [];
    const index = items.indexOf(item);
    if (index < 0) return false;
    items.splice(index, 1);
    if (items.length === 0) this.#waiting.delete(workspaceId);
    this.#size--;
    return true;
  }

  /** Removes all items. */
  clear(): Item[] {
    const items = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#size = 0;
    return items;
  }
}
