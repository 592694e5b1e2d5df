import type { ServingRunner } from '../../operations/run-operation.ts';
import type { Database } from '../../store/database.ts';
import { findCompletionTimes } from '../../store/pruning/leases.ts';
import { createCounterSource, createGauge, type Metric, type Source } from '../../telemetry/metric.ts';
import { createThreadMetrics } from '../adapters/threads.ts';
import type { Caches } from '../caches.ts';
import type { CallLimiters } from '../call-limiters.ts';
import type { CallRecords } from '../call-records.ts';
import type { Foundation } from '../foundation.ts';
import type { Gateway } from '../gateway.ts';
import type { Logins } from '../logins.ts';
import type { Readiness } from '../readiness.ts';

export type MetricInputs = {
  foundation: Foundation;
  caches: Caches;
  logins: Logins;
  limiters: CallLimiters;
  callRecords: CallRecords;
  gateway: Gateway;
  runner: ServingRunner;
  readiness: Readiness;
};

/** Returns metrics whose values are held by other modules. */
export function createMetricSources(inputs: MetricInputs): Source[] {
  return [
    createOutboundSources(inputs),
    createLimitSources(inputs),
    createCacheSources(inputs),
    createStoreSources(inputs),
    createReportSources(inputs),
    createThreadMetrics(inputs.foundation.threads),
    createResultSources(inputs),
  ].flat();
}

function createResultSources({ gateway }: MetricInputs): Source[] {
  const { continuations, files } = gateway.callDeps;
  return [
    createCounterSource(
      'toolhost_long_results_total',
      'Truncated results (remainder stored, or lost to an error) and reads of their remainders (read, or missing).',
      continuations.getCounts,
      { label: 'event' },
    ),
    createCounterSource(
      'toolhost_files_total',
      'Large files in results (stored, full: no space in the workspace, or lost to an error), requests for them (served, cut off, or missing), and their uploads.',
      files.getCounts,
      { label: 'event' },
    ),
  ];
}

