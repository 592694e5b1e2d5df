import { AppError } from '@toolhost/errors/errors';
import type { Log } from '../../log.ts';
import { getNextAttemptAt, maxMailRecipients } from '../../notification-events.ts';
import { createMail, createWebhookBody } from '../../operations/notifications/messages.ts';
import type { Notifier, OperationDeps } from '../../operations/operation.ts';
import { minuteMs } from '../../store/calls/call-writer.ts';
import type { Database } from '../../store/database.ts';
import {
  type Delivery,
  findDueNotifications,
  type StoredNotification,
  saveAttempt,
} from '../../store/notifications.ts';
import { contexts } from '../../store/sealing/sealing.ts';
import { findMailSubscribers, findWebhooks } from '../../store/webhooks.ts';
import { defaultPollIntervalMs, type JobRound, type LeaderJob, startLeaderJob } from './leader-job.ts';
import { runFairly } from './run-fairly.ts';

const notificationsPerQuery = 200;
const maxConcurrentSends = 8;

type NotifierDeps = Pick<OperationDeps, 'keyring' | 'now' | 'baseUrl'> & {
  notifier: Notifier;
  pollIntervalMs?: number;
};

/** Starts the job that sends due notifications, in the one process that holds the lease. */
export function startNotifier(database: Database, log: Log, deps: NotifierDeps): LeaderJob {
  const { now, pollIntervalMs } = deps;
  return startLeaderJob(database.records, log, now, {
    name: 'telling',
    intervalMs: defaultPollIntervalMs,
    retryMs: minuteMs,
    pollIntervalMs,
    failureMessage: 'could not send notifications',
    round: (jobRound) => sendDueNotifications(database, deps, jobRound, log),
  });
}

async function sendDueNotifications(
  database: Database,
  deps: NotifierDeps,
  jobRound: JobRound,
  log: Log,
): Promise<void> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  // Prevents an unhandled rejection if no delivery is in progress.
  stopped.catch(() => undefined);
  const onStop = () => reject(new Error('the process stops'));
  jobRound.signal.addEventListener('abort', onStop);
  const deliver = async (notification: StoredNotification) => {
    jobRound.throwIfStopped();
    const delivering = attemptDeliveries(database, deps, notification, log);
    const deliveries = await Promise.race([delivering, stopped]).catch((error: unknown) => {
      jobRound.throwIfStopped();
      throw error;
    });
    await recordAttempt(database, { ...notification, deliveries, attempts: notification.attempts + 1 }, deps.now());
  };
  const findDue = (inProgress: readonly StoredNotification[]) =>
    findDueNotifications(database.reports, deps.now(), { limit: notificationsPerQuery, excluded: inProgress });
  await runFairly({ maxConcurrent: maxConcurrentSends, find: findDue, run: deliver }).finally(() =>
    jobRound.signal.removeEventListener('abort', onStop),
  );
}

async function recordAttempt({ records }: Database, notification: StoredNotification, now: number): Promise<void> {
  const hasPending = notification.deliveries.some(({ state }) => state === 'waiting');
  const nextAt = hasPending ? getNextAttemptAt(now, notification.attempts) : undefined;
  const toFailed = (delivery: Delivery): Delivery =>
    delivery.state === 'waiting' ? { ...delivery, state: 'failed' } : delivery;
  const deliveries = nextAt === undefined ? notification.deliveries.map(toFailed) : notification.deliveries;
  await saveAttempt(records, { ...notification, deliveries }, nextAt);
}

/** Attempts the pending deliveries. */
async function attemptDeliveries(
  { reports }: Database,
  { notifier, keyring, baseUrl, now }: NotifierDeps,
  notification: StoredNotification,
  log: Log,
): Promise<Delivery[]> {
  const { workspaceId, id } = notification;
  const context = { workspaceId, baseUrl };
  const webhooks = new Map((await findWebhooks(reports, workspaceId)).map((webhook) => [webhook.id, webhook]));
  const members = new Map(
    (await findMailSubscribers(reports, workspaceId, maxMailRecipients)).map((member) => [member.userId, member]),
  );
  const attemptDelivery = async (delivery: Delivery): Promise<string | undefined> => {
    const webhook = webhooks.get(delivery.id);
    if (webhook) {
      const target = JSON.parse(keyring.open(webhook.sealedTarget, contexts.webhook(workspaceId, webhook.id)));
      return notifier.sendWebhook(target, {
        workspaceId,
        id,
        at: now(),
        body: createWebhookBody(notification, context),
      });
    }
    const person = members.get(delivery.id);
    if (person && notifier.sendMail)
      return notifier.sendMail({ to: person.email, ...createMail(notification, context) });
    return undefined;
  };
  const isRecipientGone = ({ id: recipientId }: Delivery) => !webhooks.has(recipientId) && !members.has(recipientId);
  return Promise.all(
    notification.deliveries.map(async (delivery) => {
      if (delivery.state !== 'waiting') return delivery;
      if (isRecipientGone(delivery))
        return { ...delivery, state: 'failed' as const, error: 'the recipient no longer exists' };
      if (webhooks.get(delivery.id)?.pausedAt !== undefined)
        return { ...delivery, state: 'failed' as const, error: 'the webhook is paused' };
      const error = await attemptDelivery(delivery).catch((failure: unknown) => {
        if (!(failure instanceof AppError)) log.error({ err: failure, workspaceId }, 'could not send a notification');
        return failure instanceof AppError ? failure.message : 'internal service error';
      });
      const { error: _, ...withoutError } = delivery;
      return error === undefined ? { ...withoutError, state: 'delivered' as const } : { ...withoutError, error };
    }),
  );
}
