import type { Resolve } from '../../../src/outbound/connector.ts';

/** Name servers as libuv queries them: a few lookups at the same time, in order, and none can be canceled. */
export type NameServers = {
  resolve: Resolve;
  /** Names that were looked up, in order. */
  readonly asked: readonly string[];
  /** Number of names that wait for a libuv thread. */
  readonly queued: number;
  /** Lets the silent name servers respond. */
  release(): void;
};

/**
 * Creates name servers that are silent about all names below `silent.example`, and return 127.0.0.1 for every other
 * name.
 */
export function nameServers(threads: number): NameServers {
  const asked: string[] = [];
  const queue: (() => void)[] = [];
  const held: (() => void)[] = [];
  let free = threads;
  const end = (answer: () => void) => {
    free++;
    queue.shift()?.();
    answer();
  };
  return {
    asked,
    get queued() {
      return queue.length;
    },
    resolve(hostname, callback) {
      asked.push(hostname);
      const answer = () => callback(null, [{ address: '127.0.0.1', family: 4 }]);
      const ask = () => {
        free--;
        if (hostname.endsWith('.silent.example')) held.push(() => end(answer));
        else setImmediate(() => end(answer));
      };
      if (free > 0) ask();
      else queue.push(ask);
    },
    release() {
      for (const one of held.splice(0)) one();
    },
  };
}
