import type { Resolve } from '../../../src/outbound/connector.ts';

/** Name servers as libuv asks them: a few names at a time, in order, and none of them can be cancelled. */
export type NameServers = {
  resolve: Resolve;
  /** Names that were asked for, in order. */
  readonly asked: readonly string[];
  /** Names that wait for a thread of libuv. */
  readonly queued: number;
  /** Lets the name servers answer that have been silent. */
  release(): void;
};

/** Name servers that are silent about all names below `silent.example`, and say 127.0.0.1 for every other one. */
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
