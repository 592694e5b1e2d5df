import { LRUCache } from 'lru-cache';
import { type CallLimits, effectiveLimits } from '../../domain/limits.ts';
import type { MaybePromise } from '../../domain/maybe-promise.ts';
import { isSlug } from '../../domain/slug.ts';
import { type Lookup, lookUpDirectly } from '../../domain/visit.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import type { Db } from '../../store/db.ts';
import { findWorkspaceLimits } from '../../store/people/workspaces.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { findServingServer } from '../../store/servers/servers.ts';
import { compileServer, type HostedServer, type OpenSecret } from './hosted-server.ts';

/** The hosted servers in use, compiled and remembered by slug. */
export type HostedServers = {
  /**
   * `look` queries the store for a slug that was not seen before.
   * @throws errors of the database, when the server is not remembered
   */
  find(slug: string, look?: Lookup): MaybePromise<HostedServer | undefined>;
  /** Drops changed entries: a server by its id or slug, or the servers of a workspace. */
  invalidate(id: string): void;
  clear(): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type HostedServersOptions = {
  db: Db;
  keyring: Keyring;
  freshness: Freshness;
  userAgent: string;
  /** Limits of a server for which none were set. */
  defaultLimits: CallLimits;
};

/** A served server, and the text that it was compiled from. */
type Found = { server: HostedServer; source: string; characters: number };

const maxRemembered = 2000;
/** Total length of configurations; compiled, they take about ten times as many bytes. */
const maxCharacters = 30_000_000;
/** How long an unknown slug is remembered, apart from the servers, because strangers invent many. */
const absentMs = 1000;
const maxAbsent = 1000;

/** Secrets as a text for comparison; a list of hosts that several secrets share is in it once. */
function secretsText(secrets: ReadonlyMap<string, OpenSecret>): string {
  const shared = [...new Set([...secrets.values()].map(({ origins }) => origins))];
  const indexes = new Map(shared.map((origins, index) => [origins, index]));
  const each = [...secrets].map(([name, { value, origins }]) => [name, value, indexes.get(origins)]);
  return JSON.stringify([each, shared]);
}

export function createHostedServers(options: HostedServersOptions): HostedServers {
  const { db, keyring, userAgent } = options;
  const remembered = createRemembered<Found>({
    max: maxRemembered,
    freshness: options.freshness,
    maxSize: maxCharacters,
    sizeOf: ({ characters }) => characters,
    idsOf: ({ server }) => [server.id, server.workspaceId],
  });
  const absent = new LRUCache<string, true>({ max: maxAbsent, ttl: absentMs });
  let invalidated = 0;

  async function read(slug: string, before: Found | undefined): Promise<{ value: Found } | undefined> {
    const forgottenBefore = invalidated;
    const stored = await findServingServer(db, slug);
    if (!stored) {
      // A server created while the store was read must not be remembered as absent.
      if (invalidated === forgottenBefore) absent.set(slug, true);
      return undefined;
    }
    const secrets = await openSecrets(db, keyring, stored);
    const workspace = await findWorkspaceLimits(db, stored.workspaceId);
    const { id, version, captureUntil } = stored;
    const source = JSON.stringify([id, version, captureUntil, stored.limits, workspace, secretsText(secrets)]);
    // Compiling is most of the work, and a compiled server also keeps what its first calls added.
    if (before?.source === source) return { value: before };
    const limits = effectiveLimits(options.defaultLimits, { server: stored.limits ?? {}, workspace });
    return {
      value: {
        server: compileServer(stored, secrets, limits, userAgent),
        source,
        characters: stored.configLength + source.length,
      },
    };
  }

  return {
    find(slug, look = lookUpDirectly) {
      const known = remembered.get(slug);
      if (known) return known.server;
      if (absent.has(slug) || !isSlug(slug)) return undefined;
      const found = remembered.load(slug, (before) => {
        const ask = () => read(slug, before);
        return before ? ask() : look(ask);
      });
      return found.then((value) => value?.server);
    },
    invalidate(id) {
      invalidated++;
      absent.clear();
      remembered.invalidate(id);
    },
    clear() {
      invalidated++;
      absent.clear();
      remembered.clear();
    },
    counts: remembered.counts,
  };
}
