import { OutboundError } from '@toolhost/errors/errors';
import type { BlockedClass } from './address.ts';
import { Connections, type CreateCache } from './connections.ts';
import { Deadlines } from './deadlines.ts';
import type { DecodeOnThread } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import type { EgressProxy } from './egress-proxy.ts';
import type { Exchange, ReservedMemory, UpstreamResponse } from './exchange.ts';
import type { GetResolver } from './lookups.ts';
import { Transfer, type TransferDeps } from './transfer.ts';

export type { Exchange, UpstreamResponse } from './exchange.ts';

/** Only client for upstreams: guarded addresses, no redirects, one deadline, one byte limit, and reused connections. */
export type HttpClient = {
  /** Sends a request. Fails only by rejecting. @throws OutboundError */
  send(exchange: Exchange, onEnd?: OnEnd): Promise<UpstreamResponse>;
  /** Returns the number of connection pools in use. */
  getPoolCount(): number;
  /**
   * Returns totals of all pools: open connections, requests on them, requests that wait for one, and connections that
   * were closed because of unsolicited bytes or a response that is not HTTP/1.
   */
  getLoad(): { connections: number; running: number; waiting: number; unsolicited: number; malformed: number };
  close(): Promise<void>;
};

/**
 * Receives the status of a response, or the reason why there is none, before the sender does. A function costs less than
 * awaiting the response, and who only counts outcomes needs no more.
 */
export type OnEnd = (outcome: number | Error) => void;

export type OutboundOptions = {
  allow: EgressAllow;
  /** Proxy for all destinations that `allow` does not name, if there is one. */
  proxy?: EgressProxy | undefined;
  getResolver: GetResolver;
  decodeOnThread: DecodeOnThread;
  createCache: CreateCache;
  /** Returns the tenant that the connections of a workspace are counted for. */
  getTenant: (workspaceId: string) => string;
  /**
   * Returns true if a request must not be sent because it contains a credential of this service, regardless of its
   * source. Every finished request is checked here, which covers everything that the rules for arguments or
   * configurations miss.
   */
  containsOwnCredential: (exchange: Exchange) => boolean | Promise<boolean>;
  /** Name of the header that marks every request, so that a request that loops back to this service is rejected. */
  hopHeader: string;
  /** Monotonic ms. Determines how long connections are kept. */
  clock?: () => number;
  /** Receives the class of each rejected address. */
  onBlocked?: (blockedClass: BlockedClass) => void;
  /** Reports an upstream that sent unsolicited bytes. */
  onUnsolicited?: (workspaceId: string, origin: string) => void;
  /**
   * Reports a response that is not HTTP/1, with the beginning of the bytes that were received last. They may belong to
   * anyone, so only the operator may see them.
   */
  onMalformed?: (workspaceId: string, origin: string, bytes: Buffer) => void;
  /** Memory budget for responses of exchanges without a reservation. If absent, they are not counted. */
  memory?: { reserve(workspaceId: string): ReservedMemory };
  /** Maximum connections of the process. Defaults to a few thousand. */
  maxConnections?: number;
};

export function createHttpClient(options: OutboundOptions): HttpClient {
  const connections = new Connections(options);
  const { decodeOnThread, memory } = options;
  const deps: TransferDeps = { connections, deadlines: new Deadlines(), decodeOnThread, memory };
  async function sendAfterSearch(exchange: Exchange, isWithheld: true | Promise<boolean>, onEnd?: OnEnd) {
    if (await isWithheld) {
      const error = new OutboundError('own_credential', ownCredentialMessage);
      onEnd?.(error);
      throw error;
    }
    return new Promise<UpstreamResponse>((resolve, reject) =>
      connections.start(new Transfer(exchange, deps, resolve, reject, onEnd)),
    );
  }
  return {
    send(exchange, onEnd) {
      const isWithheld = options.containsOwnCredential(exchange);
      if (isWithheld !== false) return sendAfterSearch(exchange, isWithheld, onEnd);
      return new Promise((resolve, reject) => connections.start(new Transfer(exchange, deps, resolve, reject, onEnd)));
    },
    getPoolCount: () => connections.load.pools,
    getLoad: () => connections.load,
    close: () => connections.close(),
  };
}

const ownCredentialMessage =
  'the request contains an API key or a token of this service, which is never sent to an upstream; replace it at its source: an argument, a stored credential, or the login token';