function createOutboundSources({ foundation: { http } }: MetricInputs): Source[] {
  return [
    createGauge('toolhost_outbound_pools', 'Connection pools to upstreams and providers.', () => http.getPoolCount()),
    createGauge(
      'toolhost_outbound_connections',
      'Open connections to upstreams and providers.',
      () => http.getLoad().connections,
    ),
    createGauge(
      'toolhost_outbound_requests',
      'Requests to upstreams and providers: running, and waiting for a connection.',
      () => {
        const { running, waiting } = http.getLoad();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    createCounterSource(
      'toolhost_outbound_unsolicited_total',
      'Connections that were closed because an upstream sent unsolicited bytes.',
      () => http.getLoad().unsolicited,
    ),
    createCounterSource(
      'toolhost_outbound_malformed_total',
      'Responses of upstreams that were not HTTP/1. LOG_LEVEL=debug logs the beginning of their bytes.',
      () => http.getLoad().malformed,
    ),
  ];
}

function createLimitSources({ limiters }: MetricInputs): Source[] {
  const { limits, circuits, addresses } = limiters;
  return [
    createCounterSource(
      'toolhost_address_limit_refusals_total',
      'Requests that were rejected with 429, because too many earlier requests from their address were rejected.',
      addresses.unverifiedCallers.getLimitedCount,
    ),
    createGauge(
      'toolhost_calls_in_progress',
      'Tool calls: running, and waiting for a slot under the limits.',
      () => {
        const { running, waiting } = limits.snapshot();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    createCounterSource(
      'toolhost_limit_refusals_total',
      'Tool calls that were rejected, by the limit that rejected them.',
      () => limits.snapshot().refused,
      { label: 'limit' },
    ),
    createGauge(
      'toolhost_circuit_breakers',
      'Circuit breakers that are not closed. There is one for each upstream of a workspace.',
      () => {
        const { open, halfOpen } = circuits.snapshot();
        return { open, half_open: halfOpen };
      },
      { label: 'state' },
    ),
  ];
}

function createCacheSources({ caches: { servers, keys }, logins: { grants } }: MetricInputs): Source[] {
  const countCaches = () => ({ servers: servers.getCounts(), keys: keys.counts(), logins: grants.getCounts() });
  const countEachCache = (field: 'entries' | 'hits' | 'misses') => () =>
    Object.fromEntries(Object.entries(countCaches()).map(([cache, counts]) => [cache, counts[field]]));
  return [
    createGauge('toolhost_cache_entries', 'Cached database values.', countEachCache('entries'), { label: 'cache' }),
    createCounterSource(
      'toolhost_cache_hits_total',
      'Cache reads that were served from memory.',
      countEachCache('hits'),
      {
        label: 'cache',
      },
    ),
    createCounterSource(
      'toolhost_cache_misses_total',
      'Cache reads that required a database query.',
      countEachCache('misses'),
      {
        label: 'cache',
      },
    ),
  ];
}

function createStoreSources({
  caches: { changes },
  foundation: { store, membership },
  callRecords,
  readiness,
}: MetricInputs): Source[] {
  return [
    createGauge('toolhost_call_records_queued', 'Call records that are not written yet.', callRecords.getWaitingCount),
    createGauge(
      'toolhost_database_up',
      '1 while the database responds to the poll for changes that runs every second.',
      () => Number(changes.state().isUp),
      { merge: 'min' },
    ),
    createCounterSource(
      'toolhost_database_errors_total',
      'Statements that failed in the database, by class of error.',
      () => store.errorCounts,
      {
        label: 'class',
      },
    ),
    createGauge(
      'toolhost_database_connections',
      'With PostgreSQL, the connections of calls and operations (at most DATABASE_POOL): used, idle, and requests waiting for one.',
      () => store.connections?.() ?? {},
      { label: 'state' },
    ),
    createGauge(
      'toolhost_change_poll_age_seconds',
      'Time since the last successful poll for changes. Cached values are used for up to 60 s.',
      () => changes.state().ageMs / 1000,
      { merge: 'max' },
    ),
    createGauge(
      'toolhost_clock_skew_seconds',
      'Difference between the clock of this process and the database clock. On PostgreSQL, the process is not ready above 5 s while most other processes agree with the database.',
      () => Math.abs(store.time.skewMs()) / 1000,
      { merge: 'max' },
    ),
    createGauge(
      'toolhost_serving_processes',
      'Processes that serve from the same database, as this one sees them.',
      () => membership.count,
      { merge: 'max' },
    ),
    createGauge('toolhost_ready', '1 while the process can serve.', () => Number(readiness.isServing()), {
      merge: 'min',
    }),
  ];
}

function createReportSources({ runner }: MetricInputs): Source[] {
  const { report } = runner.concurrencyLimiters;
  return [
    createGauge(
      'toolhost_reports',
      'Lists, statistics, and exports: running, and waiting in the queue.',
      () => {
        const { running, waiting } = report.getCounts();
        return { running, waiting };
      },
      { label: 'state' },
    ),
    createCounterSource(
      'toolhost_report_refusals_total',
      'Lists, statistics, and exports that were rejected because their workspace requested too many.',
      () => report.getCounts().refused,
    ),
  ];
}

/** Returns metrics of the state that all processes share in the database; without values while it is unavailable. */
export async function readStoredMetrics({ db }: Pick<Database, 'db'>): Promise<Metric[]> {
  // Another metric and the log report that the database is unavailable.
  const completions = await findCompletionTimes(db).catch(() => []);
  const values = Object.fromEntries(completions.map(({ name, done_at }) => [name, done_at / 1000]));
  return [
    createGauge(
      'toolhost_leader_job_success_timestamp_seconds',
      'Time when work that one process does for all was last completed: deleting old rows (upkeep), checking watched descriptions, and the command backup.',
      () => values,
      { label: 'work', merge: 'max' },
    )(),
  ];
}
