import type { Buffer } from 'node:buffer';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { OutboundError } from '@toolhost/errors/errors';
import { getFairShare } from '@toolhost/limits/concurrency-limiter';
import { Connection, createClosedError } from './connection.ts';
import { createGuardedConnector } from './connector.ts';
import type { OutboundOptions } from './http-client.ts';
import type { Connect } from './open-socket.ts';
import type { Transfer } from './transfer.ts';

/** Maximum connections of a process. Each takes a file descriptor and about 50 KB of memory. */
export const maxUpstreamConnections = 4096;
export const maxPerPool = 128;
/** Maximum idle connections of one tenant that are kept for later requests. */
export const maxIdlePerTenant = 1024;
export const keepAliveMs = 10_000;
/** Keep-alive time of a connection that has carried one request. Most callers send only one. */
export const firstKeepAliveMs = 2000;
const sweepMs = 1000;
/** Requests with a shorter timeout do not wait for a connection's quiet period. */
const minWaitTimeoutMs = 1000;
/** Quiet period of a connection after a response, to detect unsolicited bytes. */
const quietPeriodMs = 50;
/**
 * Number of quiet periods without unsolicited bytes after which an upstream is trusted and its connections are reused
 * without one.
 */
const trustedQuietPeriods = 100;
/** Time for which connections to an upstream that sent unsolicited bytes carry one request each. */
const untrustedMs = 10 * 60_000;
/** Number of upstreams to remember. One tenant can use three quarters of it. */
const maxUpstreams = 2700;

/** An origin as used by one workspace. */
type Upstream = {
  workspaceId: string;
  origin: string;
  /** Value of the Host header. */
  host: string;
  connect: Connect;
  /**
   * Number of quiet periods without unsolicited bytes. From `trustedQuietPeriods` on, connections may be reused without
   * one.
   */
  quietPeriods: number;
  /** Time until which each connection carries only one request, in monotonic ms. */
  untrustedUntil: number;
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
  /** Pending callback that serves the waiting transfers. */
  serveImmediate: NodeJS.Immediate | undefined;
  quietTimer: NodeJS.Timeout | undefined;
};

type Cache<Value> = { get(key: string): Value | undefined; set(key: string, value: Value): void };
type CacheOptions<Value> = { max: number; getOwner: (value: Value) => string };

/** Creates a cache with a maximum size, in which the values of one owner cannot evict those of all others. */
export type CreateCache = <Value extends object>(options: CacheOptions<Value>) => Cache<Value>;

/**
 * All upstream connections of a process. Decides who may use which connection, how many there may be, and how long they
 * are kept.
 */
