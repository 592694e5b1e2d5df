import type { ServerResponse } from 'node:http';
import { holderOf, type Party, type Visit } from '../domain/visit.ts';
import type { OnGivenUp } from '../domain/work/given-up.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import type { UnreadAnswers } from '../http/unread-answers.ts';
import { createHeldBytes } from './held-bytes.ts';
import { createSharedPieces } from './shared-pieces.ts';

export type UnreadAnswersOptions = {
  networkOf: (visit: Visit) => string;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
  /** How long a client may take to read an answer: this for every 2 MiB that it has begun. */
  slowReaderMs: number;
  /** Of all of them together. */
  mostBytes: number;
  onGivenUp: OnGivenUp;
};

/** A client that reads all the time takes more than the system does at once, and is not slow for that. */
const spareMs = 2000;
const bytesOfDeadline = 2 * 1024 * 1024;

/**
 * Bounds what clients leave unread, in bytes and in time. A client is cut off when its answer has to go: what it sends
 * meanwhile proves nothing about what it reads.
 */
export function createUnreadAnswers({
  networkOf,
  clock,
  slowReaderMs,
  mostBytes,
  onGivenUp,
}: UnreadAnswersOptions): UnreadAnswers {
  const held = createHeldBytes<ServerResponse>({ mostBytes, spareMs, clock });
  const shared = createSharedPieces<ServerResponse>(held.resize);
  const owners = new WeakMap<ServerResponse, Party>();
  const hold: UnreadAnswers['hold'] = (response, bytes, party, pieces = []) => {
    if (response.destroyed) return;
    const giveUp = () => {
      onGivenUp('unread_answer');
      response.destroy();
    };
    const cancel = afterRunning(slowReaderMs * (1 + Math.floor(bytes / bytesOfDeadline)), giveUp);
    response.once('close', () => {
      cancel();
      held.release(response);
      shared.leave(response);
    });
    const counted = shared.join(response, bytes, pieces);
    held.add(response, { party: party ? holderOf(party) : networkOf(response.req), bytes: counted, giveUp });
  };
  /** A listener for all responses. At `prefinish` everything was given to the socket. */
  function onGiven(this: ServerResponse): void {
    if (this.socket !== null && this.socket.writableLength > 0) hold(this, this.writableLength, owners.get(this));
  }
  return {
    hold,
    watch: (response) => void response.once('prefinish', onGiven),
    assign: (response, party) => void owners.set(response, party),
  };
}
