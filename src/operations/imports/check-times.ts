import { createHash } from 'node:crypto';

const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;

/**
 * The first time for a check of a description from then on, in ms since the epoch. The id of its server decides the time
 * of the day, so that checks are spread over the day.
 */
export function firstCheckAt(serverId: string, from: number): number {
  const offset = createHash('sha256').update(serverId).digest().readUInt32BE(0) % dayMs;
  return Math.ceil((from - offset) / dayMs) * dayMs + offset;
}

/** When a description is checked again that was read now: at its time of the day, which is not soon after a late check. */
export function nextCheckAt(serverId: string, now: number): number {
  return firstCheckAt(serverId, now + dayMs / 2);
}

/** When a check is repeated after this many failures in a row: after 1, 2, 4, 8 and 16 hours, then once a day. */
export function retryAt(now: number, failures: number): number {
  return now + Math.min(2 ** (failures - 1) * hourMs, dayMs);
}
