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

/** The hosted servers in use, compiled and cached by slug. */
export type HostedServers = {
  /**
   * Finds a server. `look` charges the query for a slug that is not cached.
   * @throws database errors, if the server is not cached
   * @throws AppError unavailable if the configuration contains a field of a newer version; tooMany if too many large
   * servers of the workspace are being loaded
   */
  find(slug: string, look?: Lookup): MaybePromise<HostedServer | undefined>;
  /**
   * Returns a variant of a server, as compiled by `make`, that differs from the one that agents get. The last variant
   * is cached by its key. Each workspace gets a fraction of the time for compiling variants. @throws AppError tooMany
   */
  variant(whole: HostedServer, key: string, make: () => HostedServer): Promise<HostedServer>;
  /** Invalidates cached entries: a server by its id or slug, or all servers of a workspace. */
  invalidate(id: string): void;
  clear(): void;
  /** Returns counts since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type HostedServersOptions = {
  db: Db;
  keyring: Keyring;
  freshness: Freshness;
  userAgent: string;
  /** Limits of a server without configured limits. */
  defaultLimits: CallLimits;
};

export const mostServersRemembered = 2000;
/**
 * Time for which an unknown slug is cached, in ms. Unknown slugs are cached separately, because unverified callers
 * invent many.
 */
const absentMs = 1000;
const maxAbsent = 1000;

/**
 * Rejects a configuration that has a field of a newer version, which occurs during an upgrade and after a rollback. If
 * the field were ignored, a tool could send another request than configured, or reveal more than it should.
 */
function served({ server, unknownField }: Found): HostedServer {
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
    // A server that is created during the query must not be cached as absent.
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
        // Creating the list takes as long as everything else.
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

/** A compiled server, its size, and the text that it was compiled from. */
type Found = { server: HostedServer; source: string; characters: number; unknownField: string | undefined };

/** Maximum total size of compiled servers, in characters of about ten bytes. */
export const mostCompiledCharacters = 30_000_000;
/**
 * Maximum size of a single cached server. A larger one would evict all others. Validation rejects such configurations,
 * so only those that were stored before it existed are that large.
 */
const mostOfOne = mostCompiledCharacters / 2;
/**
 * Limits for loading large servers. A few are loaded concurrently, one per tenant, and each tenant gets a tenth of the
 * time. Otherwise a tenant that uses more large servers than fit in the cache could have them loaded and compiled all
 * the time.
 */
export const timeOfLarge = {
  atOnce: 4,
  ofTenant: 1,
  share: () => 0.1,
  patienceMs: 5000,
  rule: 'large servers of one account are loaded one at a time and for a tenth of the time; use fewer of them in parallel, or make them smaller',
};
/** Limits for compiling servers in another mode or version. */
const timeOfVariants = {
  ...timeOfLarge,
  rule: 'servers of one account are compiled in another mode or version one at a time and for a tenth of the time; request them less often',
};
/** Formats secrets as a text for comparison. It contains a host list that several secrets share only once. */
function secretsText(secrets: ReadonlyMap<string, OpenSecret>): string {
  const shared = [...new Set([...secrets.values()].map(({ origins }) => origins))];
  const indexes = new Map(shared.map((origins, index) => [origins, index]));
  const each = [...secrets].map(([name, { value, origins }]) => [name, value, indexes.get(origins)]);
  return JSON.stringify([each, shared]);
}

/** Reads and compiles the server of a slug. Returns `before` if the server has not changed since. */
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
    // Compiling is most of the work, and a compiled server also contains caches that its first calls filled.
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
    // Another version has been stored in the meantime.
    return large ?? readServer(slug, before);
  };
  return readServer;
}
