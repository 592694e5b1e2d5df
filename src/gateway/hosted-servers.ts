import { LRUCache } from 'lru-cache';
import { type CallLimits, effectiveLimits } from '../domain/limits.ts';
import type { MaybePromise } from '../domain/maybe-promise.ts';
import type { Db } from '../store/database.ts';
import type { Keyring } from '../store/sealing.ts';
import { openSecrets } from '../store/secrets.ts';
import { findServingServer, type StoredServer } from '../store/servers.ts';
import { findWorkspaceLimits } from '../store/workspaces.ts';
import { compileServer, type HostedServer } from './hosted-server.ts';

/** The hosted servers in use, compiled and remembered by slug. */
export type HostedServers = {
  /** @throws whatever the database throws when the server is not remembered */
  find(slug: string): MaybePromise<HostedServer | undefined>;
  /** Forgets a server by its id or slug, because it changed. */
  forget(ref: string): void;
  /** Forgets the servers of a workspace, because its limits changed. */
  forgetWorkspace(id: string): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type HostedServersOptions = {
  db: Db;
  keyring: Keyring;
  isFresh: () => boolean;
  userAgent: string;
  /** Limits of a server for which none were set. */
  defaultLimits: CallLimits;
};

const maxRemembered = 2000;
const absentTtlMs = 1000;

/** A slug that nobody serves is remembered as `false`, for a second. */
export function createHostedServers(options: HostedServersOptions): HostedServers {
  const remembered = new LRUCache<string, HostedServer | false>({ max: maxRemembered });
  const loading = new Map<string, Promise<HostedServer | undefined>>();
  let generation = 0;
  const counts = { hits: 0, misses: 0 };

  async function compile(stored: StoredServer): Promise<HostedServer> {
    const secrets = await openSecrets(options.db, options.keyring, stored);
    const workspace = await findWorkspaceLimits(options.db, stored.workspaceId);
    const limits = effectiveLimits(options.defaultLimits, { server: stored.limits ?? {}, workspace });
    return compileServer(stored, secrets, limits, options.userAgent);
  }

  async function load(slug: string): Promise<HostedServer | undefined> {
    const started = generation;
    const stored = await findServingServer(options.db, slug);
    const server = stored && (await compile(stored));
    // What changed while it was being read must not be remembered in its old form.
    if (started === generation) remembered.set(slug, server ?? false, server ? {} : { ttl: absentTtlMs });
    return server;
  }

  function forgetWhere(isMeant: (server: HostedServer) => boolean): void {
    generation++;
    loading.clear();
    for (const [slug, server] of remembered.entries()) if (server && isMeant(server)) remembered.delete(slug);
  }

  return {
    find(slug) {
      const known = options.isFresh() ? remembered.get(slug) : undefined;
      counts[known === undefined ? 'misses' : 'hits']++;
      if (known !== undefined) return known || undefined;
      const underWay = loading.get(slug);
      if (underWay) return underWay;
      const started = load(slug).finally(() => loading.delete(slug));
      loading.set(slug, started);
      return started;
    },
    counts: () => ({ entries: remembered.size, ...counts }),
    forget(ref) {
      forgetWhere((server) => server.id === ref);
      remembered.delete(ref);
    },
    forgetWorkspace: (id) => forgetWhere((server) => server.workspaceId === id),
  };
}
