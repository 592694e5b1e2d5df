import { createCounter } from './counter.ts';
import { label, type Metric } from './metric.ts';

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
  const byMethod = Object.fromEntries(methods.map((method) => [method, newCounts()])) as Record<
    Method,
    Record<Status, number>
  >;
  const web = createCounter(
    'toolhost_web_requests_total',
    'Requests to everything but the MCP endpoints, by class of status.',
    'status',
    statuses,
  );

  function readMcp(): Metric {
    const samples = methods.flatMap((method) =>
      statuses.map((status) => ({
        suffix: '',
        labels: `${label('method', method)},${label('status', status)}`,
        value: byMethod[method][status],
      })),
    );
    return {
      name: 'toolhost_mcp_requests_total',
      help: 'Requests to the MCP endpoints, by method and class of status.',
      type: 'counter',
      merge: 'sum',
      samples,
    };
  }

  return {
    /** `posted` is the message, or what could be read of it. `status` is 0 when the client left before the answer. */
    countMcp(posted: unknown, status: number): void {
      byMethod[methodOf(posted)][statusOf(status)]++;
    },
    countWeb: (status: number) => web.count(statusOf(status)),
    read: () => [readMcp(), web.read()],
  };
}

function newCounts(): Record<Status, number> {
  return { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0, unanswered: 0 };
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
