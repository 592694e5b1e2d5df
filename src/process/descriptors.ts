import { readFileSync } from 'node:fs';

/** Connections to APIs (`outbound/connections.ts`), and what the database, files and threads need. */
const mostForUpstreams = 4096;
const forOthers = 256;
/** Where the system does not tell. */
const usualDescriptors = 4096;
/** What 16,384 descriptors leave. An idle connection takes memory, too. */
const mostForClients = 12_000;

/** How many connections of clients a process may have, so that others find a descriptor: half of them at least are left. */
export function mostClientConnections(): number {
  const all = openFilesLimit() ?? usualDescriptors;
  const left = Math.max(all - mostForUpstreams - forOthers, Math.floor(all / 2));
  return Math.min(left, mostForClients);
}

/** The most files and sockets that this process may open; undefined where the system does not tell, and without a limit. */
function openFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // The file exists only on Linux.
    return undefined;
  }
}
