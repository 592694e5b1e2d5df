import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Returns the bytes that are still reachable after a full collection: the heap and the external memory that it refers
 * to.
 */
export function measureReachableBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // The second collection frees memory that finalizers released.
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Counts the resources of one kind that keep this process running, such as 'Timeout' or 'TCPSocketWrap'. */
export function countActiveResources(kind: string): number {
  return process.getActiveResourcesInfo().filter((resourceKind) => resourceKind === kind).length;
}
