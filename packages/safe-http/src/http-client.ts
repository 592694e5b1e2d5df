import { requestContainsCredential } from '@toolhost/credentials/own-credentials';
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

/** Only client for upstreams: guarded addresses, no redirects, one deadline, one byte limit, and reused connections. */
export class HttpClient {
  readonly #connections: Connections;
  readonly #deps: TransferDeps;

  constructor(options: OutboundOptions) {
    const { decodeOnThread, memory } = options;
    this.#connections = new Connections(options);
    this.#deps = { connections: this.#connections, deadlines: new Deadlines(), decodeOnThread, memory };
  }

  /**
   * Sends a request. Every finished request is searched for credentials of this service, whatever their source, which
   * covers everything that the rules for arguments or configurations miss. Fails only by rejecting. @throws OutboundError
   */
  send(exchange: Exchange, onEnd?: OnEnd): Promise<UpstreamResponse> {
    const isWithheld = requestContainsCredential(exchange);
    if (isWithheld !== false) return this.#sendAfterSearch(exchange, isWithheld, onEnd);
    return new Promise((resolve, reject) =>
      this.#connections.start(new Transfer(exchange, this.#deps, resolve, reject, onEnd)),
    );
  }

  async #sendAfterSearch(
    exchange: Exchange,
    isWithheld: true | Promise<boolean>,
    onEnd?: OnEnd,
  ): Promise<UpstreamResponse> {
    if (await isWithheld) {
      const error = new OutboundError('own_credential', ownCredentialMessage);
      onEnd?.(error);
      throw error;
    }
    return new Promise((resolve, reject) =>
      this.#connections.start(new Transfer(exchange, this.#deps, resolve, reject, onEnd)),
    );
  }

  /** Returns the number of connection pools in use. */
  getPoolCount(): number {
    return this.#connections.load.pools;
  }

  /**
   * Returns totals of all pools: open connections, requests on them, requests that wait for one, and connections that
   * were closed because of unsolicited bytes or a response that is not HTTP/1.
   */
  getLoad(): { connections: number; running: number; waiting: number; unsolicited: number; malformed: number } {
    return this.#connections.load;
  }

  close(): Promise<void> {
    return this.#connections.close();
  }
}

const ownCredentialMessage =
  'the request contains an API key or a token of this service, which is never sent to an upstream; replace it at its source: an argument, a stored credential, or the login token';
