import type { OutboundError } from '../errors.ts';
import type { BlockedClass } from './address.ts';
import { Connections } from './connections.ts';
import { guardedConnector } from './connector.ts';
import { createDeadlines } from './deadlines.ts';
import { type DecodeOnThread, decodeBody } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import type { Answer, Exchange } from './exchange.ts';
import type { LookupsOf } from './lookups.ts';
import type { Pool } from './pool.ts';
import { Transfer } from './transfer.ts';

export type { Answer, Exchange } from './exchange.ts';

/** The only client for upstreams: guarded addresses, no redirects, one deadline, one byte limit, reused connections. */
export type HttpClient = {
  /** Fails only by rejecting. @throws OutboundError */
  send(exchange: Exchange): Promise<Answer>;
  /** Connection pools in use. */
  poolCount(): number;
  /**
   * Totals of all pools: open connections, requests on them, requests that wait for one, and connections ended because
   * bytes arrived that no request asked for.
   */
  load(): { connections: number; running: number; waiting: number; unasked: number };
  close(): Promise<void>;
};

export type OutboundOptions = {
  allow: EgressAllow;
  lookupsOf: LookupsOf;
  decodeOnThread: DecodeOnThread;
  /** Name of the header that marks every request, so that one that comes back to this service is refused. */
  hopHeader: string;
  /** Monotonic ms; decides how long connections are kept. */
  clock?: () => number;
  /** Gets the class of each refused address. */
  onBlocked?: (of: BlockedClass) => void;
  /** Reports an upstream that sent bytes which no request asked for. */
  onUnasked?: (workspaceId: string, origin: string) => void;
  /** Most connections of the process; a few thousand when absent. */
  mostConnections?: number;
};

export function createHttpClient(options: OutboundOptions): HttpClient {
  const { allow, lookupsOf, onBlocked = () => undefined, onUnasked = () => undefined } = options;
  const { clock = () => performance.now() } = options;
  const deadlines = createDeadlines();
  const connectorOf = (origin: string, workspaceId: string) =>
    guardedConnector(new URL(origin), allow, lookupsOf(workspaceId), onBlocked);
  const connections = new Connections({ connectorOf, clock, onUnasked, mostConnections: options.mostConnections });

  return {
    send(exchange) {
      const marked = { ...exchange, headers: [...exchange.headers, options.hopHeader, '1'] };
      return new Promise<Answer>((resolve, reject) => {
        const until = deadlines.now() + marked.timeoutMs;
        const attempt = (pool: Pool, isSecond: boolean, onFailure: (error: OutboundError) => void) =>
          pool.begin(
            new Transfer(marked, until, deadlines, {
              resolve: (answer) => resolve(decoded(answer, marked, options.decodeOnThread)),
              reject: onFailure,
            }),
            isSecond,
          );
        const first = connections.poolFor(marked);
        const { retries } = first.upstream;
        retries.noteRequest();
        attempt(first, false, (error) => {
          if (mayRetry(marked, error) && retries.take()) attempt(connections.poolFor(marked), true, reject);
          else reject(error);
        });
      });
    },
    poolCount: () => connections.counts.pools,
    load: () => connections.counts,
    close: () => connections.close(),
  };
}

/**
 * The upstream may close a kept connection at the moment of use. Only a GET is sent again, once and within its
 * deadline: when no byte of an answer came, or when the connection was lost because this process had been stopped.
 */
function mayRetry(exchange: Exchange, error: OutboundError): boolean {
  return exchange.method === 'GET' && (error.reason === 'reset' || error.reason === 'stopped');
}

/** Most upstreams follow our request to compress nothing. @throws OutboundError */
function decoded(answer: Answer, exchange: Exchange, onThread: DecodeOnThread): Answer | Promise<Answer> {
  if (answer.headers['content-encoding'] === undefined) return answer;
  return decodeBody(answer, exchange, onThread).then((body) => ({ ...answer, body }));
}
