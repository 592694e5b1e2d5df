import type { CallLog } from '../../gateway/call/call-log.ts';
import type { KeptFiles } from '../../gateway/files/kept-files.ts';
import type { Circuits } from '../../gateway/limits/circuits.ts';
import type { Limits } from '../../gateway/limits/limits.ts';
import type { AnswerRests } from '../../gateway/long-answers/answer-rests.ts';
import type { Gates } from '../../operations/quotas/gate.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { Database } from '../../store/database.ts';
import type { Source } from '../../telemetry/metric.ts';
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
    {
      name: 'toolhost_long_answers_total',
      help: 'Answers that were cut (rest kept, or lost to a fault) and reads of their rests (read, or missing).',
      type: 'counter',
      label: 'event',
      readEach: rests.counts,
    },
    {
      name: 'toolhost_files_total',
      help: 'Large files of answers (kept, full: no space in the workspace, or lost to a fault), requests for them (served, cut off, or missing) and their uploads.',
      type: 'counter',
      label: 'event',
      readEach: files.counts,
    },
  ];
}

function outboundSources({ http }: Watched): Source[] {
  return [
    {
      name: 'toolhost_outbound_pools',
      help: 'Pools of connections to upstreams and providers.',
      type: 'gauge',
      read: http.poolCount,
    },
    {
      name: 'toolhost_outbound_connections',
      help: 'Open connections to upstreams and providers.',
      type: 'gauge',
      read: () => http.load().connections,
    },
    {
      name: 'toolhost_outbound_requests',
      help: 'Requests to upstreams and providers: under way, and waiting for a connection.',
      type: 'gauge',
      label: 'state',
      readEach: () => {
        const { running, waiting } = http.load();
        return { running, waiting };
      },
    },
    {
      name: 'toolhost_outbound_unasked_total',
      help: 'Connections that were closed because an upstream sent bytes that no request asked for.',
      type: 'counter',
      read: () => http.load().unasked,
    },
  ];
}

function limitSources({ limits, circuits, limitedByAddress }: Watched): Source[] {
  return [
    {
      name: 'toolhost_address_limit_refusals_total',
      help: 'Requests that were not let in and answered with 429, because too many of their address were refused before.',
      type: 'counter',
      read: limitedByAddress,
    },
    {
      name: 'toolhost_calls_in_progress',
      help: 'Tool calls that run, and that wait for a slot under the limits.',
      type: 'gauge',
      label: 'state',
      readEach() {
        const { running, waiting } = limits.snapshot();
        return { running, waiting };
      },
    },
    {
      name: 'toolhost_limit_refusals_total',
      help: 'Tool calls that were refused, by the limit that refused them.',
      type: 'counter',
      label: 'limit',
      readEach: () => limits.snapshot().refused,
    },
    {
      name: 'toolhost_circuit_breakers',
      help: 'Circuit breakers that are not closed; each stands for one upstream of one workspace.',
      type: 'gauge',
      label: 'state',
      readEach() {
        const { open, halfOpen } = circuits.snapshot();
        return { open, half_open: halfOpen };
      },
    },
  ];
}

function cacheSources({ caches: { servers, keys }, logins: { grants } }: Watched): Source[] {
  const caches = () => ({ servers: servers.counts(), keys: keys.counts(), logins: grants.counts() });
  const eachCache = (of: 'entries' | 'hits' | 'misses') => () =>
    Object.fromEntries(Object.entries(caches()).map(([cache, counts]) => [cache, counts[of]]));
  return [
    {
      name: 'toolhost_cache_entries',
      help: 'What is remembered of the database.',
      type: 'gauge',
      label: 'cache',
      readEach: eachCache('entries'),
    },
    {
      name: 'toolhost_cache_hits_total',
      help: 'Look-ups that were answered from memory.',
      type: 'counter',
      label: 'cache',
      readEach: eachCache('hits'),
    },
    {
      name: 'toolhost_cache_misses_total',
      help: 'Look-ups that needed the database.',
      type: 'counter',
      label: 'cache',
      readEach: eachCache('misses'),
    },
  ];
}

function storeSources({ caches, time, callLog, readiness, presence, faults }: Watched): Source[] {
  const { changes } = caches;
  return [
    {
      name: 'toolhost_call_records_waiting',
      help: 'Call records that are not written yet.',
      type: 'gauge',
      read: callLog.waiting,
    },
    {
      name: 'toolhost_database_up',
      help: '1 while the database answers the look for changes that is made every second.',
      type: 'gauge',
      merge: 'min',
      read: () => Number(changes.state().isUp),
    },
    {
      name: 'toolhost_store_faults_total',
      help: 'Statements that the database did not carry out, by what was wrong.',
      type: 'counter',
      label: 'class',
      readEach: () => faults,
    },
    {
      name: 'toolhost_changes_age_seconds',
      help: 'How long ago the last look for changes succeeded; what is remembered serves for 60 s.',
      type: 'gauge',
      merge: 'max',
      read: () => changes.state().ageMs / 1000,
    },
    {
      name: 'toolhost_clock_skew_seconds',
      help: 'How far the clock of this process is from the time of the database; on PostgreSQL it is not ready above 5 s while most other processes agree with the database.',
      type: 'gauge',
      merge: 'max',
      read: () => Math.abs(time.skewMs()) / 1000,
    },
    {
      name: 'toolhost_serving_processes',
      help: 'Processes that serve from the same database, as this one sees them.',
      type: 'gauge',
      merge: 'max',
      read: presence.count,
    },
    {
      name: 'toolhost_ready',
      help: '1 while the process can serve.',
      type: 'gauge',
      merge: 'min',
      read: () => Number(readiness.isServing()),
    },
  ];
}

function reportSources({ gates: { report } }: Watched): Source[] {
  return [
    {
      name: 'toolhost_reports',
      help: 'Lists, statistics and exports: under way, and waiting for their turn.',
      type: 'gauge',
      label: 'state',
      readEach() {
        const { running, waiting } = report.counts();
        return { running, waiting };
      },
    },
    {
      name: 'toolhost_report_refusals_total',
      help: 'Lists, statistics and exports that were refused because their workspace asks for too many.',
      type: 'counter',
      read: () => report.counts().refused,
    },
  ];
}
