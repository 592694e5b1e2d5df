import type { LookupAddress } from 'node:dns';
import type { Resolve } from './connector.ts';

/** How many names are looked up at once, in all and for one workspace. */
export type LookupLimits = { ofAll: number; ofWorkspace: number };

/** Looks up names for one workspace. */
export type LookupsOf = (workspaceId: string) => Resolve;

type Callback = Parameters<Resolve>[1];
type Outcome = Parameters<Callback>;

/** A lookup that has not begun by then fails. Its connection would be given up soon after (`connectTimeoutMs`). */
const waitMs = 2500;
/** Threads of libuv for lookups that are left to the database and the identity provider. */
const leftToOthers = 2;
const usualThreads = 4;

/**
 * `dns.lookup` waits in a thread of libuv, cannot be cancelled, and takes ten seconds and more where a name server is
 * silent. Libuv gives half of its threads to such work (`UV_THREADPOOL_SIZE`, 4 unless it is set).
 */
export function lookupLimits(threadPoolSize: string | undefined): LookupLimits {
  const threads = Number(threadPoolSize) || usualThreads;
  const ofAll = Math.max(2, Math.ceil(threads / 2) - leftToOthers);
  return { ofAll, ofWorkspace: Math.max(1, Math.floor(ofAll / 3)) };
}

/**
 * Shares lookups of names fairly between workspaces: one whose name servers are silent uses its own share, which is at
 * most half of what is left. Further lookups wait for a short time. All who want the same name share one lookup.
 */
export function createLookups(resolve: Resolve, most: LookupLimits): LookupsOf {
  const running = new Map<string, Callback[]>();
  const runningOf = new Map<string, number>();
  const waiting = new Set<Waiting>();

  function mayStart(workspaceId: string): boolean {
    const own = runningOf.get(workspaceId) ?? 0;
    const free = most.ofAll - running.size;
    return free > 0 && own < most.ofWorkspace && own * 2 <= free;
  }

  function start(workspaceId: string, hostname: string, callback: Callback): void {
    const callbacks = [callback];
    running.set(hostname, callbacks);
    runningOf.set(workspaceId, (runningOf.get(workspaceId) ?? 0) + 1);
    resolve(hostname, (...outcome) => {
      running.delete(hostname);
      const left = (runningOf.get(workspaceId) ?? 1) - 1;
      if (left > 0) runningOf.set(workspaceId, left);
      else runningOf.delete(workspaceId);
      for (const one of callbacks) one(...outcome);
      startWaiting();
    });
  }

  function startWaiting(): void {
    for (const one of waiting) {
      const { workspaceId, hostname, settle } = one;
      const shared = running.get(hostname);
      if (!shared && running.size >= most.ofAll) return;
      if (!shared && !mayStart(workspaceId)) continue;
      waiting.delete(one);
      if (shared) shared.push(settle);
      else start(workspaceId, hostname, settle);
    }
  }

  function wait(workspaceId: string, hostname: string, callback: Callback): void {
    const settle: Callback = (...outcome) => {
      clearTimeout(timer);
      callback(...outcome);
    };
    const one: Waiting = { workspaceId, hostname, settle };
    const timer = setTimeout(() => {
      if (waiting.delete(one)) callback(...tooLate());
    }, waitMs);
    timer.unref();
    waiting.add(one);
  }

  return (workspaceId) => (hostname, callback) => {
    const shared = running.get(hostname);
    if (shared) shared.push(callback);
    else if (mayStart(workspaceId)) start(workspaceId, hostname, callback);
    else wait(workspaceId, hostname, callback);
  };
}

type Waiting = { workspaceId: string; hostname: string; settle: Callback };

function tooLate(): Outcome {
  const none: LookupAddress[] = [];
  return [Object.assign(new Error('the lookup did not begin in time'), { code: 'EAI_AGAIN' }), none];
}
