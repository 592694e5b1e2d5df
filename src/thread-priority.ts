import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { setPriority } from 'node:os';
import { join } from 'node:path';

// Linux only: there a priority belongs to a thread, elsewhere to the whole process.

/** About halfway between the default (0) and the lowest priority (19) of Linux. */
const nice = 10;

/** Threads on which V8 collects garbage and compiles, for every isolate. Node 22 does not name them. */
const helperName = 'V8Worker';

/** Missing in some sandboxes. */
const ownThreads = '/proc/self/task';

/**
 * Lowers the priority of the calling thread, so that the thread that serves calls gets a contested core first.
 */
export function yieldToCalls(): void {
  if (process.platform === 'linux') setPriority(0, nice);
}

/**
 * After so many requests V8 has compiled what calls run through. At a low priority, on cores that other programs use as well,
 * that takes its threads many times as long, and until then a call takes twice the processor time.
 */
const warmRequests = 50_000;

/**
 * Lowers the priority of V8's own threads in the same way, once the service is warm. There are four of them whatever the
 * number of cores. At equal priority a large collection leaves a fifth of a single core to calls for a tenth of a second,
 * and what one workspace sends decides how often there is one. They also work for the threads that give way.
 */
export function collectorYieldsOnceWarm(server: Server): void {
  let left = warmRequests;
  const count = () => {
    if (--left > 0) return;
    server.off('request', count);
    collectorYieldsToCalls();
  };
  server.on('request', count);
}

function collectorYieldsToCalls(): void {
  if (process.platform !== 'linux' || !existsSync(ownThreads)) return;
  for (const thread of readdirSync(ownThreads)) {
    if (nameOf(thread)?.includes(helperName)) setPriority(Number(thread), nice);
  }
}

/** Undefined for a thread that has ended meanwhile. V8's threads live as long as the process. */
function nameOf(thread: string): string | undefined {
  try {
    return readFileSync(join(ownThreads, thread, 'comm'), 'utf8');
  } catch {
    return undefined;
  }
}
