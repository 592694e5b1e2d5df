import { performance } from 'node:perf_hooks';
import { OutboundError } from '../errors.ts';
import { type Connect, Connection } from './connection.ts';
import { guardedConnector } from './connector.ts';
import type { OutboundOptions, Transfer } from './http-client.ts';

/** Maximum connections of a process. Each takes a file descriptor and about 50 KB of memory. */
export const mostUpstreamConnections = 4096;
export const mostPerPool = 128;
/** Maximum idle connections of one tenant that are kept for later requests. */
export const mostIdlePerTenant = 1024;
export const keepAliveMs = 10_000;
/** Keep-alive time of a connection that has carried one request. Most callers send only one. */
export const firstKeepAliveMs = 2000;
const sweepMs = 1000;
/** Requests with a shorter timeout do not wait for a connection's quiet period. */
const hurryMs = 1000;
/** Quiet period of a connection after a response, to detect unsolicited bytes. */
const restMs = 50;
/**
 * Number of quiet periods without unsolicited bytes after which an upstream is trusted and its connections are reused
 * immediately.
 */
const provenRests = 100;
/** Time for which connections to an upstream that sent unsolicited bytes carry one request each. */
const distrustMs = 10 * 60_000;
/** Number of upstreams to remember. One tenant can use three quarters of it. */
const rememberedUpstreams = 2700;

/** An origin as used by one workspace. */
type Upstream = {
  workspaceId: string;
  origin: string;
  /** Origin as a URL, for undici. */
  url: URL;
  connect: Connect;
  /**
   * Number of quiet periods without unsolicited bytes. From `provenRests` on, connections may be reused immediately.
   */
  rests: number;
  /** Time until which each connection carries only one request, in monotonic ms. */
  distrustedUntil: number;
};

/** A tenant. `requests` counts those that have a connection. */
type Tenant = { id: string; requests: number; workspaces: number };

type Workspace = {
  id: string;
  tenant: Tenant;
  pools: number;
  /**
   * Pools for more than one request, by origin and then by credential digest. A single key would have to be
   * concatenated for each call.
   */
  reusable: Map<string, Map<string, Pool>>;
};

/** Connections that may carry each other's requests: same workspace, origin, and credentials. */
export type Pool = {
  /** Undefined for the pool of a single request. */
  readonly credentialHash: string | undefined;
  readonly upstream: Upstream;
  readonly workspace: Workspace;
  /** Ordered by idle time, longest first. */
  readonly idle: Connection[];
  /** In order of arrival. */
  readonly waiting: Transfer[];
  /** Number of connections, idle or not. */
  connections: number;
  /** Callback that next looks for a connection for the waiting transfers. */
  turn: NodeJS.Immediate | undefined;
  rest: NodeJS.Timeout | undefined;
};

type Memory<Value> = { get(key: string): Value | undefined; set(key: string, value: Value): void };
type MemoryOptions<Value> = { max: number; ownerOf: (value: Value) => string };

/** Creates a cache with a maximum size, in which the values of one owner cannot evict those of all others. */
export type MakeMemory = <Value extends object>(options: MemoryOptions<Value>) => Memory<Value>;

/**
 * All upstream connections of a process. Decides who may use which connection, how many there may be, and how long they
 * are kept.
 */
