import type { IncomingMessage } from 'node:http';
import type { ObserveCall, TraceCall } from '../../domain/call-observation.ts';
import { givenUpKinds, type OnGivenUp } from '../../domain/work/memory-budget.ts';
import type { Refusal } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { type LoginEvent, loginEvents } from '../../oauth/parts.ts';
import { type BlockedClass, blockedClasses } from '../../outbound/address.ts';
import {
  counter,
  createCallMetrics,
  createCounter,
  createRequestMetrics,
  type Metric,
  mergeMetrics,
  metricsText,
  type Source,
  startLagHistogram,
} from '../../telemetry/metric.ts';
import { createMetricsEndpoint } from '../../telemetry/metrics-endpoint.ts';
import { buildInfo, processSources } from '../../telemetry/process-sources.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { version } from '../../version.ts';
import type { FullConfig } from '../full-config.ts';

/** Metrics and traces. The other modules report events through plain functions and import nothing from telemetry. */
export type Observability = {
  ofCalls: { observe: ObserveCall; trace: TraceCall | undefined };
  ofMcpListener: { onAnswered: (posted: unknown, status: number) => void; onRefused: (refusal: Refusal) => void };
  ofWebRouter: { onAnswered: (status: number) => void; metrics: (request: IncomingMessage) => Promise<Response> };
  onBlocked: (of: BlockedClass) => void;
  onLoginEvent: (event: LoginEvent) => void;
  onGivenUp: OnGivenUp;
  /** Counts dropped call records. */
  onDropped: (rows: number) => void;
  /** Adds metrics whose values are held by other modules, and stored metrics, which are the same in all processes. */
  watch(sources: readonly Source[], stored: () => Promise<Metric[]>): void;
  /** Returns all metrics of this process. */
  read(): Metric[];
  /** Sends the pending spans. Never throws. */
  stop(): Promise<void>;
};

const refusals = ['missing', 'invalid', 'forbidden'] as const satisfies readonly Refusal[];

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
  const { refused, blocked, logins, givenUp } = createCounters();
  let dropped = 0;
  const lost = counter(
    'toolhost_call_records_dropped_total',
    'Call records that were dropped because the database could not store them.',
    () => dropped,
  );
  const sources: Source[] = [...processSources, lost];
  let readStored = async (): Promise<Metric[]> => [];
  const read = () => [
    ...calls.read(),
    ...requests.read(),
    ...[refused, blocked, logins, givenUp, lag].map((part) => part.read()),
    ...sources.map((read) => read()),
    buildInfo({ version, mode: config.mode, database }),
  ];
  const metrics = createMetricsEndpoint({
    isOpenOnLoopback: config.mode === 'local',
    token: metricsToken,
    // A scrape reaches one worker, and must return the metrics of all workers.
    text: async () => {
      const own = mergeMetrics((await config.siblings?.metrics()) ?? [read()]);
      return metricsText([...own, ...(await readStored())]);
    },
  });
  return {
    ofCalls: { observe: calls.observe, trace: traces?.traceCall },
    ofMcpListener: { onAnswered: requests.countMcp, onRefused: (kind) => refused.count({ kind }) },
    ofWebRouter: { onAnswered: requests.countWeb, metrics },
    onBlocked: (of) => blocked.count({ class: of }),
    onLoginEvent: (event) => logins.count({ event }),
    onGivenUp: (what) => givenUp.count({ what }),
    onDropped(rows) {
      dropped += rows;
    },
    watch(more, stored) {
      sources.push(...more);
      readStored = stored;
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
    refused: createCounter(
      'toolhost_authentication_refusals_total',
      'Requests without a valid credential, by reason.',
      { kind: refusals },
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
    givenUp: createCounter(
      'toolhost_given_up_total',
      'Load that was shed to leave capacity for others, or because its client is too slow: connections, incoming bodies, unread responses, work that needs memory, and queued operations.',
      { what: givenUpKinds },
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
