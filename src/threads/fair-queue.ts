/** How many may wait of one workspace, and of all together. */
export type QueueLimits = { ofWorkspace: number; ofAll: number };

/** What waits, first come, first served within a workspace, while workspaces take turns. */
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

  /** False when there is no slot left. */
  add(workspaceId: string, item: Item): boolean {
    const beside = this.#waiting.get(workspaceId);
    if (this.#size >= this.#limits.ofAll || (beside?.length ?? 0) >= this.#limits.ofWorkspace) return false;
    if (beside) beside.push(item);
    else this.#waiting.set(workspaceId, [item]);
    this.#size++;
    return true;
  }

  /** Takes the next item of the next workspace that may have one. */
  next(mayRun: (workspaceId: string) => boolean): Item | undefined {
    for (const [workspaceId, items] of this.#waiting) {
      if (!mayRun(workspaceId)) continue;
      const item = items.shift();
      this.#size--;
      this.#waiting.delete(workspaceId);
      if (items.length > 0) this.#waiting.set(workspaceId, items);
      return item;
    }
    return undefined;
  }

  /** Takes an item out that is no longer wanted. False when it does not wait. */
  remove(workspaceId: string, item: Item): boolean {
    const items = this.#waiting.get(workspaceId) ?? [];
    const index = items.indexOf(item);
    if (index < 0) return false;
    items.splice(index, 1);
    this.#size--;
    if (items.length === 0) this.#waiting.delete(workspaceId);
    return true;
  }

  /** Takes everything out. */
  clear(): Item[] {
    const items = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#size = 0;
    return items;
  }
}
