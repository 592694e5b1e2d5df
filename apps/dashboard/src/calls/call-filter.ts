import type { Input } from '@toolhost/server/operations';
import { useUrlState } from '../ui/use-url-state.ts';

const hourMs = 3_600_000;
const periodMs = { '1h': hourMs, '24h': 24 * hourMs, '7d': 7 * 24 * hourMs, '30d': 30 * 24 * hourMs } as const;
export type Period = keyof typeof periodMs;

const minuteMs = 60_000;
/** Length of an interval in charts, for periods that are not shown in days. */
const intervalMs: { [period in Period]?: number } = { '1h': 5 * minuteMs, '24h': hourMs };

/** Returns the intervals of a period for charts: days, or parts of the day that start on whole local hours. */
export function getIntervals(
  period: Period,
  since: string,
): { since: string; until?: string | undefined; buckets: number } {
  const lengthMs = intervalMs[period];
  if (lengthMs === undefined) return { since, buckets: periodMs[period] / (24 * hourMs) };
  const at = new Date(since);
  const start = at.getTime() - ((at.getTime() - at.getTimezoneOffset() * minuteMs) % lengthMs);
  const buckets = periodMs[period] / lengthMs + 1;
  const [from, until] = [start, start + buckets * lengthMs].map((time) => new Date(time).toISOString());
  return { since: from ?? since, until, buckets };
}

export const periods: { value: Period; label: string }[] = [
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
];

const filterNames = ['server', 'view', 'tool', 'outcome', 'caller', 'key'] as const;

/** Filter of the call list. It is stored in the URL, so that it can be shared and the back button works. */
export type CallFilter = { [name in (typeof filterNames)[number]]?: string | undefined } & { period: Period };

export const outcomeLabels: { [outcome: string]: string } = {
  failed: 'Any failure',
  ok: 'OK',
  invalid_arguments: 'Invalid arguments',
  upstream_status: 'API error',
  redirect: 'API redirect',
  timeout: 'API timeout',
  unreachable: 'API unreachable',
  blocked: 'Address blocked',
  oversize: 'Response too large',
  malformed: 'Malformed response',
  transform: 'Response field missing',
  secret_missing: 'Secret missing',
  no_token: 'No token for the API',
  limited: 'Limit exceeded',
  circuit_open: 'Not sent: API failing',
  unavailable: 'Service unavailable',
  cancelled: 'Canceled',
  internal: 'Internal error',
};

/** Reads the call filter and the open call from the URL. With `server`, only calls of that server are shown. */
export function useCallFilter({
  server,
  defaultPeriod = '24h',
}: {
  server?: string | undefined;
  defaultPeriod?: Period;
}) {
  const { get, set, clear } = useUrlState();
  const period = get('period');
  const filter: CallFilter = { period: period && period in periodMs ? (period as Period) : defaultPeriod };
  for (const name of filterNames) filter[name] = name === 'server' && server ? server : get(name);
  const isNarrowed = filterNames.some((name) => filter[name] && !(name === 'server' && server));
  // A view belongs to one server.
  const change = (name: keyof CallFilter | 'call', value: string | null | undefined) =>
    set(name, value, { isStep: name === 'call', ...(name === 'server' && { removes: 'view' }) });
  return { filter, isNarrowed, openCallId: get('call'), change, clear };
}

/**
 * Converts the filter to REST API parameters, relative to the current time. Values come from the URL, so the service
 * validates them.
 */
export function toCallQuery({ server, view, tool, outcome, caller, key, period }: CallFilter) {
  return {
    slug: server,
    view,
    tool,
    outcome: outcome as Input<'listCalls'>['outcome'],
    caller_kind: caller as Input<'listCalls'>['caller_kind'],
    key_id: key,
    since: new Date(Date.now() - periodMs[period]).toISOString(),
  };
}
