import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Dispatcher, Pool as UndiciPool } from 'undici';
import type { OutboundError } from '../errors.ts';
import type { BlockedClass } from './address.ts';
import { guardedConnector, type Resolve } from './connector.ts';
import { createDeadlines } from './deadlines.ts';
import { decodeBody } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import { createRetryBudget, type RetryBudget } from './retry-budget.ts';
import { Transfer } from './transfer.ts';
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
  /** Never throws at once. @throws OutboundError */
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
  /** The name of the header that marks every request, so that one that comes back to this service is refused. */
  hopHeader: string;
  /** Told the class of each address that was refused. */
  onBlocked?: (of: BlockedClass) => void;
};

const maxPools = 1000;
const connectionsPerPool = 128;
const keepAliveMs = 10_000;
const maxHeaderBytes = 64 * 1024;

/** The connections of one workspace to one origin. */
type Way = { pool: UndiciPool; retries: RetryBudget };

export function createOutboundDoor(options: OutboundOptions): OutboundDoor {
  const deadlines = createDeadlines();
  const { onBlocked = () => undefined } = options;
  const ways = new LRUCache<string, Way>({ max: maxPools, dispose: ({ pool }) => void pool.close() });

  function wayTo(workspaceId: string, origin: string): Way {
    const key = `${workspaceId} ${origin}`;
    const known = ways.get(key);
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
    const way = { pool, retries: createRetryBudget() };
    ways.set(key, way);
    return way;
  }

  return {
    send(exchange) {
      const marked = { ...exchange, headers: [...exchange.headers, options.hopHeader, '1'] };
      return new Promise<Answer>((resolve, reject) => {
        const { pool, retries } = wayTo(exchange.workspaceId, exchange.origin);
        const until = performance.now() + exchange.timeoutMs;
        retries.noteRequest();
        const attempt = (onFailure: (error: OutboundError) => void) =>
          new Transfer(marked, until, deadlines, {
            resolve: (answer) => resolve(decoded(answer, exchange.limitBytes)),
            reject: onFailure,
          }).start(pool);
        attempt((error) => {
          if (mayRetry(exchange, error) && retries.take()) attempt(reject);
          else reject(error);
        });
      });
    },
    poolCount: () => ways.size,
    load() {
      const sum = { connections: 0, running: 0, waiting: 0 };
      for (const { pool } of ways.values()) {
        sum.connections += pool.stats.connected;
        sum.running += pool.stats.running;
        sum.waiting += pool.stats.queued;
      }
      return sum;
    },
    async close() {
      await Promise.all([...ways.values()].map(({ pool }) => pool.destroy()));
    },
  };
}

/**
 * A kept connection may be closed by the upstream at the moment of use. Only a GET that saw no byte of an answer is
 * sent again, once, within its deadline.
 */
function mayRetry(exchange: Exchange, error: OutboundError): boolean {
  return exchange.method === 'GET' && error.reason === 'reset';
}

/** Most upstreams compress nothing, as they were asked. @throws OutboundError */
function decoded(answer: Answer, limitBytes: number): Answer | Promise<Answer> {
  const coding = answer.headers['content-encoding'];
  if (coding === undefined) return answer;
  return decodeBody(answer.body, coding, limitBytes).then((body) => ({ ...answer, body }));
}
