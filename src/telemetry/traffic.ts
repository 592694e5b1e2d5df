import type { CallTimes, ObserveCall } from '../domain/call-observation.ts';
import { type Access, accessKinds } from '../domain/config/server-wide.ts';
import type { Era } from '../domain/mcp.ts';
import { outcomes } from '../errors.ts';
import { createCounter, createHistogram, type Metric } from './metric.ts';

const eras = ['modern', 'legacy'] as const satisfies readonly Era[];
const boundsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000];
const ownBoundsMs = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000];

/** Outcomes and durations of calls. No label identifies the caller or the workspace. */
export function createCallMetrics(): { observe: ObserveCall; read(): Metric[] } {
  const calls = createCounter(
    'toolhost_calls_total',
    'Tool calls by how they ended, kind of access and protocol era.',
    { outcome: outcomes, access: accessKinds, era: eras },
  );
  const total = createHistogram('toolhost_call_duration_seconds', 'Whole duration of tool calls.', boundsMs);
  const upstream = createHistogram(
    'toolhost_upstream_duration_seconds',
    'Duration of the upstream part of tool calls, from the connection to the last byte.',
    boundsMs,
  );
  const waiting = createHistogram(
    'toolhost_call_wait_seconds',
    'Time that tool calls waited for a slot under the limits.',
    boundsMs,
  );
  const own = createHistogram(
    'toolhost_own_duration_seconds',
    "The service's own time in tool calls that reached the upstream part: neither waiting nor upstream.",
    ownBoundsMs,
  );

  function observe(access: Access, era: Era, { outcome, waitMs, upstreamMs }: CallTimes, totalMs: number): void {
    calls.count({ outcome, access, era });
    total.observe(totalMs);
    const waitedMs = waitMs ?? totalMs;
    waiting.observe(waitedMs);
    if (upstreamMs === undefined) return;
    upstream.observe(upstreamMs);
    own.observe(Math.max(0, totalMs - waitedMs - upstreamMs));
  }

  return { observe, read: () => [calls, total, upstream, own, waiting].map((part) => part.read()) };
}

const methods = [
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'server/discover',
  'subscriptions/listen',
  'notification',
  'batch',
  'other',
  'none',
] as const;
type Method = (typeof methods)[number];
const statuses = ['2xx', '3xx', '4xx', '5xx', 'unanswered'] as const;
type Status = (typeof statuses)[number];

const known = new Set<unknown>(methods.slice(0, 6));

/** HTTP requests to the MCP endpoints, by method and status, and to everything else. */
export function createRequestMetrics() {
  const mcp = createCounter(
    'toolhost_mcp_requests_total',
    'Requests to the MCP endpoints, by method and class of status.',
    { method: methods, status: statuses },
  );
  const web = createCounter(
    'toolhost_web_requests_total',
    'Requests to everything but the MCP endpoints, by class of status.',
    { status: statuses },
  );
  return {
    /** `posted` is the message, or what could be read of it. `status` is 0 when the client left before the answer. */
    countMcp: (posted: unknown, status: number) => mcp.count({ method: methodOf(posted), status: statusOf(status) }),
    countWeb: (status: number) => web.count({ status: statusOf(status) }),
    read: () => [mcp.read(), web.read()],
  };
}

/** Only known methods become values of a label, because callers choose the names. */
function methodOf(posted: unknown): Method {
  if (typeof posted !== 'object' || posted === null) return 'none';
  if (Array.isArray(posted)) return 'batch';
  const { method, id } = posted as { method?: unknown; id?: unknown };
  // Nearly every message, found without a look into the set.
  if (method === 'tools/call') return method;
  if (known.has(method)) return method as Method;
  if (method === undefined && id === undefined) return 'none';
  return id === undefined && typeof method === 'string' ? 'notification' : 'other';
}

function statusOf(status: number): Status {
  if (status < 200) return 'unanswered';
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}
