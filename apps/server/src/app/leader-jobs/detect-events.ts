import { randomBytes } from 'node:crypto';
import { newId } from '@toolhost/credentials/ids';
import type { Log } from '../../log.ts';
import { maxMailRecipients, type WorkspaceNotification } from '../../notification-events.ts';
import type { Notifier, OperationDeps } from '../../operations/operation.ts';
import { hourMs, minuteMs } from '../../store/calls/call-writer.ts';
import type { Database } from '../../store/database.ts';
import { type Delivery, insertNotification } from '../../store/notifications.ts';
import { findMailSubscribers, findSubscribedWorkspaces, findWebhooks } from '../../store/webhooks.ts';
import { type JobRound, type LeaderJob, startLeaderJob } from './leader-job.ts';

const workspacesPerQuery = 200;

type DetectDeps = Pick<OperationDeps, 'now' | 'defaultQuotas'> & { notifier: Notifier; pollIntervalMs?: number };

/**
 * Starts the job that detects events with subscribers, once a minute, and once an hour those that change slowly. It
 * only stores notifications, so that no recipient delays it. Runs in the one process that holds the lease.
 */
export function startEventDetection(database: Database, log: Log, deps: DetectDeps): LeaderJob {
  const { now, pollIntervalMs } = deps;
  let nextSlowAt = 0;
  return startLeaderJob(database.records, log, now, {
    name: 'notifications',
    intervalMs: minuteMs,
    retryMs: minuteMs,
    pollIntervalMs,
    failureMessage: 'could not detect events for notifications',
    async round(run) {
      const includesSlow = now() >= nextSlowAt;
      let after = '';
      for (;;) {
        const workspaces = await findSubscribedWorkspaces(database.reports, after, workspacesPerQuery);
        for (const id of workspaces) await detectEvents(database, deps, id, { includesSlow, run });
        if (workspaces.length < workspacesPerQuery) break;
        after = workspaces.at(-1) ?? '';
      }
      if (includesSlow) nextSlowAt = now() + hourMs;
    },
  });
}

/** Stores the pending notifications of one workspace. */
async function detectEvents(
  { reports, records }: Database,
  { now, defaultQuotas, notifier }: DetectDeps,
  workspaceId: string,
  { includesSlow, run }: { includesSlow: boolean; run: JobRound },
): Promise<void> {
  run.throwIfStopped();
  const { findFailures, findSlowCauses } = await import('../../operations/notifications/causes.ts');
  const context = { db: reports, workspaceId, now: now(), defaultQuotas };
  const detected = [...(await findFailures(context)), ...(includesSlow ? await findSlowCauses(context) : [])];
  if (detected.length === 0) return;
  const webhooks = await findWebhooks(reports, workspaceId);
  const people = notifier.sendMail ? await findMailSubscribers(reports, workspaceId, maxMailRecipients) : [];
  const getRecipients = ({ event }: WorkspaceNotification): Delivery[] => [
    ...webhooks
      .filter(({ events, pausedAt }) => events.includes(event) && pausedAt === undefined)
      .map(({ id, origin }) => ({ to: 'webhook' as const, id, origin, state: 'waiting' as const })),
    ...people
      .filter(({ events }) => events.includes(event))
      .map(({ userId }) => ({ to: 'mail' as const, id: userId, state: 'waiting' as const })),
  ];
  for (const notification of detected) {
    const deliveries = getRecipients(notification);
    const id = newId(randomBytes, 'ntc');
    if (deliveries.length > 0)
      await insertNotification(records, { ...notification, id, workspaceId, at: now(), deliveries, attempts: 0 });
  }
}
