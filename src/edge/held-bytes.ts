export type HeldBytesOptions = {
  mostBytes: number;
  /** How long a new one is spared, in ms, up to twice `mostBytes`. Not at all when absent. */
  spareMs?: number;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
};

/** What is held for a client: whose it is, and how to give it up. */
export type Holding = { party: string; bytes: number; giveUp: () => void };

type Party<Key> = { bytes: number /** In the order of their beginnings. */; keys: Set<Key> };
type Held<Key> = { party: Party<Key>; name: string; bytes: number; since: number; giveUp: () => void };

/** Memory that clients hold by being slow, counted by party. */
export type HeldBytes<Key> = {
  add(key: Key, holding: Holding): void;
  /** Sets the bytes of one that was added. Returns false when there is none. */
  resize(key: Key, bytes: number): boolean;
  release(key: Key): void;
};

/**
 * Above the limit the party that holds most loses what it began first: nobody who holds little pays for others, and what
 * goes on at a usual pace is gone long before it is the oldest.
 */
export function createHeldBytes<Key extends object>({
  mostBytes,
  spareMs = 0,
  clock,
}: HeldBytesOptions): HeldBytes<Key> {
  const held = new Map<Key, Held<Key>>();
  const parties = new Map<string, Party<Key>>();
  let all = 0;

  function resize(key: Key, bytes: number): boolean {
    const one = held.get(key);
    if (!one) return false;
    all += bytes - one.bytes;
    one.party.bytes += bytes - one.bytes;
    one.bytes = bytes;
    while (all > mostBytes && giveUpOne());
    return true;
  }

  function release(key: Key): void {
    const one = held.get(key);
    if (!one) return;
    held.delete(key);
    all -= one.bytes;
    one.party.bytes -= one.bytes;
    one.party.keys.delete(key);
    if (one.party.keys.size === 0) parties.delete(one.name);
  }

  /** Returns false when the one to give up is spared. */
  function giveUpOne(): boolean {
    const { keys } = largestOf(parties.values());
    const key = keys.values().next().value as Key;
    const { since, giveUp } = held.get(key) as Held<Key>;
    if (all <= 2 * mostBytes && clock() - since < spareMs) return false;
    release(key);
    giveUp();
    return true;
  }

  return {
    add(key, { party: name, bytes, giveUp }) {
      const party = parties.get(name) ?? { bytes: 0, keys: new Set() };
      parties.set(name, party);
      party.keys.add(key);
      held.set(key, { party, name, bytes: 0, since: clock(), giveUp });
      resize(key, bytes);
    },
    resize,
    release,
  };
}

function largestOf<Key>(parties: Iterable<Party<Key>>): Party<Key> {
  let largest: Party<Key> = { bytes: -1, keys: new Set() };
  for (const party of parties) if (party.bytes > largest.bytes) largest = party;
  return largest;
}
