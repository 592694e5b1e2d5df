import type { ServerResponse } from 'node:http';
import type { Party, Visit } from '../domain/visit.ts';
import { type MemoryBudget, type OnGivenUp, uncountedBytes } from '../domain/work/memory-budget.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import type { UnreadAnswers } from '../http/incoming.ts';

export type UnreadAnswersOptions = {
  networkOf: (visit: Visit) => string;
  /** How long a client may take to read an answer: this for every 2 MiB that it has begun. */
  slowReaderMs: number;
  memory: MemoryBudget;
  onGivenUp: OnGivenUp;
};

export const bytesOfDeadline = 2 * 1024 * 1024;
/** The same for an answer for which there is no room: a client that reads all the time needs no more. */
export const hastyMs = 2000;

/**
 * Bounds what clients leave unread, in bytes and in time. A client is cut off when its answer has to go: what it sends
 * meanwhile proves nothing about what it reads.
 */
export function createUnreadAnswers({
  networkOf,
  slowReaderMs,
  memory,
  onGivenUp,
}: UnreadAnswersOptions): UnreadAnswers {
  const owners = new WeakMap<ServerResponse, Party>();
  const hold: UnreadAnswers['hold'] = (response, bytes, party, own = bytes) => {
    if (response.destroyed) return;
    const { workspaceId, network } = party ?? { workspaceId: '', network: networkOf(response.req) };
    const held = memory.hold(workspaceId, network);
    if (own > uncountedBytes) held.keep(own);
    const ms = held.isOver ? hastyMs : slowReaderMs * (1 + Math.floor(bytes / bytesOfDeadline));
    const cancel = afterRunning(ms, () => {
      onGivenUp('unread_answer');
      response.destroy();
    });
    response.once('close', () => {
      cancel();
      held.end();
    });
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
