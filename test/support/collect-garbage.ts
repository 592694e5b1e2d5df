import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes that are still reachable: the heap and what hangs on it outside, after a full collection. */
export function reachableBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // The second collection frees memory released by finalisers.
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** How many of one kind of resource keep this process running: 'Timeout', 'TCPSocketWrap', … */
export function activeResources(kind: string): number {
  return process.getActiveResourcesInfo().filter((found) => found === kind).length;
}
