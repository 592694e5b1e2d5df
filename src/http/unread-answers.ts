import type { ServerResponse } from 'node:http';
import type { Party } from '../domain/visit.ts';

/** Answers that their clients have not read yet. */
export type UnreadAnswers = {
  /**
   * Counts an answer that was given to the connection whole, until the client has read it. `pieces` are those of its
   * `bytes` that other answers may hold as well: these count once, however many clients read them.
   */
  hold(response: ServerResponse, bytes: number, party?: Party, pieces?: readonly Uint8Array[]): void;
  /** Does the same once the answer is given. One that the system takes at once costs a comparison. */
  watch(response: ServerResponse): void;
  /** Says whose a watched answer is. Until then it is its address's. */
  assign(response: ServerResponse, party: Party): void;
};
