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
import type { CallSpan, RequestSpan, TraceCall } from '../domain/call-observation.ts';
import type { ToolCall } from '../domain/mcp.ts';

/**
 * A server span for each `tools/call` and a client span for each upstream request, with names and attributes of the
 * OpenTelemetry conventions for MCP and HTTP. `url.full` is omitted: the path and the query may hold arguments.
 */
export function createTraceCall(tracer: Tracer): TraceCall {
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
      parentOf(call),
    );
    return callSpan(tracer, span);
  };
}

/** The caller's trace context, or the root. It was validated when it was read. */
function parentOf({ traceparent, tracestate }: ToolCall): Context {
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

function callSpan(tracer: Tracer, span: Span): CallSpan {
  return {
    request: (method, origin) => requestSpan(tracer, span, method, origin),
    end(outcome) {
      span.setAttribute('toolhost.outcome', outcome);
      if (outcome !== 'ok') fail(span, outcome);
      span.end();
    },
  };
}

function requestSpan(tracer: Tracer, parent: Span, method: string, origin: string): RequestSpan {
  const { hostname, port, protocol } = new URL(origin);
  const attributes = {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
  const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, trace.setSpan(ROOT_CONTEXT, parent));
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    end(answer) {
      if ('failure' in answer) fail(span, answer.failure);
      else {
        span.setAttribute('http.response.status_code', answer.status);
        if (answer.status >= 400) fail(span, String(answer.status));
      }
      span.end();
    },
  };
}

/** Only the kind of failure: a message may quote the upstream's answer. */
function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
