import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Party } from '../domain/visit.ts';
import { isTurnSpent, shortTurn } from '../domain/work/next-turn.ts';
import { clientNetwork } from './client-address.ts';

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Most requests of a connection that wait for the answers to earlier ones; a client that sends more is cut off. */
export const mostWaiting = 100;

/**
 * Handles the requests of a connection one after the other: a client may send thousands of them in one piece, before it
 * reads an answer (pipelining; RFC 9112, 9.3.2), and Node reports all of them in the same turn. So does it with requests
 * of hundreds of connections. Those that find the turn spent wait, and networks take turns.
 */
export function requestsInTurns(handle: Handle): Handle {
  const waiting = new WeakMap<Socket, number>();
  const partyOf = ({ socket }: IncomingMessage): Party => ({
    workspaceId: '',
    network: clientNetwork({ headers: {}, socket }, 0),
  });
  const handleInTurn = async (request: IncomingMessage, response: ServerResponse) => {
    await shortTurn(partyOf(request));
    if (!request.socket.destroyed) handle(request, response);
  };
  return (request, response) => {
    // A response has no socket while an earlier one of the connection is not finished.
    if (response.socket !== null) {
      if (isTurnSpent()) void handleInTurn(request, response);
      else handle(request, response);
      return;
    }
    const { socket } = request;
    if (socket.destroyed) return;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > mostWaiting) {
      cutOff(socket);
      return;
    }
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      void handleInTurn(request, response);
    });
  };
}

/**
 * Ends a connection. Node makes an error for each of its requests, also for thousands that it has yet to read of the same
 * piece, and the stacks of these errors take most of the time.
 */
function cutOff(socket: Socket): void {
  let stackTraceLimit: number;
  socket.prependOnceListener('close', () => {
    stackTraceLimit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  socket.destroy();
}
