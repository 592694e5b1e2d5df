import { OutboundError } from '../errors.ts';
import { Connection } from './connection.ts';
import type { Lender, Transfer } from './transfer.ts';
import { isDistrusted, isProven, restMs, type Upstream } from './upstream.ts';

const mostPerPool = 128;
/** A request with less time than this does not wait for a connection to rest. */
const hurryMs = 1000;

export type WorkspaceLoad = { id: string; requests: number; pools: number };

/** What the pools of a process share. */
export type Shared = {
  /** Monotonic ms. */
  clock: () => number;
  isClosed: boolean;
  /** Whether a workspace may have one more request under way. */
  mayBegin(workspace: WorkspaceLoad): boolean;
  /** Whether there may be one more connection; closes an idle one of another pool where that helps. */
  makeSlot(workspace: WorkspaceLoad): boolean;
  /** Notes one request more under way, or one less. */
  count(workspace: WorkspaceLoad, change: 1 | -1): void;
  onOpened(connection: Connection): void;
  onEnded(connection: Connection): void;
  /** An upstream sent bytes that no request asked for. */
  onUnasked(pool: Pool): void;
  /** The pool has no connection, and nothing waits for one. */
  onUnused(pool: Pool): void;
};

/** Connections that may carry one another's requests: of a workspace, to an origin, with the same credentials. */
export class Pool implements Lender {
  readonly key: string | symbol;
  readonly upstream: Upstream;
  readonly workspace: WorkspaceLoad;
  readonly #shared: Shared;
  /** Those that have been idle for longest come first. */
  readonly #idle: Connection[] = [];
  /** In the order in which they came. */
  readonly #waiting: Transfer[] = [];
  #connections = 0;
  #turn: NodeJS.Immediate | undefined;
  #rest: NodeJS.Timeout | undefined;

  /** With a symbol as its key the pool is for one request. */
  constructor(key: string | symbol, upstream: Upstream, workspace: WorkspaceLoad, shared: Shared) {
    this.key = key;
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

  /** Starts a transfer now or when a connection is ready, or fails it. A second attempt gets a new connection. */
  begin(transfer: Transfer, isSecond: boolean): void {
    if (!transfer.isSettled) {
      const refusal = this.#refusal();
      if (refusal) transfer.fail(refusal);
      else this.#find(transfer, isSecond);
    }
    this.#checkUse();
  }

  giveBack(connection: Connection): void {
    this.#shared.count(this.workspace, -1);
    const now = this.#shared.clock();
    connection.rest(now);
    const isLast = connection.isSpoilt || typeof this.key === 'symbol' || this.#shared.isClosed;
    if (isLast || isDistrusted(this.upstream, now)) this.#end(connection);
    else this.#idle.push(connection);
    this.#giveTurn();
  }

  discard(connection: Connection): void {
    this.#shared.count(this.workspace, -1);
    this.#end(connection);
  }

  forget(transfer: Transfer): void {
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

  /** Fails what waits. What is under way fails with its connection. */
  close(): void {
    clearTimeout(this.#rest);
    clearImmediate(this.#turn);
    for (const transfer of this.#waiting.splice(0)) transfer.fail(stopping());
  }

  #refusal(): OutboundError | undefined {
    if (this.#shared.isClosed) return stopping();
    return this.#shared.mayBegin(this.workspace) ? undefined : tooManyRequests(this.workspace);
  }

  #find(transfer: Transfer, isSecond: boolean): void {
    const ready = isSecond || this.#waiting.length > 0 ? undefined : this.#ready();
    const willRest = !isSecond && transfer.timeoutMs >= hurryMs && this.#idle.length > this.#waiting.length;
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

  #lend(connection: Connection, transfer: Transfer): void {
    this.#shared.count(this.workspace, 1);
    connection.isBusy = true;
    transfer.start(connection, this);
  }

  /** A connection that has rested; with a proven upstream any idle one, and that which has been idle for longest first. */
  #ready(): Connection | undefined {
    const idle = this.#idle;
    const first = idle[0];
    if (!first) return undefined;
    const since = this.#shared.clock() - restMs;
    if (first.idleSince > since) return isProven(this.upstream) ? idle.shift() : undefined;
    this.upstream.rests++;
    // Of those that have rested the one that was used last, which its upstream is least likely to close just now.
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

  /** Serves those that wait, once undici has seen what came behind the last answer. */
  #giveTurn(): void {
    if (this.#waiting.length > 0) this.#turn ??= setImmediate(() => this.#serveWaiting());
  }

  /** Serves those that wait when the first connection has rested. */
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
