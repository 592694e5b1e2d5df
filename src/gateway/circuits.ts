import { clearCount, createRecentCount, type RecentCount, recentTotal } from './recent-count.ts';

/** What is known of the calls of one workspace to one origin. */
export type Circuit = {
  calls: RecentCount;
  failures: RecentCount;
  /** Monotonic ms from when one attempt is let through; 0 while closed. */
  openUntil: number;
  /** Whether that attempt is under way. */
  isTried: boolean;
};

/** The circuits in use. What one workspace does never makes another one's be forgotten. */
export type Circuits = {
  of(workspaceId: string, origin: string): Circuit;
  find(workspaceId: string, origin: string): Circuit | undefined;
  all(): Iterable<Circuit>;
};

export const windowMs = 30_000;
const slots = 30;
const mostPerWorkspace = 500;
const sweepAbove = 10_000;

/** Two plain maps, as this is asked at every call. Idle circuits are forgotten now and then. */
export function createCircuits(clock: () => number): Circuits {
  const workspaces = new Map<string, Map<string, Circuit>>();
  let count = 0;
  let most = sweepAbove;

  function add(workspaceId: string, origin: string): Circuit {
    if (count >= most) {
      count = forgetIdle(workspaces, clock());
      most = Math.max(sweepAbove, count * 2);
    }
    let own = workspaces.get(workspaceId);
    if (!own) {
      own = new Map();
      workspaces.set(workspaceId, own);
    }
    if (own.size >= mostPerWorkspace) {
      own.delete(own.keys().next().value ?? '');
      count--;
    }
    const circuit = {
      calls: createRecentCount(windowMs, slots),
      failures: createRecentCount(windowMs, slots),
      openUntil: 0,
      isTried: false,
    };
    own.set(origin, circuit);
    count++;
    return circuit;
  }

  const find = (workspaceId: string, origin: string) => workspaces.get(workspaceId)?.get(origin);
  return {
    of: (workspaceId, origin) => find(workspaceId, origin) ?? add(workspaceId, origin),
    find,
    *all() {
      for (const own of workspaces.values()) yield* own.values();
    },
  };
}

/** How many are left. */
function forgetIdle(workspaces: Map<string, Map<string, Circuit>>, now: number): number {
  let left = 0;
  for (const [workspaceId, own] of workspaces) {
    for (const [origin, circuit] of own) {
      if (circuit.openUntil < now && recentTotal(circuit.calls, now) === 0) own.delete(origin);
    }
    left += own.size;
    if (own.size === 0) workspaces.delete(workspaceId);
  }
  return left;
}

export function close(circuit: Circuit): void {
  circuit.openUntil = 0;
  clearCount(circuit.calls);
  clearCount(circuit.failures);
}
