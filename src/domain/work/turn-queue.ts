import type { Party } from '../visit.ts';

/** Work that has begun goes first, but work that has not gets at least every sixteenth turn. */
const mostBefore = 15;

/** Those of one network who wait, or the known callers of a workspace. */
class Line<Item> {
  readonly #begun: Item[] = [];
  readonly #notBegun: Item[] = [];
  #before = 0;

  get size(): number {
    return this.#begun.length + this.#notBegun.length;
  }

  add(item: Item, hasBegun: boolean): void {
    (hasBegun ? this.#begun : this.#notBegun).push(item);
  }

  take(): Item {
    const isForBegun = this.#begun.length > 0 && (this.#notBegun.length === 0 || this.#before < mostBefore);
    this.#before = isForBegun && this.#notBegun.length > 0 ? this.#before + 1 : 0;
    return (isForBegun ? this.#begun : this.#notBegun).shift() as Item;
  }
}

/**
 * Those who wait for a turn. Workspaces take turns, and within a workspace networks do, so a workspace waits for one turn
 * of each other one, however many of them wait. Within a network, first come, first served.
 */
export class TurnQueue<Item> {
  /** In the order of their turns: whose turn it was goes to the end. */
  readonly #workspaces = new Map<string, Map<string, Line<Item>>>();

  get isEmpty(): boolean {
    return this.#workspaces.size === 0;
  }

  add({ workspaceId, network = '' }: Party, item: Item, hasBegun: boolean): void {
    const lines = this.#workspaces.get(workspaceId) ?? new Map<string, Line<Item>>();
    const line = lines.get(network) ?? new Line<Item>();
    line.add(item, hasBegun);
    lines.set(network, line);
    this.#workspaces.set(workspaceId, lines);
  }

  take(): Item | undefined {
    const [ofWorkspace] = this.#workspaces;
    if (!ofWorkspace) return undefined;
    const [workspaceId, lines] = ofWorkspace;
    const [[network, line]] = lines as unknown as [[string, Line<Item>]];
    const item = line.take();
    moveToEnd(lines, network, line.size > 0);
    moveToEnd(this.#workspaces, workspaceId, lines.size > 0);
    return item;
  }
}

/** Moves the first entry to the end, or takes it away. An only one stays: moving it would give the map a new table each time. */
function moveToEnd<Value>(map: Map<string, Value>, first: string, isKept: boolean): void {
  if (isKept && map.size === 1) return;
  const value = map.get(first) as Value;
  map.delete(first);
  if (isKept) map.set(first, value);
}
