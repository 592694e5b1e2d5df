import type { LookupAddress } from 'node:dns';
import type { Resolve } from './connector.ts';

/** How many names are looked up at once: in all, for one tenant, for all strangers, and for one of their addresses. */
export type LookupLimits = { ofAll: number; ofTenant: number; ofStrangers: number; ofAddress: number };

/** Looks up names for one tenant, or for one address of strangers. */
export type LookupsOf = (id: string) => Resolve;

export type Lookups = { ofTenant: LookupsOf; ofStranger: LookupsOf };

/** A tenant, or an address of strangers, and the number of its lookups that run. */
type Party = { isStranger: boolean; running: number };

type Callback = Parameters<Resolve>[1];
type Outcome = Parameters<Callback>;

/** Runs `expire` when the process has run for `ms`. Returns a function that cancels it. */
type After = (ms: number, expire: () => void) => () => void;

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
  const part = (share: number) => Math.max(1, Math.floor(ofAll * share));
  return { ofAll, ofTenant: part(1 / 3), ofStrangers: part(1 / 2), ofAddress: part(1 / 6) };
}

/**
 * Shares lookups of names fairly: a tenant, or an address of strangers, whose name servers are silent uses its own
 * share, which is at most half of what is left. Strangers leave half of all lookups to tenants. Further lookups wait for
 * a short time. All who want the same name share one lookup.
 */
export function createLookups(resolve: Resolve, most: LookupLimits, after: After): Lookups {
  const running = new Map<string, Callback[]>();
  const parties = new Map<string, Party>();
  const waiting = new Set<Waiting>();
  let ofStrangers = 0;

  function mayStart({ isStranger, running: own }: Party): boolean {
    const free = isStranger
      ? Math.min(most.ofAll - running.size, most.ofStrangers - ofStrangers)
      : most.ofAll - running.size;
    return free > 0 && own < (isStranger ? most.ofAddress : most.ofTenant) && own * 2 <= free;
  }

  function count(key: string, party: Party, change: 1 | -1): void {
    party.running += change;
    if (party.isStranger) ofStrangers += change;
    if (party.running > 0) parties.set(key, party);
    else parties.delete(key);
  }

  function start({ key, party, hostname, settle }: Waiting): void {
    const callbacks = [settle];
    running.set(hostname, callbacks);
    count(key, party, 1);
    resolve(hostname, (...outcome) => {
      running.delete(hostname);
      count(key, party, -1);
      for (const one of callbacks) one(...outcome);
      startWaiting();
    });
  }

  function startWaiting(): void {
    for (const one of waiting) {
      const shared = running.get(one.hostname);
      if (!shared && running.size >= most.ofAll) return;
      const party = parties.get(one.key) ?? one.party;
      if (!shared && !mayStart(party)) continue;
      waiting.delete(one);
      if (shared) shared.push(one.settle);
      else start({ ...one, party });
    }
  }

  function wait(asked: Waiting): void {
    const settle: Callback = (...outcome) => {
      cancel();
      asked.settle(...outcome);
    };
    const one = { ...asked, settle };
    const cancel = after(waitMs, () => {
      if (waiting.delete(one)) asked.settle(...tooLate());
    });
    waiting.add(one);
  }

  const lookupsOf =
    (isStranger: boolean): LookupsOf =>
    (id) =>
    (hostname, settle) => {
      const key = `${isStranger} ${id}`;
      const party = parties.get(key) ?? { isStranger, running: 0 };
      const shared = running.get(hostname);
      if (shared) shared.push(settle);
      else if (mayStart(party)) start({ key, party, hostname, settle });
      else wait({ key, party, hostname, settle });
    };
  return { ofTenant: lookupsOf(false), ofStranger: lookupsOf(true) };
}

type Waiting = { key: string; party: Party; hostname: string; settle: Callback };

function tooLate(): Outcome {
  const none: LookupAddress[] = [];
  return [Object.assign(new Error('the lookup did not begin in time'), { code: 'EAI_AGAIN' }), none];
}
