import { type CallLimits, effectiveLimits } from '../domain/limits.ts';
import type { MaybePromise } from '../domain/maybe-promise.ts';
import type { Db } from '../store/database.ts';
import { createRemembered, type Freshness } from '../store/remembered.ts';
import type { Keyring } from '../store/sealing.ts';
import { openSecrets } from '../store/secrets.ts';
import { findServingServer } from '../store/servers.ts';
import { findWorkspaceLimits } from '../store/workspaces.ts';
import { compileServer, type HostedServer } from './hosted-server.ts';

/** The hosted servers in use, compiled and remembered by slug. */
export type HostedServers = {
  /** @throws whatever the database throws when the server is not remembered */
  find(slug: string): MaybePromise<HostedServer | undefined>;
  /** Forgets what changed: a server by its id or slug, or the servers of a workspace. */
  forget(id: string): void;
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

/** What is served under a slug, undefined when that is nothing, and what it was compiled from. */
type Found = { server: HostedServer | undefined; source: string };

const maxRemembered = 2000;
/** How long it is remembered that nothing is served under a slug. */
const absentMs = 1000;

export function createHostedServers(options: HostedServersOptions): HostedServers {
  const { db, keyring, userAgent } = options;
  const remembered = createRemembered<Found>({
    max: maxRemembered,
    freshness: options.freshness,
    idsOf: ({ server }) => (server ? [server.id, server.workspaceId] : []),
  });

  async function read(slug: string, before: Found | undefined): Promise<{ value: Found; lifeMs?: number }> {
    const stored = await findServingServer(db, slug);
    if (!stored) return { value: { server: undefined, source: '' }, lifeMs: absentMs };
    const secrets = await openSecrets(db, keyring, stored);
    const workspace = await findWorkspaceLimits(db, stored.workspaceId);
    const { id, version, captureUntil } = stored;
    const source = JSON.stringify([id, version, captureUntil, stored.limits, workspace, [...secrets]]);
    // Compiling is most of the work, and what was compiled keeps more that is made at the first call.
    if (before?.source === source) return { value: before };
    const limits = effectiveLimits(options.defaultLimits, { server: stored.limits ?? {}, workspace });
    return { value: { server: compileServer(stored, secrets, limits, userAgent), source } };
  }

  return {
    find(slug) {
      const known = remembered.get(slug);
      if (known) return known.server;
      return remembered.load(slug, (before) => read(slug, before)).then((found) => found?.server);
    },
    forget: remembered.forget,
    clear: remembered.clear,
    counts: remembered.counts,
  };
}
