import { randomBytes } from 'node:crypto';
import { newId } from '../../domain/ids.ts';
import { mostMailed, type Notice } from '../../domain/notices.ts';
import type { Log } from '../../log.ts';
import type { Parts, Telling } from '../../operations/operation.ts';
import { hourMs, minuteMs } from '../../store/calls/call-writer.ts';
import type { Database } from '../../store/database.ts';
import { type Delivery, insertNotice } from '../../store/notices.ts';
import { listeningWorkspaces, mailedMembers, webhooksOf } from '../../store/webhooks.ts';
import { type ElectedWork, type RunningRound, startElectedWork } from './elected-work.ts';

/** Number of workspaces per query. */
const foundAtOnce = 200;

type DetectParts = Pick<Parts, 'now' | 'defaultQuotas'> & { telling: Telling; lookMs?: number };

/**
 * Starts the job that detects the events that people and webhooks subscribe to: once a minute, and once an hour for
 * those that change slowly. It does not wait for recipients. Runs in the one process that holds the lease.
 */
export function startDetecting(database: Database, log: Log, parts: DetectParts): ElectedWork {
  const { now, lookMs } = parts;
  let slowAt = 0;
  return startElectedWork(database.records, log, now, {
    name: 'notices',
    roundMs: minuteMs,
    againMs: minuteMs,
    lookMs,
    failure: 'could not detect events for notifications',
    async round(running) {
      const isSlow = now() >= slowAt;
      let after = '';
      for (;;) {
        const workspaces = await listeningWorkspaces(database.reports, after, foundAtOnce);
        for (const id of workspaces) await lookAt(database, parts, id, { isSlow, running });
        if (workspaces.length < foundAtOnce) break;
        after = workspaces.at(-1) ?? '';
      }
      if (isSlow) slowAt = now() + hourMs;
    },
  });
}

/** Stores the pending notifications of one workspace. */
async function lookAt(
  { reports, records }: Database,
  { now, defaultQuotas, telling }: DetectParts,
  workspaceId: string,
  { isSlow, running }: { isSlow: boolean; running: RunningRound },
): Promise<void> {
  running.mayGoOn();
  const { failures, slowCauses } = await import('../../operations/notices/causes.ts');
  const watched = { db: reports, workspaceId, now: now(), defaultQuotas };
  const found = [...(await failures(watched)), ...(isSlow ? await slowCauses(watched) : [])];
  if (found.length === 0) return;
  const webhooks = await webhooksOf(reports, workspaceId);
  const people = telling.mail ? await mailedMembers(reports, workspaceId, mostMailed) : [];
  const receiversOf = ({ event }: Notice): Delivery[] => [
    ...webhooks
      .filter(({ events, pausedAt }) => events.includes(event) && pausedAt === undefined)
      .map(({ id, origin }) => ({ to: 'webhook' as const, id, origin, state: 'waiting' as const })),
    ...people
      .filter(({ events }) => events.includes(event))
      .map(({ userId }) => ({ to: 'mail' as const, id: userId, state: 'waiting' as const })),
  ];
  for (const notice of found) {
    const deliveries = receiversOf(notice);
    const id = newId(randomBytes, 'ntc');
    if (deliveries.length > 0)
      await insertNotice(records, { ...notice, id, workspaceId, at: now(), deliveries, attempts: 0 });
  }
}