export class Connections {
  readonly #options: OutboundOptions;
  readonly #clock: () => number;
  readonly #most: number;
  /** Header that marks every request: name and value. */
  readonly #mark: readonly string[];
  readonly #open = new Set<Connection>();
  readonly #pools = new Set<Pool>();
  readonly #workspaces = new Map<string, Workspace>();
  readonly #tenants = new Map<string, Tenant>();
  readonly #upstreams: Memory<Upstream>;
  #requests = 0;
  #unasked = 0;
  #isClosed = false;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#clock = options.clock ?? performance.now.bind(performance);
    this.#most = options.mostConnections ?? mostUpstreamConnections;
    this.#mark = [options.hopHeader, '1'];
    this.#upstreams = options.createMemory({ max: rememberedUpstreams, ownerOf: ({ workspaceId }) => workspaceId });
  }

  get counts() {
    const waiting = this.#pools.values().reduce((sum, pool) => sum + pool.waiting.length, 0);
    const { size: connections } = this.#open;
    return { pools: this.#pools.size, connections, running: this.#requests, waiting, unasked: this.#unasked };
  }

  /**
   * Starts a transfer immediately or once a connection is ready, or fails it.
   * @throws TypeError if the origin of its exchange is not a URL
   */
  begin(transfer: Transfer): void {
    const { workspaceId, origin, credentialHash, timeoutMs } = transfer.exchange;
    const workspace = this.#workspaces.get(workspaceId) ?? this.#newWorkspace(workspaceId);
    // A tenant may use at most as many as are still free, so another tenant always finds a connection.
    const isTooMany = workspace.tenant.requests >= this.#most - this.#requests;
    if (this.#isClosed || isTooMany) transfer.fail(this.#isClosed ? stopping() : tooManyRequests(workspace.tenant));
    if (transfer.isSettled) return;
    const known = credentialHash === undefined ? undefined : workspace.reusable.get(origin)?.get(credentialHash);
    const pool = known ?? this.#addPool(workspace, origin, credentialHash);
    const ready = pool.waiting.length > 0 ? undefined : this.#ready(pool);
    const willRest = timeoutMs >= hurryMs && pool.idle.length > pool.waiting.length;
    const connection = ready ?? (willRest ? undefined : this.#openIn(pool));
    if (connection) this.#lend(connection, transfer);
    else if (pool.connections > 0) {
      transfer.waitsIn = pool;
      pool.waiting.push(transfer);
      this.#awaitRest(pool);
    } else {
      transfer.fail(tooManyRequests(workspace.tenant));
      this.#dropUnused(pool);
    }
  }

  /** Returns a connection after a complete response. */
  giveBack(connection: Connection): void {
    const { pool } = connection;
    this.#requests--;
    pool.workspace.tenant.requests--;
    connection.transfer = undefined;
    connection.isAsked = false;
    connection.served++;
    connection.idleSince = this.#clock();
    const isLast = connection.isSpoilt || pool.credentialHash === undefined || this.#isClosed;
    if (isLast || pool.upstream.distrustedUntil > connection.idleSince) this.#end(connection);
    else {
      pool.idle.push(connection);
      if (pool.waiting.length > 0) this.#giveTurn(pool);
    }
  }

  /** Closes a connection after anything other than a complete response. */
  discard(connection: Connection): void {
    this.#requests--;
    connection.pool.workspace.tenant.requests--;
    this.#end(connection);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeping);
    for (const pool of this.#pools) {
      clearTimeout(pool.rest);
      clearImmediate(pool.turn);
      for (const transfer of pool.waiting.splice(0)) transfer.fail(stopping());
    }
    await Promise.all([...this.#open].map((connection) => connection.end()));
  }

  /**
   * Checks out a connection. Until the upstream is trusted, a request over a reused connection waits for the next turn
   * of the event loop, and undici writes it one turn later. So bytes that arrived while this process was too busy to
   * read are read first.
   */
  #lend(connection: Connection, transfer: Transfer): void {
    const { upstream, workspace } = connection.pool;
    this.#requests++;
    workspace.tenant.requests++;
    connection.transfer = transfer;
    transfer.connection = connection;
    if (connection.served === 0 || upstream.rests >= provenRests) connection.send(this.#mark);
    else setImmediate(() => connection.send(this.#mark));
  }

  /**
   * Returns a connection whose quiet period is over. For a trusted upstream, returns any idle one, longest idle first.
   */
  #ready({ idle, upstream }: Pool): Connection | undefined {
    const first = idle[0];
    if (!first) return undefined;
    const since = this.#clock() - restMs;
    if (first.idleSince > since) return upstream.rests >= provenRests ? idle.shift() : undefined;
    upstream.rests++;
    // The upstream is least likely to close the most recently used of these connections.
    let last = idle.length - 1;
    while ((idle[last] as Connection).idleSince > since) last--;
    return idle.splice(last, 1)[0];
  }

  /** Opens a connection. Returns undefined if too many connections carry requests. */
  #openIn(pool: Pool): Connection | undefined {
    if (pool.connections >= mostPerPool) return undefined;
    const isFull = this.#open.size >= this.#most;
    const longest = isFull ? this.#longestIdle(pool.workspace) : undefined;
    if (isFull && !longest) return undefined;
    // Counted before the other connection closes. That may be of this pool, and a pool without connections is dropped.
    pool.connections++;
    if (longest) this.endIdle(longest);
    const connection = new Connection(pool, this);
    this.#open.add(connection);
    this.#sweeping ??= setInterval(() => this.#sweep(), sweepMs).unref();
    return connection;
  }

  /** Closes a connection if it is idle. */
  endIdle(connection: Connection): void {
    const { idle } = connection.pool;
    const index = idle.indexOf(connection);
    if (index < 0) return;
    idle.splice(index, 1);
    this.#end(connection);
  }

  #end(connection: Connection): void {
    const { pool } = connection;
    pool.connections--;
    this.#open.delete(connection);
    if (this.#open.size === 0) {
      clearInterval(this.#sweeping);
      this.#sweeping = undefined;
    }
    void connection.end();
    if (pool.waiting.length > 0) this.#giveTurn(pool);
    else this.#dropUnused(pool);
  }

  /** Serves waiting transfers after undici has seen any bytes after the last response. */
  #giveTurn(pool: Pool): void {
    pool.turn ??= setImmediate(() => this.#serveWaiting(pool));
  }

  /** Serves waiting transfers after the quiet period of the first connection. */
  #awaitRest(pool: Pool): void {
    const first = pool.idle[0];
    if (!first || pool.rest) return;
    const leftMs = first.idleSince + restMs - this.#clock();
    pool.rest = setTimeout(() => this.#serveWaiting(pool), Math.max(1, leftMs));
  }

  #serveWaiting(pool: Pool): void {
    const { waiting } = pool;
    clearTimeout(pool.rest);
    pool.rest = undefined;
    pool.turn = undefined;
    while (waiting.length > 0) {
      const connection = this.#ready(pool) ?? (waiting.length > pool.idle.length ? this.#openIn(pool) : undefined);
      if (!connection && pool.connections > 0) break;
      const transfer = waiting.shift() as Transfer;
      if (connection) this.#lend(connection, transfer);
      else transfer.fail(tooManyRequests(pool.workspace.tenant));
    }
    if (waiting.length > 0) this.#awaitRest(pool);
    this.#dropUnused(pool);
  }

  #newWorkspace(id: string): Workspace {
    const ofTenant = this.#options.tenantOf(id);
    const tenant = this.#tenants.get(ofTenant) ?? { id: ofTenant, requests: 0, workspaces: 0 };
    return { id, tenant, pools: 0, reusable: new Map() };
  }

  /**
   * Adds a pool. It exists as long as it has connections or waiting transfers. @throws TypeError if `origin` is not a
   * URL
   */
  #addPool(workspace: Workspace, origin: string, credentialHash: string | undefined): Pool {
    const upstream = this.#upstreamOf(workspace.id, origin);
    const none = { connections: 0, turn: undefined, rest: undefined };
    const pool: Pool = { credentialHash, upstream, workspace, idle: [], waiting: [], ...none };
    this.#pools.add(pool);
    if (workspace.pools++ === 0) {
      this.#workspaces.set(workspace.id, workspace);
      this.#tenants.set(workspace.tenant.id, workspace.tenant);
      workspace.tenant.workspaces++;
    }
    if (credentialHash !== undefined) {
      const { reusable } = workspace;
      reusable.set(origin, (reusable.get(origin) ?? new Map()).set(credentialHash, pool));
    }
    return pool;
  }

  #dropUnused(pool: Pool): void {
    if (pool.connections > 0 || pool.waiting.length > 0 || !this.#pools.delete(pool)) return;
    const { workspace, credentialHash, upstream } = pool;
    if (--workspace.pools === 0) {
      this.#workspaces.delete(workspace.id);
      if (--workspace.tenant.workspaces === 0) this.#tenants.delete(workspace.tenant.id);
    }
    if (credentialHash === undefined) return;
    const ofOrigin = workspace.reusable.get(upstream.origin);
    ofOrigin?.delete(credentialHash);
    if (ofOrigin?.size === 0) workspace.reusable.delete(upstream.origin);
  }

  #upstreamOf(workspaceId: string, origin: string): Upstream {
    const key = `${workspaceId} ${origin}`;
    const known = this.#upstreams.get(key);
    if (known) return known;
    // Undici reads the URL's origin for each request, and computing it takes 2 µs.
    const url = Object.defineProperty(new URL(origin), 'origin', { value: origin });
    const { allow, proxy, lookupsOf, onBlocked = () => undefined } = this.#options;
    const connect = guardedConnector(url, allow, lookupsOf(workspaceId), onBlocked, proxy);
    const upstream = { workspaceId, origin, url, connect, rests: 0, distrustedUntil: Number.NEGATIVE_INFINITY };
    this.#upstreams.set(key, upstream);
    return upstream;
  }

  /** Marks an upstream that sent unsolicited bytes as untrusted, because it may do so again. */
  noteUnasked(upstream: Upstream): void {
    this.#unasked++;
    const now = this.#clock();
    if (upstream.distrustedUntil <= now) this.#options.onUnasked?.(upstream.workspaceId, upstream.origin);
    upstream.distrustedUntil = now + distrustMs;
    upstream.rests = 0;
    for (const pool of this.#pools) {
      if (pool.upstream === upstream) for (const connection of [...pool.idle]) this.endIdle(connection);
    }
  }

  /** Returns the connection that has been idle longest: of the same tenant or, if it has none, of any tenant. */
  #longestIdle({ tenant }: Workspace): Connection | undefined {
    let own: Connection | undefined;
    let any: Connection | undefined;
    for (const { idle } of this.#pools) {
      const [first] = idle;
      if (!first) continue;
      if (!any || first.idleSince < any.idleSince) any = first;
      if (first.pool.workspace.tenant === tenant && (!own || first.idleSince < own.idleSince)) own = first;
    }
    return own ?? any;
  }

  /** Closes connections that have been idle for too long, and the oldest ones of tenants with too many. */
  #sweep(): void {
    const now = this.#clock();
    const kept: Connection[] = [];
    for (const connection of [...this.#pools].flatMap(({ idle }) => idle)) {
      const keepMs = connection.served > 1 ? keepAliveMs : firstKeepAliveMs;
      if (now - connection.idleSince >= keepMs) this.endIdle(connection);
      else kept.push(connection);
    }
    for (const list of Map.groupBy(kept, ({ pool }) => pool.workspace.tenant).values()) {
      if (list.length <= mostIdlePerTenant) continue;
      list.sort((a, b) => b.idleSince - a.idleSince);
      for (const connection of list.slice(mostIdlePerTenant)) this.endIdle(connection);
    }
  }
}

function stopping(): OutboundError {
  return new OutboundError('reset', 'the service is stopping, so nothing was sent to the upstream');
}

function tooManyRequests({ requests }: Tenant): OutboundError {
  return new OutboundError(
    'no_connection',
    `the workspaces of this owner have ${requests} upstream requests in progress, which is their share of this process's capacity; try again in a moment`,
  );
}
