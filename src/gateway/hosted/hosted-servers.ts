import { LRUCache } from 'lru-cache';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { compiledSize } from '../../domain/config/sizes.ts';
import { unknownFieldOf } from '../../domain/config/unknown-fields.ts';
import { parseJson, parseStored } from '../../domain/json/json.ts';
import { type CallLimits, effectiveLimits } from '../../domain/limits.ts';
import { isSlug } from '../../domain/slug.ts';
import type { Lookup } from '../../domain/visit.ts';
import { Gate } from '../../domain/work/gate.ts';
import { type MaybePromise, nextTurn } from '../../domain/work/next-turn.ts';
import { AppError } from '../../errors.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { findServingConfig, findServingServer } from '../../store/servers/servers.ts';
import { findWorkspaceLimits } from '../../store/workspaces.ts';
import { version as programVersion } from '../../version.ts';
import { compileServer, type HostedServer, type OpenSecret } from './hosted-server.ts';

/** The hosted servers in use, compiled and remembered by slug. */
export type HostedServers = {
  /**
   * `look` counts the query for a slug that was not seen before.
   * @throws errors of the database, when the server is not remembered
   * @throws AppError unavailable when a newer version has stored something that this one does not know; tooMany when too
   * many large servers of the workspace are read
   */
  find(slug: string, look?: Lookup): MaybePromise<HostedServer | undefined>;
  /**
   * A server as `make` compiles it otherwise than agents get it. The last one is remembered by its key; making them takes
   * a workspace a part of the time. @throws AppError tooMany
   */
  variant(whole: HostedServer, key: string, make: () => HostedServer): Promise<HostedServer>;
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

export const mostServersRemembered = 2000;
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
    max: mostServersRemembered,
    freshness: options.freshness,
    maxSize: mostCompiledCharacters,
    sizeOf: ({ characters }) => characters,
    idsOf: ({ server }) => [server.id, server.workspaceId],
    ownerOf: ({ server }) => server.workspaceId,
  });
  const variants = new WeakMap<HostedServer, { key: string; server: HostedServer }>();
  const makingVariants = new Gate(timeOfVariants);
  const absent = new LRUCache<string, true>({ max: maxAbsent, ttl: absentMs });
  let invalidated = 0;

  async function read(slug: string, before: Found | undefined, look: Lookup): Promise<{ value: Found } | undefined> {
    look?.();
    const invalidatedBefore = invalidated;
    const value = await readServer(slug, before);
    // A server created while the store was read must not be remembered as absent.
    if (!value && invalidated === invalidatedBefore) absent.set(slug, true);
    return value && { value };
  }

  return {
    find(slug, look) {
      const known = remembered.get(slug);
      if (known) return known.unknownField === undefined ? known.server : served(known);
      if (absent.has(slug) || !isSlug(slug)) return undefined;
      const found = remembered.load(slug, (before) => read(slug, before, before ? undefined : look));
      return found.then((value) => value && served(value));
    },
    async variant(whole, key, make) {
      const known = variants.get(whole);
      if (known?.key === key) return known.server;
      return makingVariants.run(whole, async () => {
        const server = make();
        // The list takes as long as the rest.
        server.toolsJson();
        variants.set(whole, { key, server });
        return server;
      });
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

/** A served server, its size, and the text that it was compiled from. */
type Found = { server: HostedServer; source: string; characters: number; unknownField: string | undefined };

/** Total size of compiled servers, in characters of about ten bytes. */
export const mostCompiledCharacters = 30_000_000;
/**
 * A server that counts more is not kept, because it would displace all others. The check refuses such configurations, so
 * only those have it that were stored before.
 */
const mostOfOne = mostCompiledCharacters / 2;
/**
 * Large servers are read a few at a time, one of a tenant, and a tenant gets a tenth of the time: one that uses more of
 * them than the cache holds, in turn, would otherwise have them read and compiled all of the time.
 */
export const timeOfLarge = {
  atOnce: 4,
  ofTenant: 1,
  share: () => 0.1,
  patienceMs: 5000,
  rule: 'large servers of one person are read one at a time, and not all of the time; use fewer of them at once, or make them smaller',
};
/** The same for servers in another mode or version. */
const timeOfVariants = {
  ...timeOfLarge,
  rule: 'servers of one person are made ready in another mode or version one at a time, and not all of the time; ask less often',
};
/** Secrets as a text for comparison; a list of hosts that several secrets share is in it once. */
function secretsText(secrets: ReadonlyMap<string, OpenSecret>): string {
  const shared = [...new Set([...secrets.values()].map(({ origins }) => origins))];
  const indexes = new Map(shared.map((origins, index) => [origins, index]));
  const each = [...secrets].map(([name, { value, origins }]) => [name, value, indexes.get(origins)]);
  return JSON.stringify([each, shared]);
}

/** Reads and compiles the server of a slug; one that has not changed since `before` is not compiled again. */
type ReadServer = (slug: string, before: Found | undefined) => Promise<Found | undefined>;

function createServerReader(options: HostedServersOptions): ReadServer {
  const { db, keyring, userAgent } = options;
  const largeServers = new Gate(timeOfLarge);
  const readServer: ReadServer = async (slug, before) => {
    const stored = await findServingServer(db, slug);
    if (!stored) return undefined;
    const secrets = await openSecrets(db, keyring, stored);
    const workspace = await findWorkspaceLimits(db, stored.workspaceId);
    const { id, version, captureUntil } = stored;
    const source = JSON.stringify([id, version, captureUntil, stored.limits, workspace, secretsText(secrets)]);
    // Compiling is most of the work, and a compiled server also keeps what its first calls added.
    if (before?.source === source) return before;
    const limits = effectiveLimits(options.defaultLimits, { server: stored.limits ?? {}, workspace });
    const compiled = (config: ServerConfig): Found => {
      const server = compileServer({ ...stored, config, source }, secrets, limits, userAgent);
      const size = compiledSize(config, server.filling) + source.length;
      const characters = size <= mostOfOne ? size : Number.POSITIVE_INFINITY;
      return { server, source, characters, unknownField: unknownFieldOf(config) };
    };
    const { configText } = stored;
    if (configText !== undefined) return compiled(parseJson(configText) as ServerConfig);
    const large = await largeServers.run(stored, async () => {
      const text = await findServingConfig(db, stored);
      if (text === undefined) return undefined;
      const config = (await parseStored(text)) as ServerConfig;
      const made = compiled(config);
      await nextTurn();
      return made;
    });
    // Another version has been stored meanwhile.
    return large ?? readServer(slug, before);
  };
  return readServer;
}
