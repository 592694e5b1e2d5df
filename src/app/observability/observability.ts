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

/** Metrics and traces. The other modules report events through plain functions and import nothing of telemetry. */
export type Observability = {
  ofCalls: { observe: ObserveCall; trace: TraceCall | undefined };
  ofMcpListener: { onAnswered: (posted: unknown, status: number) => void; onRefused: (refusal: Refusal) => void };
  ofWebRouter: { onAnswered: (status: number) => void; metrics: (request: IncomingMessage) => Promise<Response> };
  onBlocked: (of: BlockedClass) => void;
  onLoginEvent: (event: LoginEvent) => void;
  onGivenUp: OnGivenUp;
  /** Counts call records that were dropped. */
  onDropped: (rows: number) => void;
  /** Adds metrics whose values other modules keep, and those that are stored, which are the same in all processes. */
  watch(sources: readonly Source[], stored: () => Promise<Metric[]>): void;
  /** All metrics of this process. */
  read(): Metric[];
  /** Sends the spans that are still waiting. Never throws. */
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
    'Call records that were given up because the database did not take them.',
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
    // A scrape reaches one worker, and must return the metrics of all.
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
      'Requests without a credential that is good for them, by what was wrong.',
      { kind: refusals },
    ),
    blocked: createCounter(
      'toolhost_blocked_addresses_total',
      'Connections that the address guard refused, by class of address.',
      { class: blockedClasses },
    ),
    logins: createCounter(
      'toolhost_logins_total',
      'Logins through the OAuth proxy and refreshes at the providers, by what happened.',
      { event: loginEvents },
    ),
    givenUp: createCounter(
      'toolhost_given_up_total',
      'What was ended or refused so that others have room, or because its client is too slow: connections, bodies that arrive, answers that are not read, work that needs memory, and operations that wait.',
      { what: givenUpKinds },
    ),
  };
}

/** Starts traces to the operator's collector. Without one it loads no code and returns undefined. */
async function startTraces(endpoint: string | undefined, log: Log): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { startTracing } = await import('../../telemetry/tracing.ts');
  return startTracing({
    endpoint,
    version,
    env: process.env,
    onCollector(state, cause) {
      if (state === 'failing') log.warn({ cause }, 'the trace collector does not take spans; calls go on without it');
      else log.info('the trace collector takes spans again');
    },
  });
}
