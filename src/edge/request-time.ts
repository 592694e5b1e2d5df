import type { Server } from 'node:http';
import { noticeStops, stoppedWithin } from '../domain/work/running-time.ts';

/**
 * Makes the time for the headers and for the whole of a request longer by the stops of this process. `node:http` looks at
 * the clock before it reads, and would answer 408 to requests that have arrived meanwhile.
 */
export function prolongTimeByStops(server: Server): void {
  noticeStops();
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    const ms = server[name];
    // `node:http` reads both whenever it looks for late requests.
    Object.defineProperty(server, name, { get: () => ms + stoppedWithin(ms) });
  }
}
