import { outcomes } from '@toolhost/errors/errors';
import type { ProtocolGeneration } from '@toolhost/mcp-protocol/mcp';
import { type Access, accessKinds } from '@toolhost/tool-config/server-wide';
import type { CallTimes, ObserveCall } from '../call-observation.ts';

/** Rule for merging the values of several processes. */
export type Merge = 'sum' | 'max' | 'min';

/** A sample line of a metric. `labels` is the printed form, such as `outcome="ok"`, or empty. */
export type Sample = { suffix: string; labels: string; value: number };

/** A metric as plain data, so that it can be sent between processes. */
export type Metric = {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  merge: Merge;
  samples: Sample[];
};

/** Metric of a number that another module maintains, read at each scrape; with `label`, one sample per label value. */
export type Source = () => Metric;

type Read = () => number | { readonly [value: string]: number };
type SourceOptions = { label?: string; merge?: Merge };

export function createGauge(name: string, help: string, read: Read, options?: SourceOptions): Source {
  return createSource(name, help, 'gauge', read, options);
}

export function createCounterSource(name: string, help: string, read: Read, options?: SourceOptions): Source {
  return createSource(name, help, 'counter', read, options);
}

function createSource(
  name: string,
  help: string,
  type: 'counter' | 'gauge',
  read: Read,
  { label: labelName = '', merge = 'sum' }: SourceOptions = {},
): Source {
  return () => {
    const result = read();
    const samples =
      typeof result === 'number'
        ? [{ suffix: '', labels: '', value: result }]
        : Object.entries(result).map(([labelValue, value]) => ({
            suffix: '',
            labels: formatLabel(labelName, labelValue),
            value,
          }));
    return { name, help, type, merge, samples };
  };
}

/** Formats and escapes `name="value"` for the text format. */
export function formatLabel(name: string, value: string): string {
  return `${name}="${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`;
}

/** A counter with labels. Their values are fixed in advance, so that the number of samples is bounded. */
export type Counter<Labels extends LabelValues> = {
  count(labelValues: { readonly [Name in keyof Labels]: Labels[Name][number] }): void;
  read(): Metric;
};

/** Values of each label, in print order. */
type LabelValues = { readonly [name: string]: readonly string[] };

export function createCounter<const Labels extends LabelValues>(
  name: string,
  help: string,
  labels: Labels,
): Counter<Labels> {
  const dimensions = Object.entries(labels).map(([label, values]) => ({
    label,
    values,
    indexes: new Map(values.map((value, index) => [value, index])),
  }));
  const printedLabels = dimensions.reduce(
    (prefixes, { label: labelName, values }) =>
      prefixes.flatMap((prefix) => values.map((value) => `${prefix}${prefix && ','}${formatLabel(labelName, value)}`)),
    [''],
  );
  const counts = new Array<number>(printedLabels.length).fill(0);
  return {
    count(labelValues) {
      let index = 0;
      for (const dimension of dimensions)
        index =
          index * dimension.values.length + (dimension.indexes.get(labelValues[dimension.label] as string) as number);
      counts[index] = (counts[index] as number) + 1;
    },
    read: () => ({
      name,
      help,
      type: 'counter',
      merge: 'sum',
      samples: printedLabels.map((labelText, index) => ({
        suffix: '',
        labels: labelText,
        value: counts[index] as number,
      })),
    }),
  };
}

/** A histogram of durations. */
type Histogram = { observe(ms: number): void; read(): Metric };

/** Creates a histogram. `boundsMs` are the ascending upper bounds of the buckets. They are printed in seconds. */
function createHistogram(name: string, help: string, boundsMs: readonly number[]): Histogram {
  const counts = new Array<number>(boundsMs.length + 1).fill(0);
  let sumMs = 0;

  function getSamples(): Sample[] {
    let cumulativeCount = 0;
    const buckets = counts.map((count, i) => {
      cumulativeCount += count;
      const bound = boundsMs[i];
      return {
        suffix: '_bucket',
        labels: formatLabel('le', bound === undefined ? '+Inf' : String(bound / 1000)),
        value: cumulativeCount,
      };
    });
    return [
      ...buckets,
      { suffix: '_sum', labels: '', value: sumMs / 1000 },
      { suffix: '_count', labels: '', value: cumulativeCount },
    ];
  }

  return {
    observe(ms) {
      let i = 0;
      while (i < boundsMs.length && ms > (boundsMs[i] as number)) i++;
      counts[i] = (counts[i] as number) + 1;
      sumMs += ms;
    },
    read: () => ({ name, help, type: 'histogram', merge: 'sum', samples: getSamples() }),
  };
}

/** A histogram of event loop delays. */
type LagHistogram = { read: Histogram['read']; stop(): void };

/** Interval of the timer whose delay is measured, in ms. */
const intervalMs = 20;
const lagBoundsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

/**
 * Starts a histogram that can be summed over time and processes. The histogram of `perf_hooks` adds its own interval to
 * every value and must be reset by its reader, so that each of two readers would see only a part.
 */
export function startLagHistogram(): LagHistogram {
  const lag = createHistogram(
    'toolhost_event_loop_lag_seconds',
    'Delay of an event loop timer that is due every 20 ms.',
    lagBoundsMs,
  );
  let expectedAt = performance.now() + intervalMs;
  const timer = setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - expectedAt));
    expectedAt = now + intervalMs;
  }, intervalMs).unref();
  return { read: lag.read, stop: () => clearInterval(timer) };
}

