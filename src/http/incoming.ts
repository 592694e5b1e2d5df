import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request that has passed the edge, with its response. */
export type Incoming = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path of the URL, without query. */
  readonly path: string;
  readonly requestId: string;
  /** Origin of the server's own host, when the request came to that. */
  readonly ownOrigin: string | undefined;
  /** Address of the start page, for links. The host of a server has none, so there it is absolute. */
  readonly home: string;
  /** Headers of every answer, names and values in turn. */
  readonly headers: readonly string[];
};
