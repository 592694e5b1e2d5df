import type { ServerResponse } from 'node:http';
import type { Party } from '../domain/visit.ts';

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
