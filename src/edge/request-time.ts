import type { Server } from 'node:http';
import { performance } from 'node:perf_hooks';
import { stopMs } from '../domain/work/running-time.ts';

const beatMs = 1000;

/**
 * Lets the time for the headers and for the whole of a request begin anew when the process was stopped. `node:http` looks
 * at the clock before it reads, and would answer 408 to requests that have arrived meanwhile.
 */
export function renewTimeAfterStops(server: Server): void {
  let beatAt = performance.now();
  let stoppedAt = Number.NEGATIVE_INFINITY;
  const beat = () => {
    const now = performance.now();
    if (now - beatAt > beatMs + stopMs) stoppedAt = now;
    beatAt = now;
    return now;
  };
  const timer = setInterval(beat, beatMs).unref();
  server.once('close', () => clearInterval(timer));
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    const ms = server[name];
    // `node:http` reads both whenever it looks for late requests, and 0 is no limit.
    Object.defineProperty(server, name, { get: () => (beat() - stoppedAt < ms ? 0 : ms) });
  }
}
