import { createHostedServers } from '../gateway/hosted/hosted-servers.ts';
import { createApiKeyCheck, createCredentialUses } from '../store/api-keys.ts';
import type { Freshness } from '../store/changes/cache.ts';
import { type Change, followChanges } from '../store/changes/follow-changes.ts';
import { formatUserAgent } from '../version.ts';
import type { Foundation } from './foundation.ts';
import { createOutageLog } from './observability/fault-log.ts';
import { toDefaultLimits } from './operation-deps.ts';

/** Time in ms for which the caches serve while the database is unavailable. */
const maxStaleMs = 60_000;

/** Cache of database values. */
type Cache = { invalidate(id: string): void; clear(): void };

/** Creates the caches of this process, and the follower that invalidates entries when another process changes them. */
export function createCaches({ config, store, keyring, log, runtime: { clock } }: Foundation) {
  const { db, time } = store;
  const caches: Record<Change['kind'], Cache[]> = { server: [], key: [], grant: [], workspace: [] };
  const outageLog = createOutageLog(log, 'could not poll for changes', 'polling for changes works again');
  const changes = followChanges({
    db: store.changes,
    clock,
    time,
    staleMs: maxStaleMs,
    onChanges(reported) {
      for (const { kind, ref } of reported) for (const cache of caches[kind]) cache.invalidate(ref);
    },
    onGap() {
      for (const cache of new Set(Object.values(caches).flat())) cache.clear();
    },
    onError: outageLog.onError,
    onSuccess: outageLog.onSuccess,
  });
  const freshness: Freshness = { clock, fresh: changes.fresh, isUp: () => changes.state().isUp };
  /** Lets changes of these kinds invalidate entries of the cache from now on. */
  const invalidateOn = (cache: Cache, ...kinds: readonly Change['kind'][]) => {
    for (const kind of kinds) caches[kind].push(cache);
  };
  const credentialUses = createCredentialUses(store.records, time.now);
  const keys = createApiKeyCheck(db, { now: time.now, freshness, onUse: credentialUses.recordKeyUse });
  invalidateOn(keys, 'key', 'workspace');
  const servers = createHostedServers({
    db,
    keyring,
    freshness,
    userAgent: formatUserAgent(config.baseUrl),
    defaultLimits: toDefaultLimits(config),
  });
  invalidateOn(servers, 'server', 'workspace');
  return { keys, credentialUses, servers, changes, freshness, invalidateOn };
}

export type Caches = ReturnType<typeof createCaches>;
