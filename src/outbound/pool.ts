import { OutboundError } from '../errors.ts';
import { Connection } from './connection.ts';
import type { Lender, Transfer } from './transfer.ts';
import { isDistrusted, isProven, restMs, type Upstream } from './upstream.ts';

const mostPerPool = 128;
/** A request with a shorter timeout than this does not wait for a connection to rest. */
const hurryMs = 1000;

export type WorkspaceLoad = {
  id: string;
  requests: number;
  pools: number;
  /**
   * Pools for more than one request, by origin and then by digest of the credentials: a single key would have to be joined
   * for each call.
   */
  reusable: Map<string, Map<string, Pool>>;
};

/** State and limits that the pools of a process share. */
export type Shared = {
  /** Monotonic ms. */
  clock: () => number;
  isClosed: boolean;
  /** Whether a workspace may start one more request. */
  mayBegin(workspace: WorkspaceLoad): boolean;
  /** Whether one more connection is possible; closes an idle one of another pool if that helps. */
  makeSlot(workspace: WorkspaceLoad): boolean;
  /** Adds a running request, or removes one. */
  count(workspace: WorkspaceLoad, change: 1 | -1): void;
  onOpened(connection: Connection): void;
  onEnded(connection: Connection): void;
  /** An upstream sent bytes that no request asked for. */
  onUnasked(pool: Pool): void;
  /** The pool has no connection and no waiting request. */
  onUnused(pool: Pool): void;
};

/** Connections that may carry each other's requests: same workspace, origin and credentials. */
export class Pool implements Lender {
  /** Undefined for the pool of a single request. */
  readonly credentialHash: string | undefined;
  readonly upstream: Upstream;
  readonly workspace: WorkspaceLoad;
  readonly #shared: Shared;
  /** Ordered by idle time, the longest first. */
  readonly #idle: Connection[] = [];
  /** In order of arrival. */
  readonly #waiting: Transfer[] = [];
  #connections = 0;
  #turn: NodeJS.Immediate | undefined;
  #rest: NodeJS.Timeout | undefined;

  constructor(credentialHash: string | undefined, upstream: Upstream, workspace: WorkspaceLoad, shared: Shared) {
    this.credentialHash = credentialHash;
    this.upstream = upstream;
    this.workspace = workspace;
    this.#shared = shared;
  }

  get idle(): readonly Connection[] {
    return this.#idle;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Starts a transfer now or once a connection is ready, or fails it. */
  begin(transfer: Transfer): void {
    if (!transfer.isSettled) {
      const refusal = this.#refusal();
      if (refusal) transfer.fail(refusal);
      else this.#find(transfer);
    }
    this.#checkUse();
  }

  giveBack(connection: Connection): void {
    this.#shared.count(this.workspace, -1);
    const now = this.#shared.clock();
    connection.rest(now);
    const isLast = connection.isSpoilt || this.credentialHash === undefined || this.#shared.isClosed;
    if (isLast || isDistrusted(this.upstream, now)) this.#end(connection);
    else this.#idle.push(connection);
    this.#giveTurn();
  }

  discard(connection: Connection): void {
    this.#shared.count(this.workspace, -1);
    this.#end(connection);
  }

  removeWaiting(transfer: Transfer): void {
    const index = this.#waiting.indexOf(transfer);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  /** Ends a connection if it is idle. */
  endIdle(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.#end(connection);
  }

  /** Fails the waiting transfers. Running ones fail with their connection. */
  close(): void {
    clearTimeout(this.#rest);
    clearImmediate(this.#turn);
    for (const transfer of this.#waiting.splice(0)) transfer.fail(stopping());
  }

  #refusal(): OutboundError | undefined {
    if (this.#shared.isClosed) return stopping();
    return this.#shared.mayBegin(this.workspace) ? undefined : tooManyRequests(this.workspace);
  }

  #find(transfer: Transfer): void {
    const ready = this.#waiting.length > 0 ? undefined : this.#ready();
    const willRest = transfer.timeoutMs >= hurryMs && this.#idle.length > this.#waiting.length;
    const connection = ready ?? (willRest ? undefined : this.#open());
    if (connection) {
      this.#lend(connection, transfer);
    } else if (this.#connections > 0) {
      transfer.wait(this);
      this.#waiting.push(transfer);
      this.#awaitRest();
    } else {
      transfer.fail(tooManyRequests(this.workspace));
    }
  }

  /**
   * Until the upstream is proven, a request over a connection that was used before waits for the next turn of the event
   * loop, and undici writes it a turn later. So bytes that came while this process was too busy to read are read first.
   */
  #lend(connection: Connection, transfer: Transfer): void {
    this.#shared.count(this.workspace, 1);
    connection.isBusy = true;
    transfer.take(connection, this);
    if (connection.served === 0 || isProven(this.upstream)) transfer.start();
    else setImmediate(() => transfer.start());
  }

  /** A rested connection; with a proven upstream any idle one, the longest idle first. */
  #ready(): Connection | undefined {
    const idle = this.#idle;
    const first = idle[0];
    if (!first) return undefined;
    const since = this.#shared.clock() - restMs;
    if (first.idleSince > since) return isProven(this.upstream) ? idle.shift() : undefined;
    this.upstream.rests++;
    // Among rested connections the upstream is least likely to close the one used last.
    let last = idle.length - 1;
    while ((idle[last] as Connection).idleSince > since) last--;
    return idle.splice(last, 1)[0];
  }

  #open(): Connection | undefined {
    if (this.#connections >= mostPerPool || !this.#shared.makeSlot(this.workspace)) return undefined;
    const connection = new Connection(this.upstream, {
      onUnasked: () => this.#shared.onUnasked(this),
      onClosed: () => this.endIdle(connection),
    });
    this.#connections++;
    this.#shared.onOpened(connection);
    return connection;
  }

  #end(connection: Connection): void {
    this.#connections--;
    this.#shared.onEnded(connection);
    void connection.end();
    this.#giveTurn();
    this.#checkUse();
  }

  #checkUse(): void {
    if (this.#connections === 0 && this.#waiting.length === 0) this.#shared.onUnused(this);
  }

  /** Serves waiting transfers after undici has seen any bytes behind the last answer. */
  #giveTurn(): void {
    if (this.#waiting.length > 0) this.#turn ??= setImmediate(() => this.#serveWaiting());
  }

  /** Serves waiting transfers when the first connection has rested. */
  #awaitRest(): void {
    const first = this.#idle[0];
    if (!first || this.#rest) return;
    const leftMs = first.idleSince + restMs - this.#shared.clock();
    this.#rest = setTimeout(() => this.#serveWaiting(), Math.max(1, leftMs));
  }

  #serveWaiting(): void {
    clearTimeout(this.#rest);
    this.#rest = undefined;
    this.#turn = undefined;
    while (this.#waiting.length > 0) {
      const connection = this.#ready() ?? (this.#waiting.length > this.#idle.length ? this.#open() : undefined);
      if (!connection && this.#connections > 0) break;
      const transfer = this.#waiting.shift() as Transfer;
      if (connection) this.#lend(connection, transfer);
      else transfer.fail(tooManyRequests(this.workspace));
    }
    if (this.#waiting.length > 0) this.#awaitRest();
    this.#checkUse();
  }
}

function stopping(): OutboundError {
  return new OutboundError('reset', 'the service is stopping, so nothing was sent to the upstream');
}

function tooManyRequests({ requests }: WorkspaceLoad): OutboundError {
  return new OutboundError(
    'no_connection',
    `this workspace has ${requests} requests to upstreams under way, which is its share of what this process can carry; try again in a moment`,
  );
}
