import type { OutboundError } from '../errors.ts';
import type { BlockedClass } from './address.ts';
import { Connections } from './connections.ts';
import { guardedConnector, type Resolve } from './connector.ts';
import { createDeadlines } from './deadlines.ts';
import { decodeBody } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import type { Answer, Exchange } from './exchange.ts';
import type { Pool } from './pool.ts';
import { Transfer } from './transfer.ts';

export type { Answer, Exchange } from './exchange.ts';

/** The only way out: guarded addresses, no redirects, one deadline, one byte limit, connections kept alive. */
export type HttpClient = {
  /** Never throws at once. @throws OutboundError */
  send(exchange: Exchange): Promise<Answer>;
  /** Connection pools in use. */
  poolCount(): number;
  /**
   * Open connections of all pools together, the requests on them, those that wait for one, and how many connections have
   * ended because bytes came that no request asked for.
   */
  load(): { connections: number; running: number; waiting: number; unasked: number };
  close(): Promise<void>;
};

export type OutboundOptions = {
  allow: EgressAllow;
  resolve: Resolve;
  /** The name of the header that marks every request, so that one that comes back to this service is refused. */
  hopHeader: string;
  /** Monotonic ms, for how long connections are kept. */
  clock?: () => number;
  /** Told the class of each address that was refused. */
  onBlocked?: (of: BlockedClass) => void;
  /** Told of an upstream that sent bytes which no request asked for. */
  onUnasked?: (workspaceId: string, origin: string) => void;
  /** Connections that the process may have; some thousand when absent. */
  mostConnections?: number;
};

export function createHttpClient(options: OutboundOptions): HttpClient {
  const { allow, resolve: resolveName, onBlocked = () => undefined, onUnasked = () => undefined } = options;
  const { clock = () => performance.now() } = options;
  const deadlines = createDeadlines();
  const connectorOf = (origin: string) => guardedConnector(new URL(origin), allow, resolveName, onBlocked);
  const connections = new Connections({ connectorOf, clock, onUnasked, mostConnections: options.mostConnections });

  return {
    send(exchange) {
      const marked = { ...exchange, headers: [...exchange.headers, options.hopHeader, '1'] };
      return new Promise<Answer>((resolve, reject) => {
        const until = deadlines.now() + marked.timeoutMs;
        const attempt = (pool: Pool, isSecond: boolean, onFailure: (error: OutboundError) => void) =>
          pool.begin(
            new Transfer(marked, until, deadlines, {
              resolve: (answer) => resolve(decoded(answer, marked.limitBytes)),
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
 * A kept connection may be closed by the upstream at the moment of use. Only a GET that saw no byte of an answer is
 * sent again, once, within its deadline; and one that was lost because this process had stopped.
 */
function mayRetry(exchange: Exchange, error: OutboundError): boolean {
  return exchange.method === 'GET' && (error.reason === 'reset' || error.reason === 'stopped');
}

/** Most upstreams compress nothing, as they were asked. @throws OutboundError */
function decoded(answer: Answer, limitBytes: number): Answer | Promise<Answer> {
  const coding = answer.headers['content-encoding'];
  if (coding === undefined) return answer;
  return decodeBody(answer.body, coding, limitBytes).then((body) => ({ ...answer, body }));
}
