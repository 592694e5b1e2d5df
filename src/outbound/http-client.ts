import { performance } from 'node:perf_hooks';
import type { OutboundError } from '../errors.ts';
import type { BlockedClass } from './address.ts';
import { Connections, type MakeMemory } from './connections.ts';
import { guardedConnector } from './connector.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { type DecodeOnThread, decodeBody } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import type { Answer, Exchange, HeldMemory } from './exchange.ts';
import type { LookupsOf } from './lookups.ts';
import { type Ended, noMemory, type Received, Transfer } from './transfer.ts';

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
  createMemory: MakeMemory;
  /** Name of the header that marks every request, so that one that comes back to this service is refused. */
  hopHeader: string;
  /** Monotonic ms; decides how long connections are kept. */
  clock?: () => number;
  /** Gets the class of each refused address. */
  onBlocked?: (of: BlockedClass) => void;
  /** Reports an upstream that sent bytes which no request asked for. */
  onUnasked?: (workspaceId: string, origin: string) => void;
  /** Memory for answers of exchanges that bring none; not counted when absent. */
  memory?: { hold(workspaceId: string): HeldMemory };
  /** Most connections of the process; a few thousand when absent. */
  mostConnections?: number;
};

export function createHttpClient(options: OutboundOptions): HttpClient {
  const { allow, lookupsOf, onBlocked = () => undefined, onUnasked = () => undefined } = options;
  const { clock = () => performance.now(), decodeOnThread, createMemory, mostConnections } = options;
  const connectorOf = (origin: string, workspaceId: string) =>
    guardedConnector(new URL(origin), allow, lookupsOf(workspaceId), onBlocked);
  const connections = new Connections({ connectorOf, clock, onUnasked, createMemory, mostConnections });
  const parts: SendingParts = {
    connections,
    deadlines: createDeadlines(),
    mark: [options.hopHeader, '1'],
    decodeOnThread,
    memory: options.memory,
  };

  return {
    send: (exchange) => new Promise((resolve, reject) => new Sending(exchange, parts, resolve, reject).begin()),
    poolCount: () => connections.counts.pools,
    load: () => connections.counts,
    close: () => connections.close(),
  };
}

const nothing = Buffer.alloc(0);

/** What all exchanges of a client share. */
type SendingParts = {
  connections: Connections;
  deadlines: Deadlines;
  /** The header that marks every request. */
  mark: readonly string[];
  decodeOnThread: DecodeOnThread;
  memory: OutboundOptions['memory'];
};

/** So many bytes of an answer are not counted: an ordinary one costs nothing then. */
const uncounted = 16 * 1024;

/** One exchange. Its request is sent once: nobody but its sender knows whether it may be sent again. */
class Sending implements Ended {
  readonly #exchange: Exchange;
  readonly #parts: SendingParts;
  readonly #settle: (answer: Answer | Promise<Answer>) => void;
  readonly #fail: (error: OutboundError) => void;
  readonly #until: number;
  #held: HeldMemory | undefined;
  #counted = 0;
  #transfer: Transfer | undefined;

  constructor(
    exchange: Exchange,
    parts: SendingParts,
    settle: (answer: Answer | Promise<Answer>) => void,
    fail: (error: OutboundError) => void,
  ) {
    this.#exchange = exchange;
    this.#parts = parts;
    this.#settle = settle;
    this.#fail = fail;
    this.#until = parts.deadlines.now() + exchange.timeoutMs;
  }

  /** @throws TypeError when the origin is not a URL */
  begin(): void {
    const { connections, deadlines, mark } = this.#parts;
    const pool = connections.poolFor(this.#exchange);
    this.#transfer = new Transfer(this.#exchange, mark, this.#until, deadlines, this);
    pool.begin(this.#transfer);
  }

  arrived(bytes: number): boolean {
    if (bytes <= uncounted) return true;
    const { held, workspaceId } = this.#exchange;
    this.#held ??= held ?? this.#parts.memory?.hold(workspaceId);
    if (!this.#held) return true;
    if (!this.#held.add(bytes - this.#counted)) return false;
    this.#counted = bytes;
    return true;
  }

  resolve(received: Received): void {
    this.#keep();
    this.#settle(decoded(joined(received), this.#exchange, this.#parts.decodeOnThread));
  }

  /** From now on the memory is that of the sender, who knows how long it is needed. */
  #keep(): void {
    if (!this.#exchange.held) this.#held?.end();
  }

  reject(error: OutboundError): void {
    this.#keep();
    this.#fail(error);
  }
}

function joined({ status, statusText, headers, pieces }: Received): Answer {
  return { status, statusText, headers, body: pieces.length > 1 ? Buffer.concat(pieces) : (pieces[0] ?? nothing) };
}

/** Most upstreams follow our request to compress nothing. @throws OutboundError */
function decoded(answer: Answer, exchange: Exchange, onThread: DecodeOnThread): Answer | Promise<Answer> {
  if (answer.headers['content-encoding'] === undefined) return answer;
  return decodeBody(answer, exchange, onThread).then((body) => {
    if (!holdsDecoded(exchange, answer.body.length, body.length)) throw noMemory();
    return { ...answer, body };
  });
}

/** Counts what an answer takes more than it did before it was decoded: 12 KB of gzip can hold 10 MB. */
function holdsDecoded({ held }: Exchange, arrived: number, bytes: number): boolean {
  if (!held || bytes <= uncounted) return true;
  const counted = arrived > uncounted ? arrived : 0;
  return held.add(Math.max(0, bytes - counted));
}
