import { randomBytes } from 'node:crypto';
import { newId } from '../../domain/ids.ts';
import { mostMailed, type Notice, nextAttemptAt } from '../../domain/notices.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { mailOf, webhookBody } from '../../operations/notices/messages.ts';
import type { Parts, Telling } from '../../operations/operation.ts';
import { hourMs, minuteMs } from '../../store/calls/call-writer.ts';
import type { Database } from '../../store/database.ts';
import { type Delivery, findDueNotices, insertNotice, type StoredNotice, saveAttempt } from '../../store/notices.ts';
import { contexts } from '../../store/sealing/sealing.ts';
import { listeningWorkspaces, mailedMembers, webhooksOf } from '../../store/webhooks.ts';
import { type ElectedWork, type RunningRound, startElectedWork } from './elected-work.ts';

/** Workspaces and notices that are read at once, and notices that are sent at once. */
const foundAtOnce = 200;
const sentAtOnce = 8;

type TellParts = Pick<Parts, 'keyring' | 'now' | 'baseUrl' | 'defaultQuotas'> & { telling: Telling; lookMs?: number };

/**
 * Looks once a minute for what the people and webhooks of workspaces want to be told of, and once an hour for what
 * changes slowly; and tells them. The work of the one process that holds the lease.
 */
export function startTelling(database: Database, log: Log, parts: TellParts): ElectedWork {
  const { now, lookMs } = parts;
  let slowAt = 0;
  return startElectedWork(database.records, log, now, {
    name: 'notices',
    roundMs: minuteMs,
    againMs: minuteMs,
    lookMs,
    failure: 'could not tell of what happened',
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
      await sendDue(database, parts, running, log);
    },
  });
}

/** Stores what there is to tell one workspace of. */
async function lookAt(
  { reports, records }: Database,
  { now, defaultQuotas, telling }: TellParts,
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

/** Sends what is due, in each turn one notice of each workspace: slow receivers delay those of their own workspace. */
async function sendDue(database: Database, parts: TellParts, running: RunningRound, log: Log): Promise<void> {
  const stopped = new Promise<never>((_, reject) => {
    running.signal.addEventListener('abort', () => reject(new Error('the process stops')), { once: true });
  });
  stopped.catch(() => undefined);
  for (;;) {
    const due = await findDueNotices(database.reports, parts.now(), foundAtOnce);
    if (due.length === 0) return;
    const lane = async () => {
      for (let notice = due.shift(); notice; notice = due.shift()) {
        running.mayGoOn();
        const sent = send(database, parts, notice, log);
        const deliveries = await Promise.race([sent, stopped]).catch((error: unknown) => {
          running.mayGoOn();
          throw error;
        });
        await noteAttempt(database, { ...notice, deliveries, attempts: notice.attempts + 1 }, parts.now());
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: sentAtOnce }, lane));
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }
}

async function noteAttempt({ records }: Database, notice: StoredNotice, now: number): Promise<void> {
  const waits = notice.deliveries.some(({ state }) => state === 'waiting');
  const nextAt = waits ? nextAttemptAt(now, notice.attempts) : undefined;
  const ended = (one: Delivery): Delivery => (one.state === 'waiting' ? { ...one, state: 'given_up' } : one);
  const deliveries = nextAt === undefined ? notice.deliveries.map(ended) : notice.deliveries;
  await saveAttempt(records, { ...notice, deliveries }, nextAt);
}

/** Tries the deliveries that wait. */
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
      if (isGone(delivery)) return { ...delivery, state: 'given_up' as const, error: 'nobody is there any more' };
      if (webhooks.get(delivery.id)?.pausedAt !== undefined)
        return { ...delivery, state: 'given_up' as const, error: 'it is paused' };
      const error = await sendOne(delivery).catch((thrown: unknown) => {
        if (!(thrown instanceof AppError)) log.error({ err: thrown, workspaceId }, 'could not send a notice');
        return thrown instanceof AppError ? thrown.message : 'internal error of the service';
      });
      const { error: _, ...rest } = delivery;
      return error === undefined ? { ...rest, state: 'delivered' as const } : { ...rest, error };
    }),
  );
}
