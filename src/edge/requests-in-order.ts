import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Most requests of a connection that wait for the answers to earlier ones; a client that sends more is cut off. */
export const mostWaiting = 100;

/**
 * Handles the requests of a connection one after the other: a client may send thousands of them in one piece, before it
 * reads an answer (pipelining; RFC 9112, 9.3.2), and Node reports all of them in the same turn.
 */
export function requestsInOrder(handle: Handle): Handle {
  const waiting = new WeakMap<Socket, number>();
  return (request, response) => {
    // A response has no socket while an earlier one of the connection is not finished.
    if (response.socket !== null) {
      handle(request, response);
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
      // The answer before this one has ended in the same turn.
      setImmediate(() => {
        if (!socket.destroyed) handle(request, response);
      });
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
