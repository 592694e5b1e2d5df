/**
 * Whom work is done for within a workspace. Strangers may be one person under many names: credentials that nothing
 * proves, and logins.
 */
export type WorkParty = { readonly name: string; readonly isStranger: boolean };

/** How many items may wait for one workspace, and for all together. */
export type QueueLimits = { ofWorkspace: number; ofAll: number };

/**
 * What waits for one workspace. Strangers together and all others take turns, and in each of the two, parties do; of one
 * party, first come, first served. So nobody waits for more than one item of strangers, however many these are.
 */
class PartyLines<Item> {
  readonly #most: number;
  readonly #lines = { strangers: new Map<string, Item[]>(), others: new Map<string, Item[]>() };
  #size = 0;
  #ofStrangers = 0;
  #isTurnOfStrangers = false;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * False when there is no room. A party gets no more than half of the places that are left, and strangers together no
   * more than half of all.
   */
  add(item: Item, party: WorkParty | undefined): boolean {
    const free = this.#most - this.#size;
    if (free <= 0) return false;
    const lines = this.#linesOf(party);
    const line = lines.get(nameOf(party));
    if (party && (line?.length ?? 0) * 2 > free) return false;
    if (party?.isStranger && this.#ofStrangers * 2 >= this.#most) return false;
    if (line) line.push(item);
    else lines.set(nameOf(party), [item]);
    this.#count(party, 1);
    return true;
  }

  /** Takes the next item that may run. */
  next(mayRun: (item: Item) => boolean): Item | undefined {
    const { strangers, others } = this.#lines;
    for (const lines of this.#isTurnOfStrangers ? [strangers, others] : [others, strangers]) {
      for (const [name, items] of lines) {
        const index = items.findIndex(mayRun);
        if (index < 0) continue;
        const [item] = items.splice(index, 1);
        lines.delete(name);
        if (items.length > 0) lines.set(name, items);
        this.#isTurnOfStrangers = lines === others;
        this.#count({ name, isStranger: lines === strangers }, -1);
        return item;
      }
    }
    return undefined;
  }

  /** False if it does not wait. */
  remove(item: Item, party: WorkParty | undefined): boolean {
    const lines = this.#linesOf(party);
    const items = lines.get(nameOf(party)) ?? [];
    const index = items.indexOf(item);
    if (index < 0) return false;
    items.splice(index, 1);
    if (items.length === 0) lines.delete(nameOf(party));
    this.#count(party, -1);
    return true;
  }

  items(): Item[] {
    const { strangers, others } = this.#lines;
    return [...others.values(), ...strangers.values()].flat();
  }

  #linesOf(party: WorkParty | undefined): Map<string, Item[]> {
    return party?.isStranger ? this.#lines.strangers : this.#lines.others;
  }

  #count(party: WorkParty | undefined, change: number): void {
    this.#size += change;
    if (party?.isStranger) this.#ofStrangers += change;
  }
}

/** Work without a party is that of the workspace itself. */
function nameOf(party: WorkParty | undefined): string {
  return party?.name ?? '';
}

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
