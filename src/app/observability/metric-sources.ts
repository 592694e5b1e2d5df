import type { CallLog } from '../../gateway/call/call-log.ts';
import type { KeptFiles } from '../../gateway/files/kept-files.ts';
import type { Circuits } from '../../gateway/limits/circuits.ts';
import type { Limits } from '../../gateway/limits/limits.ts';
import type { AnswerRests } from '../../gateway/long-answers/answer-rests.ts';
import type { Gates } from '../../operations/quotas/gate.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { Database } from '../../store/database.ts';
import { lastDone } from '../../store/pruning/leases.ts';
import { counter, gauge, type Metric, type Source } from '../../telemetry/metric.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import { threadSources } from '../adapters/threads.ts';
import type { Caches } from '../caches.ts';
import type { Logins } from '../logins.ts';
import type { Store } from '../open-store.ts';
import type { Presence } from '../presence.ts';
import type { Readiness } from '../readiness.ts';

export type Watched = {
  http: HttpClient;
  caches: Caches;
  logins: Logins;
  callLog: Pick<CallLog, 'waiting'>;
  limits: Limits;
  circuits: Circuits;
  gates: Gates;
  threads: ThreadPool;
  rests: AnswerRests;
  files: KeptFiles;
  readiness: Readiness;
  presence: Presence;
  faults: Database['faults'];
  connections?: Database['connections'];
  time: Store['time'];
  /** Requests since the start that were refused by the limit of their address. */
  limitedByAddress: () => number;
};

/** Metrics of the values that other modules keep. */
export function metricSources(watched: Watched): Source[] {
  return [
    ...outboundSources(watched),
    ...limitSources(watched),
    ...cacheSources(watched),
    ...storeSources(watched),
    ...reportSources(watched),
    ...threadSources(watched.threads),
    ...answerSources(watched),
  ];
}

function answerSources({ rests, files }: Watched): Source[] {
  return [
    counter(
      'toolhost_long_answers_total',
      'Answers that were cut (rest kept, or lost to a fault) and reads of their rests (read, or missing).',
      rests.counts,
      { label: 'event' },
    ),
    counter(
      'toolhost_files_total',
      'Large files of answers (kept, full: no space in the workspace, or lost to a fault), requests for them (served, cut off, or missing) and their uploads.',
      files.counts,
      { label: 'event' },
    ),
  ];
}

function outboundSources({ http }: Watched): Source[] {
  return [
    gauge('toolhost_outbound_pools', 'Pools of connections to upstreams and providers.', http.poolCount),
    gauge(
      'toolhost_outbound_connections',
      'Open connections to upstreams and providers.',
      () => http.load().connections,
    ),
    gauge(
      'toolhost_outbound_requests',
      'Requests to upstreams and providers: under way, and waiting for a connection.',
      () => {
        const { running, waiting } = http.load();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    counter(
      'toolhost_outbound_unasked_total',
      'Connections that were closed because an upstream sent bytes that no request asked for.',
      () => http.load().unasked,
    ),
  ];
}

function limitSources({ limits, circuits, limitedByAddress }: Watched): Source[] {
  return [
    counter(
      'toolhost_address_limit_refusals_total',
      'Requests that were not let in and answered with 429, because too many of their address were refused before.',
      limitedByAddress,
    ),
    gauge(
      'toolhost_calls_in_progress',
      'Tool calls that run, and that wait for a slot under the limits.',
      () => {
        const { running, waiting } = limits.snapshot();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    counter(
      'toolhost_limit_refusals_total',
      'Tool calls that were refused, by the limit that refused them.',
      () => limits.snapshot().refused,
      { label: 'limit' },
    ),
    gauge(
      'toolhost_circuit_breakers',
      'Circuit breakers that are not closed; each stands for one upstream of one workspace.',
      () => {
        const { open, halfOpen } = circuits.snapshot();
        return { open, half_open: halfOpen };
      },
      { label: 'state' },
    ),
  ];
}

function cacheSources({ caches: { servers, keys }, logins: { grants } }: Watched): Source[] {
  const caches = () => ({ servers: servers.counts(), keys: keys.counts(), logins: grants.counts() });
  const eachCache = (of: 'entries' | 'hits' | 'misses') => () =>
    Object.fromEntries(Object.entries(caches()).map(([cache, counts]) => [cache, counts[of]]));
  return [
    gauge('toolhost_cache_entries', 'What is remembered of the database.', eachCache('entries'), { label: 'cache' }),
    counter('toolhost_cache_hits_total', 'Look-ups that were answered from memory.', eachCache('hits'), {
      label: 'cache',
    }),
    counter('toolhost_cache_misses_total', 'Look-ups that needed the database.', eachCache('misses'), {
      label: 'cache',
    }),
  ];
}

function storeSources({ caches, time, callLog, readiness, presence, faults, connections }: Watched): Source[] {
  const { changes } = caches;
  return [
    gauge('toolhost_call_records_waiting', 'Call records that are not written yet.', callLog.waiting),
    gauge(
      'toolhost_database_up',
      '1 while the database answers the look for changes that is made every second.',
      () => Number(changes.state().isUp),
      { merge: 'min' },
    ),
    counter(
      'toolhost_store_faults_total',
      'Statements that the database did not carry out, by what was wrong.',
      () => faults,
      { label: 'class' },
    ),
    gauge(
      'toolhost_database_connections',
      'With PostgreSQL, the connections of calls and operations (at most DATABASE_POOL), used and idle, and what waits for one.',
      () => connections?.() ?? {},
      { label: 'state' },
    ),
    gauge(
      'toolhost_changes_age_seconds',
      'How long ago the last look for changes succeeded; what is remembered serves for 60 s.',
      () => changes.state().ageMs / 1000,
      { merge: 'max' },
    ),
    gauge(
      'toolhost_clock_skew_seconds',
      'How far the clock of this process is from the time of the database; on PostgreSQL it is not ready above 5 s while most other processes agree with the database.',
      () => Math.abs(time.skewMs()) / 1000,
      { merge: 'max' },
    ),
    gauge(
      'toolhost_serving_processes',
      'Processes that serve from the same database, as this one sees them.',
      () => presence.count,
      { merge: 'max' },
    ),
    gauge('toolhost_ready', '1 while the process can serve.', () => Number(readiness.isServing()), { merge: 'min' }),
  ];
}

function reportSources({ gates: { report } }: Watched): Source[] {
  return [
    gauge(
      'toolhost_reports',
      'Lists, statistics and exports: under way, and waiting for their turn.',
      () => {
        const { running, waiting } = report.counts();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    counter(
      'toolhost_report_refusals_total',
      'Lists, statistics and exports that were refused because their workspace asks for too many.',
      () => report.counts().refused,
    ),
  ];
}

/** Metrics of what all processes share in the database; without values while it does not answer. */
export async function storedMetrics({ db }: Pick<Database, 'db'>): Promise<Metric[]> {
  // That it does not answer is another metric, and in the log.
  const done = await lastDone(db).catch(() => []);
  const values = Object.fromEntries(done.map(({ name, done_at }) => [name, done_at / 1000]));
  return [
    gauge(
      'toolhost_work_done_timestamp_seconds',
      'When work that one process does for all was last done to its end: deleting old rows (upkeep), looking at watched descriptions, and the command backup.',
      () => values,
      { label: 'work', merge: 'max' },
    )(),
  ];
}
