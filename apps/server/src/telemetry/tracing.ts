import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
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
import type { ToolCall } from '@toolhost/mcp-protocol/mcp';
import type { CallSpan, RequestSpan, TraceCall } from '../call-observation.ts';

/**
 * Traces calls and sends the traces to the operator's collector. Only this file loads the OpenTelemetry SDK, so it is
 * imported only if an endpoint is configured.
 */
export type Tracing = {
  traceCall: TraceCall;
  /** Sends the pending spans, up to a deadline. Never throws. */
  stop(): Promise<void>;
};

export type TracingOptions = {
  /** Base URL of an OTLP/HTTP collector, without `/v1/traces`. */
  endpoint: string;
  version: string;
  /** OTEL_TRACES_SAMPLER, its argument, and OTEL_BSP_SCHEDULE_DELAY. The SDK reads other standard variables itself. */
  env: NodeJS.ProcessEnv;
  /** Called at the first of several consecutive failures, and when spans are sent again. */
  onCollector: (state: 'failing' | 'back', detail: string | undefined) => void;
};

const maxWaitingSpans = 8192;
const flushTimeoutMs = 2000;
/** Default time between two exports, in ms. */
const defaultDelayMs = 5000;

export function startTracing(options: TracingOptions): Tracing {
  const { endpoint, version } = options;
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  const processor = new BatchSpanProcessor({
    exporter: createReportingExporter(exporter, options.onCollector),
    maxQueueSize: maxWaitingSpans,
    scheduledDelayMillis: Number(options.env.OTEL_BSP_SCHEDULE_DELAY) || defaultDelayMs,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'toolhost', 'service.version': version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: createSampler(options.env),
    spanProcessors: [processor],
  });
  return {
    traceCall: createTraceCall(provider.getTracer('toolhost', version)),
    stop: () => waitAtMost(provider.shutdown(), flushTimeoutMs),
  };
}

/**
 * Creates an exporter that reports only the first failure and never throws. Spans may be lost, but calls must not fail.
 */
function createReportingExporter(exporter: SpanExporter, onCollector: TracingOptions['onCollector']): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = result.error !== undefined;
        if (hasFailed !== isFailing)
          onCollector(hasFailed ? 'failing' : 'back', hasFailed ? getCause(result.error) : undefined);
        isFailing = hasFailed;
        done({ code: 0 });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

/** Returns the code or name of an error. Its message may quote the response. */
function getCause(error: (Error & { code?: unknown }) | undefined): string {
  return String(error?.code ?? error?.name ?? 'unknown');
}

/** Creates the sampler with a name from the OpenTelemetry specification. Unknown names get the default. */
function createSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratioText }: NodeJS.ProcessEnv): Sampler {
  const ratio = Number(ratioText ?? 1);
  const root = createRootSampler(name ?? '', ratio);
  return name === undefined || name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** Creates the sampler of traces that begin here. `name` may have the prefix `parentbased_`. */
function createRootSampler(name: string, ratio: number): Sampler {
  if (name.endsWith('always_off')) return new AlwaysOffSampler();
  const isValidRatio = ratio >= 0 && ratio <= 1;
  return name.endsWith('traceidratio') && isValidRatio ? new TraceIdRatioBasedSampler(ratio) : new AlwaysOnSampler();
}

async function waitAtMost(work: Promise<void>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work.catch(() => undefined), promise]);
  clearTimeout(timer);
}

/**
 * Creates a server span for each `tools/call` and a client span for each upstream request, with names and attributes of
 * the OpenTelemetry conventions for MCP and HTTP. `url.full` is omitted, because the path and the query may contain
 * arguments.
 */
function createTraceCall(tracer: Tracer): TraceCall {
  return (slug, call) => {
    const span = tracer.startSpan(
      `tools/call ${call.name}`,
      {
        kind: SpanKind.SERVER,
        attributes: {
          'mcp.method.name': 'tools/call',
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': call.name,
          'toolhost.server': slug,
          'toolhost.request_id': call.requestId,
        },
      },
      getParentContext(call),
    );
    return createCallSpan(tracer, span);
  };
}

/** Returns the caller's trace context, or the root. It was validated when it was parsed. */
function getParentContext({ traceparent, tracestate }: ToolCall): Context {
  const [, traceId = '', spanId = '', flags = '0'] = traceparent?.split('-') ?? [];
  const context = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  };
  return isSpanContextValid(context) ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT;
}

function createCallSpan(tracer: Tracer, span: Span): CallSpan {
  return {
    startRequest: (method, origin) => createRequestSpan(tracer, span, method, origin),
    end(outcome) {
      span.setAttribute('toolhost.outcome', outcome);
      if (outcome !== 'ok') markFailed(span, outcome);
      span.end();
    },
  };
}

function createRequestSpan(tracer: Tracer, parent: Span, method: string, origin: string): RequestSpan {
  // Not a URL if its host contains `{{NAME}}`.
  const [, scheme, hostname = origin, port] = /^(?:(https?):\/\/)?(.+?)(?::(\d+))?$/.exec(origin) ?? [];
  const attributes = {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': Number(port || (scheme === 'http' ? 80 : 443)),
  };
  const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, trace.setSpan(ROOT_CONTEXT, parent));
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    end(result) {
      if ('failure' in result) markFailed(span, result.failure);
      else {
        span.setAttribute('http.response.status_code', result.status);
        if (result.status >= 400) markFailed(span, String(result.status));
      }
      span.end();
    },
  };
}

/** Records only the kind of failure, because a message may quote the upstream's response. */
function markFailed(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
