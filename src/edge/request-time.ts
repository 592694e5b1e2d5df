import type { Server } from 'node:http';
import { noticeStops, sinceStop } from '../domain/work/running-time.ts';

/**
 * Lets the time for the headers and for the whole of a request begin anew when the process was stopped. `node:http` looks
 * at the clock before it reads, and would answer 408 to requests that have arrived meanwhile.
 */
export function renewTimeAfterStops(server: Server): void {
  noticeStops();
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    const ms = server[name];
    // `node:http` reads both whenever it looks for late requests, and 0 is no limit.
    Object.defineProperty(server, name, { get: () => (sinceStop() < ms ? 0 : ms) });
  }
}
