import type { ServerResponse } from 'node:http';
import type { ClientRequest, TenantKey } from '@toolhost/credentials/client-request';
import { type MemoryBudget, minCountedBytes, type OnShed } from '@toolhost/limits/memory-budget';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import type { UnreadResponses } from '../http/incoming.ts';

export type UnreadResponsesOptions = {
  getNetwork: (request: ClientRequest) => string;
  /** Time limit for reading each started `deadlineBytes` of a response, in ms. */
  slowReaderMs: number;
  memory: MemoryBudget;
  onShed: OnShed;
};

export const deadlineBytes = 2 * 1024 * 1024;
/** Time limit for a response that exceeds the memory limit, in ms. A client that reads continuously needs no more. */
export const overLimitMs = 2000;

/**
 * Limits the bytes that clients leave unread, and the time for which they do. When a limit is reached, the client's
 * connection is closed, because its further requests do not prove that it reads responses.
 */
export function createUnreadResponses({
  getNetwork,
  slowReaderMs,
  memory,
  onShed,
}: UnreadResponsesOptions): UnreadResponses {
  const tenants = new WeakMap<ServerResponse, TenantKey>();
  const track: UnreadResponses['track'] = (response, bytes, tenant, ownedBytes = bytes) => {
    if (response.destroyed) return;
    const { workspaceId, network } = tenant ?? { workspaceId: '', network: getNetwork(response.req) };
    const reservation = memory.reserve(workspaceId, network);
    if (ownedBytes > minCountedBytes) reservation.forceGrow(ownedBytes);
    const timeoutMs = reservation.isOverLimit ? overLimitMs : slowReaderMs * (1 + Math.floor(bytes / deadlineBytes));
    const cancel = setRunningTimeout(timeoutMs, () => {
      onShed('unread_answer');
      response.destroy();
    });
    response.once('close', () => {
      cancel();
      reservation.release();
    });
  };
  /** Shared listener of all responses. At `prefinish`, everything was written to the socket. */
  function onWritten(this: ServerResponse): void {
    if (this.socket !== null && this.socket.writableLength > 0) track(this, this.writableLength, tenants.get(this));
  }
  return {
    track,
    watch: (response) => void response.once('prefinish', onWritten),
    assign: (response, tenant) => void tenants.set(response, tenant),
  };
}
