import { mostMailed, nextAttemptAt } from '../../domain/notices.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { mailOf, webhookBody } from '../../operations/notices/messages.ts';
import type { Parts, Telling } from '../../operations/operation.ts';
import { minuteMs } from '../../store/calls/call-writer.ts';
import type { Database } from '../../store/database.ts';
import { type Delivery, findDueNotices, type StoredNotice, saveAttempt } from '../../store/notices.ts';
import { contexts } from '../../store/sealing/sealing.ts';
import { mailedMembers, webhooksOf } from '../../store/webhooks.ts';
import { type ElectedWork, type RunningRound, startElectedWork, usualLookMs } from './elected-work.ts';
import { runInTurns } from './in-turns.ts';

/** Number of notifications per query, and number of notifications that are sent concurrently. */
const foundAtOnce = 200;
const sentAtOnce = 8;

type TellParts = Pick<Parts, 'keyring' | 'now' | 'baseUrl'> & { telling: Telling; lookMs?: number };

/** Starts the job that sends due notifications, in the one process that holds the lease. */
export function startTelling(database: Database, log: Log, parts: TellParts): ElectedWork {
  const { now, lookMs } = parts;
  return startElectedWork(database.records, log, now, {
    name: 'telling',
    roundMs: usualLookMs,
    againMs: minuteMs,
    lookMs,
    failure: 'could not send notifications',
    round: (running) => sendDue(database, parts, running, log),
  });
}

async function sendDue(database: Database, parts: TellParts, running: RunningRound, log: Log): Promise<void> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  const onStop = () => reject(new Error('the process stops'));
  running.signal.addEventListener('abort', onStop);
  const run = async (notice: StoredNotice) => {
    running.mayGoOn();
    const sent = send(database, parts, notice, log);
    const deliveries = await Promise.race([sent, stopped]).catch((error: unknown) => {
      running.mayGoOn();
      throw error;
    });
    await noteAttempt(database, { ...notice, deliveries, attempts: notice.attempts + 1 }, parts.now());
  };
  const find = (sending: readonly StoredNotice[]) =>
    findDueNotices(database.reports, parts.now(), { most: foundAtOnce, except: sending });
  await runInTurns({ maxConcurrent: sentAtOnce, find, run }).finally(() =>
    running.signal.removeEventListener('abort', onStop),
  );
}

async function noteAttempt({ records }: Database, notice: StoredNotice, now: number): Promise<void> {
  const waits = notice.deliveries.some(({ state }) => state === 'waiting');
  const nextAt = waits ? nextAttemptAt(now, notice.attempts) : undefined;
  const ended = (one: Delivery): Delivery => (one.state === 'waiting' ? { ...one, state: 'given_up' } : one);
  const deliveries = nextAt === undefined ? notice.deliveries.map(ended) : notice.deliveries;
  await saveAttempt(records, { ...notice, deliveries }, nextAt);
}

/** Attempts the pending deliveries. */
async function send(
  { reports }: Database,
  { telling, keyring, baseUrl, now }: TellParts,
  notice: StoredNotice,
  log: Log,
): Promise<Delivery[]> {
  const { workspaceId, id } = notice;
  const place = { workspaceId, baseUrl };
  const webhooks = new Map((await webhooksOf(reports, workspaceId)).map((webhook) => [webhook.id, webhook]));
  const people = new Map((await mailedMembers(reports, workspaceId, mostMailed)).map((one) => [one.userId, one]));
  const sendOne = async (delivery: Delivery): Promise<string | undefined> => {
    const webhook = webhooks.get(delivery.id);
    if (webhook) {
      const target = JSON.parse(keyring.open(webhook.sealedTarget, contexts.webhook(workspaceId, webhook.id)));
      return telling.webhook(target, { workspaceId, id, at: now(), body: webhookBody(notice, place) });
    }
    const person = people.get(delivery.id);
    if (person && telling.mail) return telling.mail({ to: person.email, ...mailOf(notice, place) });
    return undefined;
  };
  const isGone = ({ id: receiver }: Delivery) => !webhooks.has(receiver) && !people.has(receiver);
  return Promise.all(
    notice.deliveries.map(async (delivery) => {
      if (delivery.state !== 'waiting') return delivery;
      if (isGone(delivery)) return { ...delivery, state: 'given_up' as const, error: 'the recipient no longer exists' };
      if (webhooks.get(delivery.id)?.pausedAt !== undefined)
        return { ...delivery, state: 'given_up' as const, error: 'the webhook is paused' };
      const error = await sendOne(delivery).catch((thrown: unknown) => {
        if (!(thrown instanceof AppError)) log.error({ err: thrown, workspaceId }, 'could not send a notification');
        return thrown instanceof AppError ? thrown.message : 'internal service error';
      });
      const { error: _, ...rest } = delivery;
      return error === undefined ? { ...rest, state: 'delivered' as const } : { ...rest, error };
    }),
  );
}
