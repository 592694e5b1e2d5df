import type { QueryCharge } from '@toolhost/credentials/client-request';
import { AppError } from '@toolhost/errors/errors';
import { type MaybePromise, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { parseJson, parseStoredJson } from '@toolhost/json/json';
import { type CallLimits, effectiveLimits } from '@toolhost/limits/call-limits';
import { ConcurrencyLimiter } from '@toolhost/limits/concurrency-limiter';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { getCompiledSize } from '@toolhost/tool-config/sizes';
import { isSlug } from '@toolhost/tool-config/slug';
import { findUnknownField } from '@toolhost/tool-config/unknown-fields';
import { LRUCache } from 'lru-cache';
import { createReadThroughCache, type Freshness } from '../../store/changes/cache.ts';
import type { Db } from '../../store/db.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { findServingConfig, findServingServer } from '../../store/servers/servers.ts';
import { findWorkspaceLimits } from '../../store/workspaces.ts';
import { version as programVersion } from '../../version.ts';
import { compileServer, type DecryptedSecret, type HostedServer } from './hosted-server.ts';

/** The hosted servers in use, compiled and cached by slug. */
export type HostedServers = {
  /**
   * Finds a server. `chargeQuery` charges the query for a slug that is not cached.
   * @throws database errors, if the server is not cached
   * @throws AppError unavailable if the configuration contains a field of a newer version; tooMany if too many large
   * servers of the workspace are being loaded
   */
  find(slug: string, chargeQuery?: QueryCharge): MaybePromise<HostedServer | undefined>;
  /**
   * Returns a variant of a server that `compile` creates, and caches the last one by its key. Each tenant gets a
   * fraction of the time for compiling variants.
   * @throws AppError tooMany
   */
  getVariant(baseServer: HostedServer, key: string, compile: () => HostedServer): Promise<HostedServer>;
  /** Invalidates cached entries: a server by its id or slug, or all servers of a workspace. */
  invalidate(id: string): void;
  clear(): void;
  /** Returns counts since the start, for metrics. */
  getCounts(): { entries: number; hits: number; misses: number };
};

export type HostedServersOptions = {
  db: Db;
  keyring: Keyring;
  freshness: Freshness;
  userAgent: string;
  /** Limits of a server without configured limits. */
  defaultLimits: CallLimits;
};

export const maxCachedServers = 2000;
/**
 * Time for which an unknown slug is cached, in ms. Unknown slugs are cached separately, because unverified callers
 * invent many.
 */
const absentTtlMs = 1000;
const maxAbsentSlugs = 1000;

/**
 * Rejects a configuration that has a field of a newer version, which occurs during an upgrade and after a rollback. If
 * the field were ignored, a tool could send another request than configured, or reveal more than it should.
 */
function requireKnownFields({ server, unknownField }: CompiledEntry): HostedServer {
  if (unknownField === undefined) return server;
  throw new AppError(
    'unavailable',
    `the server's configuration contains "${unknownField}", which version ${programVersion} of the service does not support; the operator must finish the upgrade to the version that stored it`,
    { retryAfterS },
  );
}

/** Time after which another process may be able to respond, in s. */
const retryAfterS = 5;

export function createHostedServers(options: HostedServersOptions): HostedServers {
  const loadServer = createServerLoader(options);
  const cache = createReadThroughCache<CompiledEntry>({
    max: maxCachedServers,
    freshness: options.freshness,
    maxSize: maxCompiledCharacters,
    getSize: ({ characters }) => characters,
    getIds: ({ server }) => [server.id, server.workspaceId],
    getOwner: ({ server }) => server.workspaceId,
  });
  const variants = new WeakMap<HostedServer, { key: string; server: HostedServer }>();
  const variantLimiter = new ConcurrencyLimiter(variantLimits);
  const absentSlugs = new LRUCache<string, true>({ max: maxAbsentSlugs, ttl: absentTtlMs });
  let invalidationCount = 0;

  async function readEntry(
    slug: string,
    previous: CompiledEntry | undefined,
    chargeQuery: QueryCharge,
  ): Promise<{ value: CompiledEntry } | undefined> {
    chargeQuery?.();
    const invalidatedBefore = invalidationCount;
    const value = await loadServer(slug, previous);
    // A server that is created during the query must not be cached as absent.
    if (!value && invalidationCount === invalidatedBefore) absentSlugs.set(slug, true);
    return value && { value };
  }

  return {
    find(slug, chargeQuery) {
      const cached = cache.get(slug);
      if (cached) return cached.unknownField === undefined ? cached.server : requireKnownFields(cached);
      if (absentSlugs.has(slug) || !isSlug(slug)) return undefined;
      const entryPromise = cache.load(slug, (previous) =>
        readEntry(slug, previous, previous ? undefined : chargeQuery),
      );
      return entryPromise.then((value) => value && requireKnownFields(value));
    },
    async getVariant(baseServer, key, compile) {
      const cached = variants.get(baseServer);
      if (cached?.key === key) return cached.server;
      return variantLimiter.run(baseServer, async () => {
        const server = compile();
        // Created within the time of the limiter, because it takes as long as everything else.
        server.getToolsJson();
        variants.set(baseServer, { key, server });
        return server;
      });
    },
    invalidate(id) {
      invalidationCount++;
      absentSlugs.clear();
      cache.invalidate(id);
    },
    clear() {
      invalidationCount++;
      absentSlugs.clear();
      cache.clear();
    },
    getCounts: cache.counts,
  };
}

/** A compiled server, its size, and the text that it was compiled from. */
type CompiledEntry = { server: HostedServer; source: string; characters: number; unknownField: string | undefined };

/** Maximum total size of compiled servers, in characters of about ten bytes. */
export const maxCompiledCharacters = 30_000_000;
/**
 * Maximum size of a single cached server. A larger one would evict all others. Validation rejects such configurations,
 * so only those that were stored before it existed are that large.
 */
const maxServerCharacters = maxCompiledCharacters / 2;
/**
 * Limits for loading large servers. A few are loaded concurrently, one per tenant, and each tenant gets a tenth of the
 * time. Otherwise a tenant that uses more large servers than fit in the cache could have them loaded and compiled all
 * the time.
 */
export const largeServerLimits = {
  maxConcurrent: 4,
  perTenant: 1,
  cpuShare: () => 0.1,
  queueTimeoutMs: 5000,
  rule: 'large servers of one account are loaded one at a time and for a tenth of the time; use fewer of them in parallel, or make them smaller',
};

/** Limits for compiling servers in another mode or version. */
const variantLimits = {
  ...largeServerLimits,
  rule: 'servers of one account are compiled in another mode or version one at a time and for a tenth of the time; request them less often',
};

/** Formats secrets as a text for comparison. If several secrets share a list of origins, the text contains it once. */
function formatSecrets(secrets: ReadonlyMap<string, DecryptedSecret>): string {
  const originLists = [...new Set([...secrets.values()].map(({ origins }) => origins))];
  const indexes = new Map(originLists.map((origins, index) => [origins, index]));
  const entries = [...secrets].map(([name, { value, origins }]) => [name, value, indexes.get(origins)]);
  return JSON.stringify([entries, originLists]);
}

/** Reads and compiles the server of a slug. Returns `previous` if the server has not changed since. */
type LoadServer = (slug: string, previous: CompiledEntry | undefined) => Promise<CompiledEntry | undefined>;

function createServerLoader(options: HostedServersOptions): LoadServer {
  const { db, keyring, userAgent } = options;
  const largeServerLimiter = new ConcurrencyLimiter(largeServerLimits);
  const loadServer: LoadServer = async (slug, previous) => {
    const stored = await findServingServer(db, slug);
    if (!stored) return undefined;
    const secrets = await openSecrets(db, keyring, stored);
    const workspace = await findWorkspaceLimits(db, stored.workspaceId);
    const { id, version, captureUntil } = stored;
    const source = JSON.stringify([id, version, captureUntil, stored.limits, workspace, formatSecrets(secrets)]);
    // Compiling is most of the work, and a compiled server also contains caches that its first calls filled.
    if (previous?.source === source) return previous;
    const limits = effectiveLimits(options.defaultLimits, { server: stored.limits ?? {}, workspace });
    const compileEntry = (config: ServerConfig): CompiledEntry => {
      const server = compileServer({ ...stored, config, source }, secrets, limits, userAgent);
      const size = getCompiledSize(config, server.interpolation) + source.length;
      const characters = size <= maxServerCharacters ? size : Number.POSITIVE_INFINITY;
      return { server, source, characters, unknownField: findUnknownField(config) };
    };
    const { configText } = stored;
    if (configText !== undefined) return compileEntry(parseJson(configText) as ServerConfig);
    const largeEntry = await largeServerLimiter.run(stored, async () => {
      const text = await findServingConfig(db, stored);
      if (text === undefined) return undefined;
      const config = (await parseStoredJson(text)) as ServerConfig;
      const entry = compileEntry(config);
      await yieldToEventLoop();
      return entry;
    });
    // Another version has been stored in the meantime.
    return largeEntry ?? loadServer(slug, previous);
  };
  return loadServer;
}
