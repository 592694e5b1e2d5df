import { useSearchParams } from 'react-router';
import type { Input } from '../../../src/operations/index.ts';

/** The filter of the list of calls; it is in the address, so that it can be shared and the back button works. */
export type CallFilter = {
  server: string | undefined;
  view: string | undefined;
  tool: string | undefined;
  outcome: string | undefined;
  caller: string | undefined;
  key: string | undefined;
  period: Period;
};

const hourMs = 3_600_000;

const spans = { '1h': hourMs, '24h': 24 * hourMs, '7d': 7 * 24 * hourMs, '30d': 30 * 24 * hourMs } as const;
export type Period = keyof typeof spans;

export const periods: { value: Period; label: string }[] = [
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
];

export const outcomes: { [outcome: string]: string } = {
  failed: 'Any failure',
  ok: 'OK',
  invalid_arguments: 'Arguments refused',
  upstream_status: 'API answered with an error',
  redirect: 'API redirected',
  timeout: 'API too slow',
  unreachable: 'API not reachable',
  blocked: 'Address not allowed',
  oversize: 'Answer too large',
  malformed: 'Answer not readable',
  transform: 'Part of the answer missing',
  secret_missing: 'Secret missing',
  no_token: 'No token for the API',
  limited: 'Too many calls',
  circuit_open: 'API fails, not called',
  unavailable: 'Service unavailable',
  cancelled: 'Cancelled',
  internal: 'Internal error',
};

/** `server` is the only one whose calls are shown, `usual` the period without a choice. */
export function useCallFilter({ server, usual = '24h' }: { server?: string | undefined; usual?: Period } = {}) {
  const [search, setSearch] = useSearchParams();
  const given = (name: string) => search.get(name) || undefined;
  const period = given('period');
  const filter: CallFilter = {
    server: server ?? given('server'),
    view: given('view'),
    tool: given('tool'),
    outcome: given('outcome'),
    caller: given('caller'),
    key: given('key'),
    period: period && period in spans ? (period as Period) : usual,
  };
  const change = (name: keyof CallFilter | 'call', value: string | null | undefined) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        // A view is one of its server.
        if (name === 'server') next.delete('view');
        return next;
      },
      { replace: name !== 'call', preventScrollReset: true },
    );
  return { filter, opened: given('call'), change, clear: () => setSearch({}, { replace: true }) };
}

export function isNarrowed({ server, view, tool, outcome, caller, key }: CallFilter, only?: string): boolean {
  return Boolean(server !== only || view || tool || outcome || caller || key);
}

/** The filter as the REST API takes it, relative to now. It comes from the address of the page, so the service checks it. */
export function queryOf({ server, view, tool, outcome, caller, key, period }: CallFilter) {
  return {
    slug: server,
    view,
    tool,
    outcome: outcome as Input<'listCalls'>['outcome'],
    caller_kind: caller as Input<'listCalls'>['caller_kind'],
    key_id: key,
    since: new Date(Date.now() - spans[period]).toISOString(),
  };
}
