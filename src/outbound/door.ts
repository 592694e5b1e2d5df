import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Dispatcher, Pool as UndiciPool } from 'undici';
import { OutboundError } from '../errors.ts';
import type { BlockedClass } from './address.ts';
import { guardedConnector, type Resolve } from './connector.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { decodeBody, oversize } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import { toOutboundError } from './failure.ts';
import { Pool } from './undici.ts';

/** One request to somebody else's machine. `path` has the query; `headers` alternates names and values. */
export type Exchange = {
  /** Whose connections may be used: those of one workspace are never shared with another. */
  workspaceId: string;
  origin: string;
  path: string;
  method: Dispatcher.HttpMethod;
  headers: string[];
  body: string | Buffer | undefined;
  /** Time for everything, from the name look-up to the last byte. */
  timeoutMs: number;
  /** Most bytes of the answer, before and after decompression. */
  limitBytes: number;
  /** Given a function that closes the connection and rejects with reason `cancelled`. */
  onGone?: ((cancel: () => void) => void) | undefined;
};

export type Answer = { status: number; statusText: string; headers: IncomingHttpHeaders; body: Buffer };

/** The only way out: guarded addresses, no redirects, one deadline, one byte limit, connections kept alive. */
export type OutboundDoor = {
  /** @throws OutboundError */
  send(exchange: Exchange): Promise<Answer>;
  /** Connection pools in use. */
  poolCount(): number;
  /** Open connections of all pools together, the requests on them, and those that wait for one. */
  load(): { connections: number; running: number; waiting: number };
  close(): Promise<void>;
};

export type OutboundOptions = {
  allow: EgressAllow;
  resolve: Resolve;
  /** Told the class of each address that was refused. */
  onBlocked?: (of: BlockedClass) => void;
};

const maxPools = 1000;
const connectionsPerPool = 128;
const keepAliveMs = 10_000;
const maxHeaderBytes = 64 * 1024;
/**
 * A piece of a body costs memory and time however small it is, and so does an interim answer. This many pieces are free;
 * beyond them they must hold so many bytes on average, which is less than a row of any honest stream.
 */
const freePieces = 10_000;
const pieceBytes = 100;
const maxInterimAnswers = 100;

export function createOutboundDoor(options: OutboundOptions): OutboundDoor {
  const deadlines = createDeadlines();
  const { onBlocked = () => undefined } = options;
  const pools = new LRUCache<string, UndiciPool>({ max: maxPools, dispose: (pool) => void pool.close() });

  function poolFor(workspaceId: string, origin: string): UndiciPool {
    const key = `${workspaceId} ${origin}`;
    const known = pools.get(key);
    if (known) return known;
    const pool = new Pool(origin, {
      connect: guardedConnector(new URL(origin), options.allow, options.resolve, onBlocked),
      connections: connectionsPerPool,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
    });
    pools.set(key, pool);
    return pool;
  }

  return {
    async send(exchange) {
      const pool = poolFor(exchange.workspaceId, exchange.origin);
      const until = performance.now() + exchange.timeoutMs;
      let answer: Answer;
      try {
        answer = await dispatch(pool, exchange, until, deadlines);
      } catch (error) {
        if (!mayRetry(exchange, error)) throw error;
        answer = await dispatch(pool, exchange, until, deadlines);
      }
      const coding = answer.headers['content-encoding'];
      if (coding !== undefined) answer.body = await decodeBody(answer.body, coding, exchange.limitBytes);
      return answer;
    },
    poolCount: () => pools.size,
    load() {
      const sum = { connections: 0, running: 0, waiting: 0 };
      for (const { stats } of pools.values()) {
        sum.connections += stats.connected;
        sum.running += stats.running;
        sum.waiting += stats.queued;
      }
      return sum;
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

/**
 * A kept connection may be closed by the upstream at the moment of use. Only a GET that saw no byte of an answer is
 * sent again, once, within its deadline.
 */
function mayRetry(exchange: Exchange, error: unknown): boolean {
  return exchange.method === 'GET' && error instanceof OutboundError && error.reason === 'reset';
}

function dispatch(pool: UndiciPool, exchange: Exchange, until: number, deadlines: Deadlines): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const chunks: Buffer[] = [];
  const answer: Answer = { status: 0, statusText: '', headers: {}, body: Buffer.alloc(0) };
  let size = 0;
  let begun = false;
  let interimAnswers = 0;
  let controller: Dispatcher.DispatchController | undefined;
  let settled = false;

  const fail = (error: OutboundError) => {
    if (settled) return;
    settled = true;
    deadlines.remove(deadline);
    reject(error);
    controller?.abort(error);
  };
  const deadline = deadlines.add(until, () => fail(timedOut(exchange.timeoutMs)));
  exchange.onGone?.(() => fail(new OutboundError('cancelled', 'the caller went away')));
  // A caller that has gone already is told of at once.
  if (settled) return promise;

  pool.dispatch(
    { path: exchange.path, method: exchange.method, headers: exchange.headers, body: exchange.body ?? null },
    {
      onRequestStart(started) {
        controller = started;
        if (settled) started.abort(new OutboundError('cancelled', 'the deadline passed before a connection was free'));
      },
      onResponseStarted() {
        begun = true;
      },
      onResponseStart(_controller, status, headers, statusText) {
        if (status < 200) {
          if (++interimAnswers > maxInterimAnswers) fail(tooMany('interim answers'));
          return;
        }
        answer.status = status;
        answer.statusText = statusText ?? '';
        answer.headers = headers;
        if (Number(headers['content-length']) > exchange.limitBytes) fail(oversize(exchange.limitBytes));
      },
      onResponseData(_controller, chunk) {
        size += chunk.length;
        if (size > exchange.limitBytes) fail(oversize(exchange.limitBytes));
        else if (chunks.push(chunk) > freePieces + size / pieceBytes) fail(tooMany('pieces of a body'));
      },
      onResponseEnd() {
        if (settled) return;
        settled = true;
        deadlines.remove(deadline);
        answer.body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
        resolve(answer);
      },
      onResponseError(_controller, error) {
        const failure = toOutboundError(error);
        fail(failure.reason === 'reset' && begun ? truncated() : failure);
      },
    },
  );
  return promise;
}

function timedOut(timeoutMs: number): OutboundError {
  return new OutboundError('timeout', `upstream did not answer within ${timeoutMs} ms`);
}

function tooMany(what: string): OutboundError {
  return new OutboundError('malformed', `the upstream answered with too many ${what}`);
}

/** The answer had begun, so the request was served: it is not sent twice. */
function truncated(): OutboundError {
  return new OutboundError('truncated', 'the upstream closed the connection in the middle of its answer');
}
