import type { IncomingMessage } from 'node:http';
import type { Refusal } from '@toolhost/errors/errors';
import { type OnShed, shedKinds } from '@toolhost/limits/memory-budget';
import { type BlockedClass, blockedClasses } from '@toolhost/safe-http/address';
import type { ObserveCall, TraceCall } from '../../call-observation.ts';
import type { Log } from '../../log.ts';
import { type LoginEvent, loginEvents } from '../../oauth/oauth-deps.ts';
import {
  createCallMetrics,
  createCounter,
  createCounterSource,
  createRequestMetrics,
  formatMetrics,
  type Metric,
  mergeMetrics,
  type Source,
  startLagHistogram,
} from '../../telemetry/metric.ts';
import { createMetricsEndpoint } from '../../telemetry/metrics-endpoint.ts';
import { createBuildInfo, processSources } from '../../telemetry/process-sources.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { version } from '../../version.ts';
import type { FullConfig } from '../full-config.ts';

/** Metrics and traces. The other modules report events through plain functions and import nothing from telemetry. */
export type Observability = {
  callHooks: { observe: ObserveCall; trace: TraceCall | undefined };
  mcpListenerHooks: { onResponse: (posted: unknown, status: number) => void; onRefused: (refusal: Refusal) => void };
  webRouterHooks: { onResponse: (status: number) => void; metrics: (request: IncomingMessage) => Promise<Response> };
  onBlocked: (addressClass: BlockedClass) => void;
  onLoginEvent: (event: LoginEvent) => void;
  onShed: OnShed;
  /** Counts dropped call records. */
  onDropped: (rows: number) => void;
  /** Adds metrics whose values are held by other modules, and stored metrics, which are the same in all processes. */
  addSources(sources: readonly Source[], readStoredMetrics: () => Promise<Metric[]>): void;
  /** Returns all metrics of this process. */
  read(): Metric[];
  /** Sends the pending spans. Never throws. */
  stop(): Promise<void>;
};

const refusalKinds = ['missing', 'invalid', 'forbidden'] as const satisfies readonly Refusal[];

export async function startObservability(
  config: FullConfig,
  metricsToken: string | undefined,
  log: Log,
): Promise<Observability> {
  const { engine: database } = config;
  const traces = await startTraces(config.otlpEndpoint, log);
  const calls = createCallMetrics();
  const requests = createRequestMetrics();
  const lag = startLagHistogram();
  const { refusals, blocked, logins, shed } = createCounters();
  let dropped = 0;
  const droppedSource = createCounterSource(
    'toolhost_call_records_dropped_total',
    'Call records that were dropped because the database could not store them.',
    () => dropped,
  );
  const sources: Source[] = [...processSources, droppedSource];
  let readStored = async (): Promise<Metric[]> => [];
  const read = () => [
    ...calls.read(),
    ...requests.read(),
    ...[refusals, blocked, logins, shed, lag].map((source) => source.read()),
    ...sources.map((read) => read()),
    createBuildInfo({ version, mode: config.mode, database }),
  ];
  const metrics = createMetricsEndpoint({
    isOpenOnLoopback: config.mode === 'local',
    token: metricsToken,
    // A scrape reaches one worker, and must return the metrics of all workers.
    getText: async () => {
      const merged = mergeMetrics((await config.siblings?.metrics()) ?? [read()]);
      return formatMetrics([...merged, ...(await readStored())]);
    },
  });
  return {
    callHooks: { observe: calls.observe, trace: traces?.traceCall },
    mcpListenerHooks: { onResponse: requests.countMcp, onRefused: (kind) => refusals.count({ kind }) },
    webRouterHooks: { onResponse: requests.countWeb, metrics },
    onBlocked: (addressClass) => blocked.count({ class: addressClass }),
    onLoginEvent: (event) => logins.count({ event }),
    onShed: (shedKind) => shed.count({ what: shedKind }),
    onDropped(rows) {
      dropped += rows;
    },
    addSources(moreSources, readStoredMetrics) {
      sources.push(...moreSources);
      readStored = readStoredMetrics;
    },
    read,
    async stop() {
      lag.stop();
      await traces?.stop();
    },
  };
}

function createCounters() {
  return {
    refusals: createCounter(
      'toolhost_authentication_refusals_total',
      'Requests without a valid credential, by reason.',
      { kind: refusalKinds },
    ),
    blocked: createCounter(
      'toolhost_blocked_addresses_total',
      'Connections that the address guard rejected, by class of address.',
      { class: blockedClasses },
    ),
    logins: createCounter(
      'toolhost_logins_total',
      'Logins through the OAuth proxy and refreshes at the providers, by event.',
      { event: loginEvents },
    ),
    shed: createCounter(
      'toolhost_load_shed_total',
      'Load that was shed to leave capacity for others, or because its client is too slow: connections, incoming bodies, unread responses, work that needs memory, and queued operations.',
      { what: shedKinds },
    ),
  };
}

/** Starts traces to the operator's collector. Without a collector, it loads no code and returns undefined. */
async function startTraces(endpoint: string | undefined, log: Log): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { startTracing } = await import('../../telemetry/tracing.ts');
  return startTracing({
    endpoint,
    version,
    env: process.env,
    onCollector(state, cause) {
      if (state === 'failing')
        log.warn({ cause }, 'the trace collector does not accept spans; calls continue without it');
      else log.info('the trace collector accepts spans again');
    },
  });
}
