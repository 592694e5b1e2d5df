import type { Filling } from '../../domain/config/filling/filled-lengths.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { createUnknownFieldFinder } from '../../domain/config/unknown-fields.ts';
import { hasEveryTool, type View } from '../../domain/config/view.ts';
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

/** A served server, and the text that it was compiled from. */
export type Found = { server: HostedServer; source: string; characters: number; unknownField: string | undefined };

/** Total length of configurations; compiled, they take about ten times as many bytes. */
export const maxCharacters = 30_000_000;
/** As much as one server can count: more than half of the cache would displace all others. */
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
/** How much of the list of tools the lists of the views are, together. */
function sharesOfViews({ tools, views = {} }: ServerConfig): number {
  const shareOf = (view: View) =>
    view.tags || hasEveryTool(view) ? 1 : Math.min(1, (view.tools?.length ?? 0) / Math.max(1, tools.length));
  return Object.values(views).reduce((sum, view) => sum + shareOf(view), 0);
}

/** What a compiled tool counts besides its text, as ten bytes each, and each header of the server that it has. */
const countOf = { tool: 500, sharedHeader: 2 };
/** A URL is compiled to a list of its parts, which takes five times as much as other texts. */
const moreOfUrl = 4;

/** The size of a compiled server in characters of its configuration, and of what is filled in it. */
function charactersOf(config: ServerConfig, length: number, { urls, inUrls, elsewhere }: Filling): number {
  const text = length + inUrls + moreOfUrl * (urls + inUrls);
  const ofTool = countOf.tool + countOf.sharedHeader * Object.keys(config.headers ?? {}).length;
  // The tools of views that fix arguments share one copy of what is filled.
  const copies = config.views === undefined ? 1 : 2;
  const ofTools = text + ofTool * config.tools.length;
  return Math.ceil(ofTools * (1 + sharesOfViews(config))) + copies * elsewhere;
}

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
    const compiled = (config: ServerConfig, length: number): Found => {
      const server = compileServer({ ...stored, config }, secrets, limits, userAgent);
      const characters = charactersOf(config, length, server.filling) + source.length;
      return { server, source, characters: Math.min(characters, mostOfOne), unknownField: unknownFieldOf(config) };
    };
    const { configText } = stored;
    if (configText !== undefined) return compiled(JSON.parse(configText) as ServerConfig, configText.length);
    const large = await largeServers.run(stored.workspaceId, async () => {
      const text = await findServingConfig(db, stored);
      if (text === undefined) return undefined;
      await nextTurn();
      const config = JSON.parse(text) as ServerConfig;
      await nextTurn();
      const made = compiled(config, text.length);
      await nextTurn();
      return made;
    });
    // Another version has been stored meanwhile.
    return large ?? readServer(slug, before);
  };
  return readServer;
}
