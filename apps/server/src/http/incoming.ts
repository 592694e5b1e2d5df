import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TenantKey } from '@toolhost/credentials/client-request';

/** A request that has passed the edge checks, with its response. */
export type Incoming = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** URL path, without the query. */
  readonly path: string;
  readonly requestId: string;
  /** Origin of the server's own host, if the request was sent to one. */
  readonly serverOrigin: string | undefined;
  /** Base URL under the requested name of this machine, if it differs from the configured one. */
  readonly alternativeBaseUrl: string | undefined;
  /** URL of the home page, for links. A server's own host has no home page, so there it is absolute. */
  readonly homeUrl: string;
  /** Headers of every response, with names and values alternating. The code that writes the response adds its own. */
  readonly headers: string[];
};

/** Responses that their clients have not read yet. */
export type UnreadResponses = {
  /**
   * Counts the memory of a response that was written to the connection completely, until the client has read it.
   * `ownedBytes` is the number of its `bytes` that nothing else holds; all of them if absent. The bytes of a tool list,
   * for example, belong to its server.
   */
  track(response: ServerResponse, bytes: number, tenant?: TenantKey, ownedBytes?: number): void;
  /**
   * Starts to count a response once it is written. If the operating system accepts it immediately, the cost is one
   * comparison.
   */
  watch(response: ServerResponse): void;
  /** Assigns a watched response to a tenant. Until then it is charged to the client's network. */
  assign(response: ServerResponse, tenant: TenantKey): void;
};
