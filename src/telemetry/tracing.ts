import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { TraceCall } from '../domain/call-observation.ts';
import { createTraceCall } from './call-spans.ts';

/**
 * Traces of calls, sent to the operator's collector. Only this file loads the OpenTelemetry SDK, so it is imported only
 * when an endpoint is configured.
 */
export type Tracing = {
  traceCall: TraceCall;
  /** Sends the waiting spans, up to a deadline. Never throws. */
  stop(): Promise<void>;
};

export type TracingOptions = {
  /** Base URL of an OTLP/HTTP collector, without `/v1/traces`. */
  endpoint: string;
  version: string;
  /** OTEL_TRACES_SAMPLER, its argument and OTEL_BSP_SCHEDULE_DELAY; the SDK reads other variables of the standard itself. */
  env: NodeJS.ProcessEnv;
  /** Called at the first of several failures in a row, and when spans are sent again. */
  onCollector: (state: 'failing' | 'back', detail: string | undefined) => void;
};

const maxWaitingSpans = 8192;
const flushMs = 2000;
const usualDelayMs = 5000;

export function startTracing(options: TracingOptions): Tracing {
  const { endpoint, version } = options;
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  const processor = new BatchSpanProcessor({
    exporter: reporting(exporter, options.onCollector),
    maxQueueSize: maxWaitingSpans,
    scheduledDelayMillis: Number(options.env.OTEL_BSP_SCHEDULE_DELAY) || usualDelayMs,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'toolhost', 'service.version': version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: samplerOf(options.env),
    spanProcessors: [processor],
  });
  return {
    traceCall: createTraceCall(provider.getTracer('toolhost', version)),
    stop: () => within(provider.shutdown(), flushMs),
  };
}

/** An exporter that reports only the first failure and never throws: spans may be lost, calls may not fail. */
function reporting(exporter: SpanExporter, onCollector: TracingOptions['onCollector']): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined;
        if (failed !== isFailing) onCollector(failed ? 'failing' : 'back', failed ? causeOf(result.error) : undefined);
        isFailing = failed;
        done({ code: 0 });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

/** The code or status of an error. Its message may quote the answer. */
function causeOf(error: (Error & { code?: unknown }) | undefined): string {
  return String(error?.code ?? error?.name ?? 'unknown');
}

/** Samplers by their names in the OpenTelemetry specification. Unknown names get the default. */
function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: text }: NodeJS.ProcessEnv): Sampler {
  const ratio = Number(text ?? 1);
  const root = /always_off$/.test(name ?? '')
    ? new AlwaysOffSampler()
    : /traceidratio$/.test(name ?? '') && ratio >= 0 && ratio <= 1
      ? new TraceIdRatioBasedSampler(ratio)
      : new AlwaysOnSampler();
  return name === undefined || name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

async function within(work: Promise<void>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work.catch(() => undefined), promise]);
  clearTimeout(timer);
}
