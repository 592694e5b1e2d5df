import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Party } from '../domain/visit.ts';

/** A request that has passed the edge, with its response. */
export type Incoming = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path of the URL, without query. */
  readonly path: string;
  readonly requestId: string;
  /** Origin of the server's own host, when the request came to that. */
  readonly ownOrigin: string | undefined;
  /** The base URL under the name of this machine that was asked, where that is not the configured one. */
  readonly otherBaseUrl: string | undefined;
  /** Address of the start page, for links. The host of a server has none, so there it is absolute. */
  readonly home: string;
  /** Headers of every answer, names and values in turn. Whoever writes the answer adds its own. */
  readonly headers: string[];
};

/** Answers that their clients have not read yet. */
export type UnreadAnswers = {
  /**
   * Counts an answer that was given to the connection whole, until the client has read it. `own` are those of its `bytes`
   * that nobody else holds, all when absent: a list of tools is in memory once, with its server.
   */
  hold(response: ServerResponse, bytes: number, party?: Party, own?: number): void;
  /** Does the same once the answer is given. One that the system takes at once costs a comparison. */
  watch(response: ServerResponse): void;
  /** Says whose a watched answer is. Until then it is its address's. */
  assign(response: ServerResponse, party: Party): void;
};