const merges: Record<Merge, (a: number, b: number) => number> = { sum: (a, b) => a + b, max: Math.max, min: Math.min };

/** Merges the metrics of several processes. */
export function mergeMetrics(processes: readonly (readonly Metric[])[]): Metric[] {
  const merged = new Map<string, Metric>();
  for (const metric of processes.flat()) {
    const existing = merged.get(metric.name);
    if (!existing) merged.set(metric.name, { ...metric, samples: metric.samples.map((sample) => ({ ...sample })) });
    else addSamples(existing, metric.samples);
  }
  return [...merged.values()];
}

function addSamples(metric: Metric, samples: readonly Sample[]): void {
  const samplesByKey = new Map(metric.samples.map((sample) => [`${sample.suffix} ${sample.labels}`, sample]));
  for (const sample of samples) {
    const existing = samplesByKey.get(`${sample.suffix} ${sample.labels}`);
    if (existing) existing.value = merges[metric.merge](existing.value, sample.value);
    else metric.samples.push({ ...sample });
  }
}

/** Formats metrics in the Prometheus text format, version 0.0.4. */
export function formatMetrics(metrics: readonly Metric[]): string {
  return metrics.map(formatMetric).join('');
}

function formatMetric({ name, help, type, samples }: Metric): string {
  const lines = samples.map(
    ({ suffix, labels, value }) => `${name}${suffix}${labels && `{${labels}}`} ${formatNumber(value)}\n`,
  );
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function formatNumber(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

const generations = ['stateless', 'stateful'] as const satisfies readonly ProtocolGeneration[];
const callBoundsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000];
const overheadBoundsMs = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000];

/** Creates metrics for outcomes and durations of calls. No label identifies the caller or the workspace. */
export function createCallMetrics(): { observe: ObserveCall; read(): Metric[] } {
  const calls = createCounter('toolhost_calls_total', 'Tool calls by outcome, access kind, and protocol generation.', {
    outcome: outcomes,
    access: accessKinds,
    generation: generations,
  });
  const total = createHistogram('toolhost_call_duration_seconds', 'Total duration of tool calls.', callBoundsMs);
  const upstream = createHistogram(
    'toolhost_upstream_duration_seconds',
    'Duration of the upstream request of tool calls, from the connection to the last byte.',
    callBoundsMs,
  );
  const waiting = createHistogram(
    'toolhost_call_queue_seconds',
    'Time that tool calls waited because of the limits.',
    callBoundsMs,
  );
  const overhead = createHistogram(
    'toolhost_overhead_seconds',
    'Overhead of the service in tool calls that reached the upstream, without waiting and upstream time.',
    overheadBoundsMs,
  );

  function observe(
    access: Access,
    generation: ProtocolGeneration,
    { outcome, waitMs, upstreamMs }: CallTimes,
    totalMs: number,
  ): void {
    calls.count({ outcome, access, generation });
    total.observe(totalMs);
    const waitedMs = waitMs ?? totalMs;
    waiting.observe(waitedMs);
    if (upstreamMs === undefined) return;
    upstream.observe(upstreamMs);
    overhead.observe(Math.max(0, totalMs - waitedMs - upstreamMs));
  }

  return { observe, read: () => [calls, total, upstream, overhead, waiting].map((metric) => metric.read()) };
}

const mcpMethods = [
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'server/discover',
  'subscriptions/listen',
] as const;
const methodLabels = [...mcpMethods, 'notification', 'batch', 'other', 'none'] as const;
type MethodLabel = (typeof methodLabels)[number];
const statuses = ['2xx', '3xx', '4xx', '5xx', 'unanswered'] as const;
type Status = (typeof statuses)[number];

const knownMethods = new Set<unknown>(mcpMethods);

/** Creates metrics for HTTP requests to the MCP endpoints, by method and status, and for all other HTTP requests. */
export function createRequestMetrics() {
  const mcp = createCounter(
    'toolhost_mcp_requests_total',
    'Requests to the MCP endpoints, by method and status class.',
    { method: methodLabels, status: statuses },
  );
  const web = createCounter(
    'toolhost_web_requests_total',
    'Requests to everything except the MCP endpoints, by status class.',
    { status: statuses },
  );
  return {
    /**
     * Counts a request. `message` is the parsed body, or the readable part of it. `status` is 0 if the client
     * disconnected before the response.
     */
    countMcp: (message: unknown, status: number) =>
      mcp.count({ method: getMethodLabel(message), status: getStatusLabel(status) }),
    countWeb: (status: number) => web.count({ status: getStatusLabel(status) }),
    read: () => [mcp.read(), web.read()],
  };
}

/** Returns the label value of a method. Only known methods become label values, because callers choose the names. */
function getMethodLabel(message: unknown): MethodLabel {
  if (typeof message !== 'object' || message === null) return 'none';
  if (Array.isArray(message)) return 'batch';
  const { method, id } = message as { method?: unknown; id?: unknown };
  // Nearly every message, without a lookup in the set.
  if (method === 'tools/call') return method;
  if (knownMethods.has(method)) return method as MethodLabel;
  if (method === undefined && id === undefined) return 'none';
  return id === undefined && typeof method === 'string' ? 'notification' : 'other';
}

function getStatusLabel(status: number): Status {
  if (status < 200) return 'unanswered';
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}
