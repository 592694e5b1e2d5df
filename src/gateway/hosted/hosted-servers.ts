import { LRUCache } from 'lru-cache';
import type { CallLimits } from '../../domain/limits.ts';
import { isSlug } from '../../domain/slug.ts';
import { type Lookup, lookUpDirectly } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { AppError } from '../../errors.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { version as programVersion } from '../../version.ts';
import type { HostedServer } from './hosted-server.ts';
import { createServerReader, type Found, maxCharacters } from './server-reader.ts';

/** The hosted servers in use, compiled and remembered by slug. */
export type HostedServers = {
  /**
   * `look` queries the store for a slug that was not seen before.
   * @throws errors of the database, when the server is not remembered
   * @throws AppError unavailable when a newer version has stored something that this one does not know; tooMany when too
   * many large servers of the workspace are read
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

const maxRemembered = 2000;
/** How long an unknown slug is remembered, apart from the servers, because strangers invent many. */
const absentMs = 1000;
const maxAbsent = 1000;

/**
 * While the service is upgraded, and after a version was gone back to, a configuration may have a field of a newer version.
 * Without it a tool could send another request than was configured, or show more than it should.
 */
function served({ server, unknownField }: Found): HostedServer {
  if (unknownField === undefined) return server;
  throw new AppError(
    'unavailable',
    `this server has "${unknownField}" in its configuration, which version ${programVersion} of the service does not know; its operator has to finish the upgrade to the version that stored it`,
    { retryAfterS },
  );
}

/** Time in which another process may answer. */
const retryAfterS = 5;

export function createHostedServers(options: HostedServersOptions): HostedServers {
  const readServer = createServerReader(options);
  const remembered = createRemembered<Found>({
    max: maxRemembered,
    freshness: options.freshness,
    maxSize: maxCharacters,
    sizeOf: ({ characters }) => characters,
    idsOf: ({ server }) => [server.id, server.workspaceId],
    ownerOf: ({ server }) => server.workspaceId,
  });
  const absent = new LRUCache<string, true>({ max: maxAbsent, ttl: absentMs });
  let invalidated = 0;

  async function read(slug: string, before: Found | undefined): Promise<{ value: Found } | undefined> {
    const invalidatedBefore = invalidated;
    const value = await readServer(slug, before);
    // A server created while the store was read must not be remembered as absent.
    if (!value && invalidated === invalidatedBefore) absent.set(slug, true);
    return value && { value };
  }

  return {
    find(slug, look = lookUpDirectly) {
      const known = remembered.get(slug);
      if (known) return served(known);
      if (absent.has(slug) || !isSlug(slug)) return undefined;
      const found = remembered.load(slug, (before) => {
        const ask = () => read(slug, before);
        return before ? ask() : look(ask);
      });
      return found.then((value) => value && served(value));
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
