import { PartyLines, type WorkParty } from './party-lines.ts';

/** How many items may wait for one workspace, and for all together. */
export type QueueLimits = { ofWorkspace: number; ofAll: number };

/**
 * A queue in which workspaces take turns, and within a workspace its parties. A workspace gets no more than half of the
 * free slots, so that a few which fill all they can leave some to the others.
 */
export class FairQueue<Item> {
  readonly #limits: QueueLimits;
  /** In the order of their turns. */
  readonly #waiting = new Map<string, PartyLines<Item>>();
  #size = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** False when the queue is full. */
  add(workspaceId: string, item: Item, party?: WorkParty): boolean {
    const lines = this.#waiting.get(workspaceId) ?? new PartyLines<Item>(this.#limits.ofWorkspace);
    const free = this.#limits.ofAll - this.#size;
    if (free <= 0 || lines.size * 2 > free || !lines.add(item, party)) return false;
    this.#waiting.set(workspaceId, lines);
    this.#size++;
    return true;
  }

  /** Takes the next item that may run, of the next workspace that has one. */
  next(mayRun: (workspaceId: string, item: Item) => boolean): Item | undefined {
    for (const [workspaceId, lines] of this.#waiting) {
      const item = lines.next((one) => mayRun(workspaceId, one));
      if (item === undefined) continue;
      this.#size--;
      this.#waiting.delete(workspaceId);
      if (lines.size > 0) this.#waiting.set(workspaceId, lines);
      return item;
    }
    return undefined;
  }

  /** Removes an item that is no longer wanted, of the party with which it was added. False if it does not wait. */
  remove(workspaceId: string, item: Item, party?: WorkParty): boolean {
    const lines = this.#waiting.get(workspaceId);
    if (!lines?.remove(item, party)) return false;
    this.#size--;
    if (lines.size === 0) this.#waiting.delete(workspaceId);
    return true;
  }

  /** Removes all items. */
  clear(): Item[] {
    const items = [...this.#waiting.values()].flatMap((lines) => lines.items());
    this.#waiting.clear();
    this.#size = 0;
    return items;
  }
}
