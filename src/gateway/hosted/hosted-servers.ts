import { LRUCache } from 'lru-cache';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { createUnknownFieldFinder } from '../../domain/config/unknown-fields.ts';
import { hasEveryTool, type View } from '../../domain/config/view.ts';
import { type CallLimits, effectiveLimits } from '../../domain/limits.ts';
import { isSlug } from '../../domain/slug.ts';
import { type Lookup, lookUpDirectly } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { AppError } from '../../errors.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import type { Db } from '../../store/db.ts';
import { findWorkspaceLimits } from '../../store/people/workspaces.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { findServingServer } from '../../store/servers/servers.ts';
import { version as programVersion } from '../../version.ts';
import { compileServer, type HostedServer, type OpenSecret } from './hosted-server.ts';

/** The hosted servers in use, compiled and remembered by slug. */
export type HostedServers = {
  /**
   * `look` queries the store for a slug that was not seen before.
   * @throws errors of the database, when the server is not remembered
   * @throws AppError unavailable when a newer version has stored something that this one does not know
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
type Found = { server: HostedServer; source: string; characters: number; unknownField: string | undefined };

const maxRemembered = 2000;
/** Total length of configurations; compiled, they take about ten times as many bytes. */
const maxCharacters = 30_000_000;
/** As much as one server can count: more than half of the cache would displace all others. */
const mostOfOne = maxCharacters / 2;
/** How long an unknown slug is remembered, apart from the servers, because strangers invent many. */
const absentMs = 1000;
const maxAbsent = 1000;

/** How much of the list of tools the lists of the views are, together. */
function sharesOfViews({ tools, views = {} }: ServerConfig): number {
  const shareOf = (view: View) =>
    view.tags || hasEveryTool(view) ? 1 : Math.min(1, (view.tools?.length ?? 0) / Math.max(1, tools.length));
  return Object.values(views).reduce((sum, view) => sum + shareOf(view), 0);
}

/** Secrets as a text for comparison; a list of hosts that several secrets share is in it once. */
function secretsText(secrets: ReadonlyMap<string, OpenSecret>): string {
  const shared = [...new Set([...secrets.values()].map(({ origins }) => origins))];
  const indexes = new Map(shared.map((origins, index) => [origins, index]));
  const each = [...secrets].map(([name, { value, origins }]) => [name, value, indexes.get(origins)]);
  return JSON.stringify([each, shared]);
}

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
  const { db, keyring, userAgent } = options;
  const remembered = createRemembered<Found>({
    max: maxRemembered,
    freshness: options.freshness,
    maxSize: maxCharacters,
    sizeOf: ({ characters }) => characters,
    idsOf: ({ server }) => [server.id, server.workspaceId],
    ownerOf: ({ server }) => server.workspaceId,
  });
  const absent = new LRUCache<string, true>({ max: maxAbsent, ttl: absentMs });
  const unknownFieldOf = createUnknownFieldFinder();
  let invalidated = 0;

  async function read(slug: string, before: Found | undefined): Promise<{ value: Found } | undefined> {
    const invalidatedBefore = invalidated;
    const stored = await findServingServer(db, slug);
    if (!stored) {
      // A server created while the store was read must not be remembered as absent.
      if (invalidated === invalidatedBefore) absent.set(slug, true);
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
        characters: Math.min(
          Math.ceil(stored.configLength * (1 + sharesOfViews(stored.config))) + source.length,
          mostOfOne,
        ),
        unknownField: unknownFieldOf(stored.config),
      },
    };
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
