import type { ServerResponse } from 'node:http';
import type { Party, Visit } from '../domain/visit.ts';
import { type MemoryBudget, type OnGivenUp, uncountedBytes } from '../domain/work/memory-budget.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import type { UnreadAnswers } from '../http/incoming.ts';

export type UnreadAnswersOptions = {
  networkOf: (visit: Visit) => string;
  /** Time limit for reading a response, for every started 2 MiB of it. */
  slowReaderMs: number;
  memory: MemoryBudget;
  onGivenUp: OnGivenUp;
};

export const bytesOfDeadline = 2 * 1024 * 1024;
/** Time limit for a response that exceeds the memory limit. A client that reads continuously needs no more. */
export const hastyMs = 2000;

/**
 * Limits the bytes that clients leave unread, and the time. When the limit is reached, the client's connection is
 * closed, because its further requests do not prove that it reads responses.
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
  /** Shared listener of all responses. At `prefinish`, everything was written to the socket. */
  function onGiven(this: ServerResponse): void {
    if (this.socket !== null && this.socket.writableLength > 0) hold(this, this.writableLength, owners.get(this));
  }
  return {
    hold,
    watch: (response) => void response.once('prefinish', onGiven),
    assign: (response, party) => void owners.set(response, party),
  };
}
