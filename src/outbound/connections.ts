import type { Connection } from './connection.ts';
import type { Connect } from './connector.ts';
import type { Exchange } from './exchange.ts';
import { Pool, type Shared, type WorkspaceLoad } from './pool.ts';
import { createUpstream, distrust, type Upstream } from './upstream.ts';

/** Connections of a process; each takes a file descriptor and about 50 KB of memory. */
const usualMost = 4096;
/** Idle connections that one workspace keeps for later requests. */
const mostIdlePerWorkspace = 1024;
const keepAliveMs = 10_000;
/** For a connection that has carried one request: most callers are seen once. */
const firstKeepAliveMs = 2000;
const sweepMs = 1000;
/** One workspace can fill three fourths of it. */
const rememberedUpstreams = 2700;

type Memory<Value> = { get(key: string): Value | undefined; set(key: string, value: Value): void };
type MemoryOptions<Value> = { max: number; ownerOf: (value: Value) => string };

/** Makes a memory of so many values, in which those of one owner do not displace those of all others. */
export type MakeMemory = <Value extends object>(options: MemoryOptions<Value>) => Memory<Value>;

export type ConnectionsOptions = {
  createMemory: MakeMemory;
  /** Creates the function that connects a workspace to an origin. */
  connectorOf: (origin: string, workspaceId: string) => Connect;
  /** Monotonic ms. */
  clock: () => number;
  /** Reports an upstream that sent bytes which no request asked for. */
  onUnasked: (workspaceId: string, origin: string) => void;
  mostConnections: number | undefined;
};

/** All connections of a process: who may use which, how many there may be, and how long they are kept. */
export class Connections implements Shared {
  readonly clock: () => number;
  isClosed = false;
  readonly #options: ConnectionsOptions;
  readonly #most: number;
  readonly #open = new Set<Connection>();
  readonly #pools = new Set<Pool>();
  readonly #workspaces = new Map<string, WorkspaceLoad>();
  readonly #upstreams: Memory<Upstream>;
  #requests = 0;
  #unasked = 0;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#most = options.mostConnections ?? usualMost;
    this.clock = options.clock;
    this.#upstreams = options.createMemory({ max: rememberedUpstreams, ownerOf: ({ workspaceId }) => workspaceId });
  }

  /** The pool of a request, which lives as long as it has connections. @throws TypeError when `origin` is not a URL */
  poolFor({ workspaceId, origin, credentialHash }: Exchange): Pool {
    let workspace = this.#workspaces.get(workspaceId);
    const known = credentialHash === undefined ? undefined : workspace?.reusable.get(origin)?.get(credentialHash);
    if (known) return known;
    workspace ??= { id: workspaceId, requests: 0, pools: 0, reusable: new Map() };
    const pool = new Pool(credentialHash, this.#upstreamOf(workspaceId, origin), workspace, this);
    this.#workspaces.set(workspaceId, workspace);
    this.#pools.add(pool);
    workspace.pools++;
    if (credentialHash !== undefined) {
      const { reusable } = workspace;
      reusable.set(origin, (reusable.get(origin) ?? new Map()).set(credentialHash, pool));
    }
    return pool;
  }

  get counts() {
    const waiting = this.#pools.values().reduce((sum, pool) => sum + pool.waiting, 0);
    const { size: connections } = this.#open;
    return { pools: this.#pools.size, connections, running: this.#requests, waiting, unasked: this.#unasked };
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.#sweeping);
    for (const pool of this.#pools) pool.close();
    await Promise.all([...this.#open].map((connection) => connection.end()));
  }

  /** A workspace may use at most as much as is still free, so another workspace always finds a connection. */
  mayBegin(workspace: WorkspaceLoad): boolean {
    return workspace.requests < this.#most - this.#requests;
  }

  makeSlot(workspace: WorkspaceLoad): boolean {
    if (this.#open.size < this.#most) return true;
    const pool = this.#longestIdle(workspace);
    pool?.endIdle(pool.idle[0] as Connection);
    return pool !== undefined;
  }

  count(workspace: WorkspaceLoad, change: 1 | -1): void {
    this.#requests += change;
    workspace.requests += change;
  }

  onOpened(connection: Connection): void {
    this.#open.add(connection);
    this.#sweeping ??= setInterval(() => this.#sweep(), sweepMs).unref();
  }

  onEnded(connection: Connection): void {
    this.#open.delete(connection);
    if (this.#open.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }

  onUnasked({ upstream, workspace }: Pool): void {
    this.#unasked++;
    if (distrust(upstream, this.clock())) this.#options.onUnasked(workspace.id, upstream.origin);
    for (const pool of this.#pools) {
      if (pool.upstream === upstream) for (const connection of [...pool.idle]) pool.endIdle(connection);
    }
  }

  onUnused(pool: Pool): void {
    if (!this.#pools.delete(pool)) return;
    const { workspace, credentialHash, upstream } = pool;
    if (--workspace.pools === 0) this.#workspaces.delete(workspace.id);
    if (credentialHash === undefined) return;
    const ofOrigin = workspace.reusable.get(upstream.origin);
    ofOrigin?.delete(credentialHash);
    if (ofOrigin?.size === 0) workspace.reusable.delete(upstream.origin);
  }

  #upstreamOf(workspaceId: string, origin: string): Upstream {
    const key = `${workspaceId} ${origin}`;
    const known = this.#upstreams.get(key);
    if (known) return known;
    const upstream = createUpstream(workspaceId, origin, this.#options.connectorOf(origin, workspaceId));
    this.#upstreams.set(key, upstream);
    return upstream;
  }

  /** The pool with the connection that has been idle longest, in the workspace itself or, if it has none, in any. */
  #longestIdle(workspace: WorkspaceLoad): Pool | undefined {
    let worst: Pool | undefined;
    for (const pool of this.#pools) {
      const since = pool.idle[0]?.idleSince;
      if (since === undefined) continue;
      const isOwn = pool.workspace === workspace;
      const isWorstOwn = worst?.workspace === workspace;
      const isOlder = worst === undefined || since < (worst.idle[0] as Connection).idleSince;
      if (isOwn === isWorstOwn ? isOlder : isOwn || worst === undefined) worst = pool;
    }
    return worst;
  }

  /** Ends connections that have been idle for too long, and the oldest of workspaces that keep too many. */
  #sweep(): void {
    const now = this.clock();
    const kept = new Map<WorkspaceLoad, { pool: Pool; connection: Connection }[]>();
    for (const pool of this.#pools) {
      for (const connection of [...pool.idle]) {
        const keepMs = connection.served > 1 ? keepAliveMs : firstKeepAliveMs;
        if (now - connection.idleSince >= keepMs) pool.endIdle(connection);
        else {
          const list = kept.get(pool.workspace) ?? [];
          list.push({ pool, connection });
          kept.set(pool.workspace, list);
        }
      }
    }
    for (const list of kept.values()) {
      const surplus = list.length - mostIdlePerWorkspace;
      if (surplus <= 0) continue;
      list.sort((a, b) => a.connection.idleSince - b.connection.idleSince);
      for (const { pool, connection } of list.slice(0, surplus)) pool.endIdle(connection);
    }
  }
}
