import type { Resolve } from '@toolhost/safe-http/connector';

/** Name servers as libuv queries them: a few lookups at the same time, in order, and none can be canceled. */
export type NameServers = {
  resolve: Resolve;
  /** Names that were looked up, in order. */
  readonly requestedNames: readonly string[];
  /** Number of names that wait for a libuv thread. */
  readonly queued: number;
  /** Lets the silent name servers respond. */
  release(): void;
};

/**
 * Creates name servers that are silent about all names below `silent.example`, and return 127.0.0.1 for every other
 * name.
 */
export function createNameServers(threads: number): NameServers {
  const requestedNames: string[] = [];
  const queue: (() => void)[] = [];
  const silentLookups: (() => void)[] = [];
  let freeThreads = threads;
  const finishLookup = (respond: () => void) => {
    freeThreads++;
    queue.shift()?.();
    respond();
  };
  return {
    requestedNames,
    get queued() {
      return queue.length;
    },
    resolve(hostname, callback) {
      requestedNames.push(hostname);
      const respond = () => callback(null, [{ address: '127.0.0.1', family: 4 }]);
      const startLookup = () => {
        freeThreads--;
        if (hostname.endsWith('.silent.example')) silentLookups.push(() => finishLookup(respond));
        else setImmediate(() => finishLookup(respond));
      };
      if (freeThreads > 0) startLookup();
      else queue.push(startLookup);
    },
    release() {
      for (const finish of silentLookups.splice(0)) finish();
    },
  };
}
