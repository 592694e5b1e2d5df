import type { LookupAddress } from 'node:dns';
import type { Resolve } from './connector.ts';

/** Maximum concurrent lookups: in total, for one tenant, for all unverified callers, and for one of their addresses. */
export type LookupLimits = { ofAll: number; ofTenant: number; ofStrangers: number; ofAddress: number };

/** Returns a resolver for one tenant, or for one address of unverified callers. */
export type LookupsOf = (id: string) => Resolve;

export type Lookups = { ofTenant: LookupsOf; ofStranger: LookupsOf };

/** A tenant, or an address of unverified callers, and the number of its running lookups. */
type Party = { isStranger: boolean; running: number };

type Callback = Parameters<Resolve>[1];
type Outcome = Parameters<Callback>;

/** Runs `expire` when the process has run for `ms`. Returns a function that cancels it. */
type After = (ms: number, expire: () => void) => () => void;

/** Time after which a queued lookup fails. Its connection would time out soon after (`connectTimeoutMs`). */
const waitMs = 2500;
/** Number of libuv threads for lookups that are reserved for the database and the identity provider. */
const leftToOthers = 2;
const usualThreads = 4;

/**
 * Returns the lookup limits for a libuv thread pool size. `dns.lookup` blocks a libuv thread, cannot be canceled, and
 * takes ten seconds or more if a name server does not respond. Libuv uses half of its threads for such work
 * (`UV_THREADPOOL_SIZE`, 4 by default).
 */
export function lookupLimits(threadPoolSize: string | undefined): LookupLimits {
  const threads = Number(threadPoolSize) || usualThreads;
  const ofAll = Math.max(2, Math.ceil(threads / 2) - leftToOthers);
  const part = (share: number) => Math.max(1, Math.floor(ofAll * share));
  return { ofAll, ofTenant: part(1 / 3), ofStrangers: part(1 / 2), ofAddress: part(1 / 6) };
}

/**
 * Shares name lookups fairly. A tenant, or an address of unverified callers, whose name servers do not respond uses up
 * only its own share, which is at most half of the free capacity. Unverified callers leave half of all lookups to
 * tenants. Further lookups wait for a short time. Concurrent requests for the same name share one lookup.
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
  return [Object.assign(new Error('the lookup did not start in time'), { code: 'EAI_AGAIN' }), none];
}
