import { compiledSize } from '../../domain/config/compiled-size.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { createUnknownFieldFinder } from '../../domain/config/unknown-fields.ts';
import { parseStored } from '../../domain/json/json.ts';
import { type CallLimits, effectiveLimits } from '../../domain/limits.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { runningNow } from '../../domain/work/running-time.ts';
import { createSharedTime } from '../../domain/work/shared-time.ts';
import type { Db } from '../../store/db.ts';
import { findWorkspaceLimits } from '../../store/people/workspaces.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { findServingConfig, findServingServer } from '../../store/servers/servers.ts';
import { compileServer, type HostedServer, type OpenSecret } from './hosted-server.ts';

/** A served server, its size, and the text that it was compiled from. */
export type Found = { server: HostedServer; source: string; characters: number; unknownField: string | undefined };

/** Total size of compiled servers, in characters of about ten bytes. */
export const maxCharacters = 30_000_000;
/**
 * A server that counts more is not kept, because it would displace all others. The check refuses such configurations, so
 * only those have it that were stored before.
 */
const mostOfOne = maxCharacters / 2;
/**
 * Large servers are read one after the other, and those of a workspace take a tenth of the time: one that uses more of them
 * than the cache holds, in turn, would otherwise have them read and compiled all of the time.
 */
const timeOfLarge = {
  atOnce: 1,
  share: 0.1,
  mostWaiting: 100,
  rule: 'large servers of a workspace are read one at a time, and not all of the time; use fewer of them at once, or make them smaller',
};
/** Secrets as a text for comparison; a list of hosts that several secrets share is in it once. */
function secretsText(secrets: ReadonlyMap<string, OpenSecret>): string {
  const shared = [...new Set([...secrets.values()].map(({ origins }) => origins))];
  const indexes = new Map(shared.map((origins, index) => [origins, index]));
  const each = [...secrets].map(([name, { value, origins }]) => [name, value, indexes.get(origins)]);
  return JSON.stringify([each, shared]);
}

export type ServerReaderOptions = {
  db: Db;
  keyring: Keyring;
  userAgent: string;
  /** Limits of a server for which none were set. */
  defaultLimits: CallLimits;
};

/** Reads and compiles the server of a slug; one that has not changed since `before` is not compiled again. */
export type ReadServer = (slug: string, before: Found | undefined) => Promise<Found | undefined>;

export function createServerReader(options: ServerReaderOptions): ReadServer {
  const { db, keyring, userAgent } = options;
  // A long turn of this very work looks like a stop, and must not be free.
  const workClock = () => performance.now();
  const largeServers = createSharedTime({ ...timeOfLarge, clock: runningNow, workClock });
  const unknownFieldOf = createUnknownFieldFinder();
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
      const server = compileServer({ ...stored, config }, secrets, limits, userAgent);
      const size = compiledSize(config, server.filling) + source.length;
      const characters = size <= mostOfOne ? size : Number.POSITIVE_INFINITY;
      return { server, source, characters, unknownField: unknownFieldOf(config) };
    };
    const { configText } = stored;
    if (configText !== undefined) return compiled(JSON.parse(configText) as ServerConfig);
    const large = await largeServers.run(stored.workspaceId, async () => {
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