export class Connections {
  readonly #options: OutboundOptions;
  readonly #clock: () => number;
  readonly #maxConnections: number;
  /** Name of the header that marks every request. */
  readonly hopHeader: string;
  readonly #open = new Set<Connection>();
  readonly #pools = new Set<Pool>();
  readonly #workspaces = new Map<string, Workspace>();
  readonly #tenants = new Map<string, Tenant>();
  readonly #upstreams: Cache<Upstream>;
  #requests = 0;
  #unsolicitedCount = 0;
  #malformedCount = 0;
  /** Connections whose requests are sent at the end of this turn of the event loop, and of the next one. */
  #outbox: Connection[] = [];
  #nextOutbox: Connection[] = [];
  #outboxImmediate: NodeJS.Immediate | undefined;
  #isClosed = false;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#clock = options.clock ?? performance.now.bind(performance);
    this.#maxConnections = options.maxConnections ?? maxUpstreamConnections;
    this.hopHeader = options.hopHeader;
    this.#upstreams = options.createCache({ max: maxUpstreams, getOwner: ({ workspaceId }) => workspaceId });
  }

  get load() {
    const waiting = this.#pools.values().reduce((sum, pool) => sum + pool.waiting.length, 0);
    const { size: connections } = this.#open;
    return {
      pools: this.#pools.size,
      connections,
      running: this.#requests,
      waiting,
      unsolicited: this.#unsolicitedCount,
      malformed: this.#malformedCount,
    };
  }

  /**
   * Starts a transfer immediately or once a connection is ready, or fails it.
   * @throws TypeError if the origin of its exchange is not a URL
   */
  start(transfer: Transfer): void {
    const { workspaceId, origin, credentialHash, timeoutMs } = transfer.exchange;
    const workspace = this.#workspaces.get(workspaceId) ?? this.#createWorkspace(workspaceId);
    const { requests } = workspace.tenant;
    // While less than half of the connections carry requests, each tenant has less than its share.
    const isTooMany =
      this.#requests * 2 >= this.#maxConnections &&
      requests >= getFairShare(this.#maxConnections - this.#requests, requests);
    if (this.#isClosed || isTooMany)
      transfer.fail(this.#isClosed ? createStoppingError() : createTooManyRequestsError(workspace.tenant));
    if (transfer.isSettled) return;
    const existingPool = credentialHash === undefined ? undefined : workspace.reusable.get(origin)?.get(credentialHash);
    const pool = existingPool ?? this.#addPool(workspace, origin, credentialHash);
    const readyConnection = pool.waiting.length > 0 ? undefined : this.#takeReady(pool);
    const shouldWait = timeoutMs >= minWaitTimeoutMs && pool.idle.length > pool.waiting.length;
    const connection = readyConnection ?? (shouldWait ? undefined : this.#openIn(pool));
    if (connection) this.#checkOut(connection, transfer);
    else if (pool.connections > 0) {
      transfer.waitingPool = pool;
      pool.waiting.push(transfer);
      this.#awaitQuietPeriod(pool);
    } else {
      transfer.fail(createTooManyRequestsError(workspace.tenant));
      this.#dropUnused(pool);
    }
  }

  /** Returns a connection after a complete response. `isReusable` is true if it may carry another request. */
  checkIn(connection: Connection, isReusable: boolean): void {
    const { pool } = connection;
    this.#requests--;
    pool.workspace.tenant.requests--;
    connection.transfer = undefined;
    connection.completedRequests++;
    connection.idleSince = this.#clock();
    const isKept = isReusable && getKeepAliveMs(connection) > 0;
    const shouldClose = !isKept || pool.credentialHash === undefined || this.#isClosed;
    if (shouldClose || pool.upstream.untrustedUntil > connection.idleSince) this.#close(connection);
    else {
      pool.idle.push(connection);
      if (pool.waiting.length > 0) this.#scheduleServing(pool);
    }
  }

  /** Closes a connection after anything other than a complete response. */
  discard(connection: Connection): void {
    this.#requests--;
    connection.pool.workspace.tenant.requests--;
    this.#close(connection);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeping);
    clearImmediate(this.#outboxImmediate);
    for (const pool of this.#pools) {
      clearTimeout(pool.quietTimer);
      clearImmediate(pool.serveImmediate);
      for (const transfer of pool.waiting.splice(0)) transfer.fail(createStoppingError());
    }
    const closing = [...this.#open].map((connection) => {
      const socket = connection.close();
      if (connection.transfer) connection.transfer.onConnectionError(createClosedError());
      else this.closeIdle(connection);
      return socket && !socket.closed ? once(socket, 'close') : undefined;
    });
    await Promise.all(closing);
  }

  /**
   * Checks out a connection. A request over a reused connection is sent after the next turn of the event loop has read
   * all sockets. So bytes and closures that have arrived by now, while this process was too busy to read, are read
   * first, and can only end the connection.
   */
  #checkOut(connection: Connection, transfer: Transfer): void {
    const { workspace } = connection.pool;
    this.#requests++;
    workspace.tenant.requests++;
    connection.transfer = transfer;
    transfer.connection = connection;
    if (connection.completedRequests === 0) connection.send();
    else {
      this.#nextOutbox.push(connection);
      this.#outboxImmediate ??= setImmediate(this.#sendOutbox);
    }
  }

  /** Sends the requests that were added before the sockets were last read. */
  readonly #sendOutbox = (): void => {
    const due = this.#outbox;
    this.#outbox = this.#nextOutbox;
    this.#nextOutbox = [];
    this.#outboxImmediate = this.#outbox.length > 0 ? setImmediate(this.#sendOutbox) : undefined;
    for (const connection of due) connection.send();
  };

  /**
   * Returns a connection whose quiet period is over. For a trusted upstream, returns any idle one, longest idle first.
   */
  #takeReady({ idle, upstream }: Pool): Connection | undefined {
    const longestIdle = idle[0];
    if (!longestIdle) return undefined;
    const quietSince = this.#clock() - quietPeriodMs;
    if (longestIdle.idleSince > quietSince)
      return upstream.quietPeriods >= trustedQuietPeriods ? idle.shift() : undefined;
    upstream.quietPeriods++;
    // The upstream is least likely to close the most recently used of these connections.
    let index = idle.length - 1;
    while ((idle[index] as Connection).idleSince > quietSince) index--;
    return idle.splice(index, 1)[0];
  }

  /** Opens a connection. Returns undefined if too many connections carry requests. */
  #openIn(pool: Pool): Connection | undefined {
    if (pool.connections >= maxPerPool) return undefined;
    const isFull = this.#open.size >= this.#maxConnections;
    const victim = isFull ? this.#findLongestIdle(pool.workspace) : undefined;
    if (isFull && !victim) return undefined;
    // Counted first: if the victim was the last connection of this pool, closing it would drop the pool.
    pool.connections++;
    if (victim) this.closeIdle(victim);
    const connection = new Connection(pool, this);
    this.#open.add(connection);
    this.#sweeping ??= setInterval(() => this.#sweep(), sweepMs).unref();
    return connection;
  }

  /** Closes a connection if it is idle. */
  closeIdle(connection: Connection): void {
    const { idle } = connection.pool;
    const index = idle.indexOf(connection);
    if (index < 0) return;
    idle.splice(index, 1);
    this.#close(connection);
  }

  #close(connection: Connection): void {
    const { pool } = connection;
    pool.connections--;
    this.#open.delete(connection);
    if (this.#open.size === 0) {
      clearInterval(this.#sweeping);
      this.#sweeping = undefined;
    }
    connection.close();
    if (pool.waiting.length > 0) this.#scheduleServing(pool);
    else this.#dropUnused(pool);
  }

  /** Serves waiting transfers after any bytes behind the last response have been read. */
  #scheduleServing(pool: Pool): void {
    pool.serveImmediate ??= setImmediate(() => this.#serveWaiting(pool));
  }

  /** Serves waiting transfers after the quiet period of the first connection. */
  #awaitQuietPeriod(pool: Pool): void {
    const longestIdle = pool.idle[0];
    if (!longestIdle || pool.quietTimer) return;
    const remainingMs = longestIdle.idleSince + quietPeriodMs - this.#clock();
    pool.quietTimer = setTimeout(() => this.#serveWaiting(pool), Math.max(1, remainingMs));
  }

  #serveWaiting(pool: Pool): void {
    const { waiting } = pool;
    clearTimeout(pool.quietTimer);
    pool.quietTimer = undefined;
    pool.serveImmediate = undefined;
    while (waiting.length > 0) {
      const connection = this.#takeReady(pool) ?? (waiting.length > pool.idle.length ? this.#openIn(pool) : undefined);
      if (!connection && pool.connections > 0) break;
      const transfer = waiting.shift() as Transfer;
      if (connection) this.#checkOut(connection, transfer);
      else transfer.fail(createTooManyRequestsError(pool.workspace.tenant));
    }
    if (waiting.length > 0) this.#awaitQuietPeriod(pool);
    this.#dropUnused(pool);
  }

  #createWorkspace(id: string): Workspace {
    const tenantId = this.#options.getTenant(id);
    const tenant = this.#tenants.get(tenantId) ?? { id: tenantId, requests: 0, workspaces: 0 };
    return { id, tenant, pools: 0, reusable: new Map() };
  }

  /**
   * Adds a pool. It exists as long as it has connections or waiting transfers. @throws TypeError if `origin` is not a
   * URL
   */
  #addPool(workspace: Workspace, origin: string, credentialHash: string | undefined): Pool {
    const upstream = this.#getUpstream(workspace.id, origin);
    const emptyCounts = { connections: 0, serveImmediate: undefined, quietTimer: undefined };
    const pool: Pool = { credentialHash, upstream, workspace, idle: [], waiting: [], ...emptyCounts };
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
    const poolsOfOrigin = workspace.reusable.get(upstream.origin);
    poolsOfOrigin?.delete(credentialHash);
    if (poolsOfOrigin?.size === 0) workspace.reusable.delete(upstream.origin);
  }

  #getUpstream(workspaceId: string, origin: string): Upstream {
    const key = `${workspaceId} ${origin}`;
    const cached = this.#upstreams.get(key);
    if (cached) return cached;
    const url = new URL(origin);
    const { allow, proxy, getResolver, onBlocked = () => undefined } = this.#options;
    const connect = createGuardedConnector(url, allow, getResolver(workspaceId), onBlocked, proxy);
    const { host } = url;
    const upstream = { workspaceId, origin, host, connect, quietPeriods: 0, untrustedUntil: Number.NEGATIVE_INFINITY };
    this.#upstreams.set(key, upstream);
    return upstream;
  }

  /** Marks an upstream that sent unsolicited bytes as untrusted, because it may do so again. */
  reportUnsolicited(upstream: Upstream): void {
    this.#unsolicitedCount++;
    const now = this.#clock();
    if (upstream.untrustedUntil <= now) this.#options.onUnsolicited?.(upstream.workspaceId, upstream.origin);
    upstream.untrustedUntil = now + untrustedMs;
    upstream.quietPeriods = 0;
    for (const pool of this.#pools) {
      if (pool.upstream === upstream) for (const connection of [...pool.idle]) this.closeIdle(connection);
    }
  }

  /** Reports a response that is not HTTP/1. `bytes` may belong to anyone. */
  reportMalformed({ workspaceId, origin }: Upstream, bytes: Buffer): void {
    this.#malformedCount++;
    this.#options.onMalformed?.(workspaceId, origin, bytes);
  }

  /** Returns the connection that has been idle longest: of the same tenant or, if it has none, of any tenant. */
  #findLongestIdle({ tenant }: Workspace): Connection | undefined {
    let ownLongest: Connection | undefined;
    let anyLongest: Connection | undefined;
    for (const { idle } of this.#pools) {
      const [candidate] = idle;
      if (!candidate) continue;
      if (!anyLongest || candidate.idleSince < anyLongest.idleSince) anyLongest = candidate;
      if (candidate.pool.workspace.tenant === tenant && (!ownLongest || candidate.idleSince < ownLongest.idleSince))
        ownLongest = candidate;
    }
    return ownLongest ?? anyLongest;
  }

  /** Closes connections that have been idle for too long, and the oldest ones of tenants with too many. */
  #sweep(): void {
    const now = this.#clock();
    const remaining: Connection[] = [];
    for (const connection of [...this.#pools].flatMap(({ idle }) => idle)) {
      if (now - connection.idleSince >= getKeepAliveMs(connection)) this.closeIdle(connection);
      else remaining.push(connection);
    }
    for (const list of Map.groupBy(remaining, ({ pool }) => pool.workspace.tenant).values()) {
      if (list.length <= maxIdlePerTenant) continue;
      list.sort((a, b) => b.idleSince - a.idleSince);
      for (const connection of list.slice(maxIdlePerTenant)) this.closeIdle(connection);
    }
  }
}

/** Returns how long an idle connection is kept: less than the upstream keeps it, so that no request meets its end. */
function getKeepAliveMs({ completedRequests, keepAliveTimeoutMs = Number.POSITIVE_INFINITY }: Connection): number {
  return Math.min(completedRequests > 1 ? keepAliveMs : firstKeepAliveMs, keepAliveTimeoutMs - 2 * sweepMs);
}

function createStoppingError(): OutboundError {
  return new OutboundError('reset', 'the service is stopping, so nothing was sent to the upstream');
}

function createTooManyRequestsError({ requests }: Tenant): OutboundError {
  return new OutboundError(
    'no_connection',
    `the workspaces of this owner have ${requests} upstream requests in progress, which is their share of this process's capacity; try again in a moment`,
  );
}
