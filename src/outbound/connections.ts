import { performance } from 'node:perf_hooks';
import { OutboundError } from '../errors.ts';
import { type Connect, Connection } from './connection.ts';
import { guardedConnector } from './connector.ts';
import type { OutboundOptions, Transfer } from './http-client.ts';

/** Connections of a process; each takes a file descriptor and about 50 KB of memory. */
export const mostUpstreamConnections = 4096;
export const mostPerPool = 128;
/** Idle connections that one tenant keeps for later requests. */
export const mostIdlePerTenant = 1024;
export const keepAliveMs = 10_000;
/** For a connection that has carried one request: most callers are seen once. */
export const firstKeepAliveMs = 2000;
const sweepMs = 1000;
/** A request with a shorter timeout than this does not wait for a connection to rest. */
const hurryMs = 1000;
/** How long a connection rests after an answer, to detect bytes that no request asked for. */
const restMs = 50;
/** Number of rests without such bytes after which connections are reused at once. */
const provenRests = 100;
/** How long connections to an upstream that sent an unasked byte carry one request each. */
const distrustMs = 10 * 60_000;
/** One tenant can fill three fourths of it. */
const rememberedUpstreams = 2700;

/** An origin as used by one workspace. */
type Upstream = {
  workspaceId: string;
  origin: string;
  /** The origin as a URL, for undici. */
  url: URL;
  connect: Connect;
  /** Number of rests in which a connection was quiet. From `provenRests` on connections may be reused at once. */
  rests: number;
  /** Time until which a connection carries one request only, in monotonic ms. */
  distrustedUntil: number;
};

/** `requests`: those that have a connection. */
type Tenant = { id: string; requests: number; workspaces: number };

type Workspace = {
  id: string;
  tenant: Tenant;
  pools: number;
  /**
   * Pools for more than one request, by origin and then by digest of the credentials: a single key would have to be joined
   * for each call.
   */
  reusable: Map<string, Map<string, Pool>>;
};

/** Connections that may carry each other's requests: same workspace, origin and credentials. */
export type Pool = {
  /** Undefined for the pool of a single request. */
  readonly credentialHash: string | undefined;
  readonly upstream: Upstream;
  readonly workspace: Workspace;
  /** Ordered by idle time, the longest first. */
  readonly idle: Connection[];
  /** In order of arrival. */
  readonly waiting: Transfer[];
  /** How many there are, idle or not. */
  connections: number;
  /** The next looks for a connection for those that wait. */
  turn: NodeJS.Immediate | undefined;
  rest: NodeJS.Timeout | undefined;
};

type Memory<Value> = { get(key: string): Value | undefined; set(key: string, value: Value): void };
type MemoryOptions<Value> = { max: number; ownerOf: (value: Value) => string };

/** Makes a memory of so many values, in which those of one owner do not displace those of all others. */
export type MakeMemory = <Value extends object>(options: MemoryOptions<Value>) => Memory<Value>;

/** All connections of a process: who may use which, how many there may be, and how long they are kept. */
export class Connections {
  readonly #options: OutboundOptions;
  readonly #clock: () => number;
  readonly #most: number;
  /** The header that marks every request, name and value. */
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
   * Starts a transfer now or once a connection is ready, or fails it.
   * @throws TypeError when the origin of its exchange is not a URL
   */
  begin(transfer: Transfer): void {
    const { workspaceId, origin, credentialHash, timeoutMs } = transfer.exchange;
    const workspace = this.#workspaces.get(workspaceId) ?? this.#newWorkspace(workspaceId);
    // A tenant may use at most as much as is still free, so another tenant always finds a connection.
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

  /** Takes a connection back after a whole answer. */
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

  /** Ends a connection after anything else than a whole answer. */
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
   * Until the upstream is proven, a request over a connection that was used before waits for the next turn of the event
   * loop, and undici writes it a turn later. So bytes that came while this process was too busy to read are read first.
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

  /** A rested connection; with a proven upstream any idle one, the longest idle first. */
  #ready({ idle, upstream }: Pool): Connection | undefined {
    const first = idle[0];
    if (!first) return undefined;
    const since = this.#clock() - restMs;
    if (first.idleSince > since) return upstream.rests >= provenRests ? idle.shift() : undefined;
    upstream.rests++;
    // Among rested connections the upstream is least likely to close the one used last.
    let last = idle.length - 1;
    while ((idle[last] as Connection).idleSince > since) last--;
    return idle.splice(last, 1)[0];
  }

  /** A new connection; undefined when there are too many that carry requests. */
  #openIn(pool: Pool): Connection | undefined {
    if (pool.connections >= mostPerPool) return undefined;
    const isFull = this.#open.size >= this.#most;
    const longest = isFull ? this.#longestIdle(pool.workspace) : undefined;
    if (isFull && !longest) return undefined;
    // Counted before the other one ends, which may be of this pool: one without connections is dropped.
    pool.connections++;
    if (longest) this.endIdle(longest);
    const connection = new Connection(pool, this);
    this.#open.add(connection);
    this.#sweeping ??= setInterval(() => this.#sweep(), sweepMs).unref();
    return connection;
  }

  /** Ends a connection if it is idle. */
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

  /** Serves waiting transfers after undici has seen any bytes behind the last answer. */
  #giveTurn(pool: Pool): void {
    pool.turn ??= setImmediate(() => this.#serveWaiting(pool));
  }

  /** Serves waiting transfers when the first connection has rested. */
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

  /** A pool lives as long as it has connections, or transfers that wait. @throws TypeError when `origin` is not a URL */
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
    // Undici reads the origin of the URL for each request, and computing it takes 2 µs.
    const url = Object.defineProperty(new URL(origin), 'origin', { value: origin });
    const { allow, proxy, lookupsOf, onBlocked = () => undefined } = this.#options;
    const connect = guardedConnector(url, allow, lookupsOf(workspaceId), onBlocked, proxy);
    const upstream = { workspaceId, origin, url, connect, rests: 0, distrustedUntil: Number.NEGATIVE_INFINITY };
    this.#upstreams.set(key, upstream);
    return upstream;
  }

  /** Distrusts an upstream that sent bytes which no request asked for, as it may do so again. */
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

  /** The connection that has been idle longest, of the tenant itself or, if it has none, of any. */
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

  /** Ends connections that have been idle for too long, and the oldest of tenants that keep too many. */
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
    `this workspace and the others of its creator have ${requests} requests to upstreams under way, which is their share of what this process can carry; try again in a moment`,
  );
}
