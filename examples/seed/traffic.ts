import type { Outcome } from '@toolhost/errors/errors';
import type { CallerKind } from '@toolhost/tool-config/server-wide';

/** Caller of a tool: the kind of credential, and the ID in the record. */
export type SeedCaller = { kind: CallerKind; id: string | null };

/** Usage of a tool: its share of all calls, API duration, response size, and failures. */
export type Usage = {
  slug: string;
  tool: string;
  host: string;
  weight: number;
  typicalMs: number;
  typicalBytes: number;
  /** Failures per thousand calls. */
  failures: Partial<Record<Outcome, number>>;
};

/** Generated call. `at` is in epoch ms. */
export type SeedCall = {
  usage: Usage;
  at: number;
  outcome: Outcome;
  status: number | null;
  durationMs: number;
  upstreamMs: number | null;
  bytesIn: number;
  bytesOut: number;
};

const projects = { slug: 'projects', host: '127.0.0.1:8081' };
const weather = { slug: 'weather', host: 'api.open-meteo.com' };
const invoices = { slug: 'invoices', host: 'invoices.example.com' };
const helpdesk = { slug: 'helpdesk', host: 'helpdesk.example.com' };
const warehouse = { slug: 'warehouse', host: 'warehouse.example.com' };

export const usages: readonly Usage[] = [
  use(projects, 'list_projects', [9, 14, 1800], { invalid_arguments: 10 }),
  use(projects, 'list_tasks', [14, 18, 5200], { invalid_arguments: 15, upstream_status: 12, cancelled: 4 }),
  use(projects, 'create_task', [6, 25, 420], { invalid_arguments: 60, upstream_status: 25 }),
  use(projects, 'update_task', [7, 22, 410], { invalid_arguments: 40, upstream_status: 15 }),
  use(weather, 'forecast', [10, 140, 1100], { timeout: 12, unreachable: 6, limited: 10, redirect: 3 }),
  use(weather, 'find_place', [4, 95, 700], { malformed: 8, transform: 20 }),
  use(invoices, 'list_invoices', [12, 210, 9400], { upstream_status: 20, limited: 8 }),
  use(invoices, 'get_invoice', [9, 160, 2600], { upstream_status: 45, invalid_arguments: 12 }),
  use(invoices, 'draft_invoice', [3, 340, 900], { upstream_status: 70, invalid_arguments: 90, internal: 4 }),
  use(invoices, 'yearly_report', [1, 6200, 240_000], { timeout: 120, oversize: 60, cancelled: 50 }),
  use(helpdesk, 'search_tickets', [11, 280, 12_500], { upstream_status: 18, timeout: 10 }),
  use(helpdesk, 'reply_to_ticket', [4, 390, 300], { upstream_status: 30, invalid_arguments: 20 }),
  use(helpdesk, 'close_ticket', [2, 310, 260], { upstream_status: 25 }),
  use(warehouse, 'stock_of', [6, 75, 640], { upstream_status: 50, circuit_open: 25, unreachable: 15, unavailable: 2 }),
  use(warehouse, 'track_parcel', [4, 120, 1500], { transform: 30, blocked: 6 }),
  use(warehouse, 'print_label', [1, 60, 90], { secret_missing: 1000, no_token: 2000 }),
];

export function use(
  server: { slug: string; host: string },
  tool: string,
  [weight, typicalMs, typicalBytes]: [number, number, number],
  failures: Usage['failures'],
): Usage {
  return { ...server, tool, weight, typicalMs, typicalBytes, failures };
}

const hourMs = 60 * 60_000;

/** Calls by hour of the day (UTC) relative to the busiest hour: European office hours, and agents at night. */
const hourlyShares = [3, 2, 2, 2, 3, 8, 22, 55, 85, 100, 95, 80, 60, 85, 98, 90, 65, 40, 22, 14, 10, 8, 6, 4];
/** Calls by weekday relative to the busiest day, starting with Sunday. */
const weekdayShares = [0.3, 1, 1.05, 1.1, 1, 0.85, 0.4];

/**
 * Generates about `count` calls in the `days` before `now`, oldest first, with more by day and on weekdays, weekly growth,
 * and an hour in which the warehouse was down. `next` returns random numbers from 0 to 1.
 */
export function generateTraffic(
  count: number,
  days: number,
  now: number,
  next: () => number,
  from: () => readonly Usage[] = () => usages,
): SeedCall[] {
  const hours = Array.from({ length: days * 24 }, (_, index) => now - (index + 1) * hourMs).reverse();
  const shares = hours.map((start, index) => {
    const date = new Date(start);
    const growth = 0.7 + (0.6 * index) / hours.length;
    return (
      (hourlyShares[date.getUTCHours()] ?? 0) * (weekdayShares[date.getUTCDay()] ?? 0) * growth * (0.8 + 0.4 * next())
    );
  });
  const totalShare = shares.reduce((sum, share) => sum + share, 0);
  const outage = hours.length - 60;
  return hours
    .flatMap((start, index) => {
      const calls = Math.floor((count * (shares[index] ?? 0)) / totalShare + next());
      return Array.from({ length: calls }, () =>
        callAt(start + Math.floor(next() * hourMs), index === outage, next, from()),
      );
    })
    .sort((a, b) => a.at - b.at);
}

/** Generates a call at a given time, so that the last hour has calls even at night. */
export function callAt(at: number, isOutage: boolean, next: () => number, from: readonly Usage[] = usages): SeedCall {
  const usage = pickUsage(from, next);
  const outcome = isOutage && usage.slug === 'warehouse' ? 'unreachable' : pickOutcome(usage, next);
  return makeCall(usage, outcome, at, next);
}

/** Generates one call per possible failure of each tool in the last `ms` before `now`, so that rare failures exist too. */
export function generateFailures(now: number, ms: number, next: () => number): SeedCall[] {
  return usages.flatMap((usage) =>
    Object.keys(usage.failures).map((outcome) =>
      makeCall(usage, outcome as Outcome, Math.floor(now - next() * ms), next),
    ),
  );
}

function makeCall(usage: Usage, outcome: Outcome, at: number, next: () => number): SeedCall {
  const upstreamMs = pickUpstreamMs(usage, outcome, next);
  const hasResponse = ['ok', 'upstream_status', 'redirect', 'malformed', 'transform', 'oversize'].includes(outcome);
  return {
    usage,
    at,
    outcome,
    status: hasResponse ? pickStatus(outcome, next) : null,
    durationMs: Math.round((upstreamMs ?? 0) + 1 + 3 * next()),
    upstreamMs,
    bytesIn: Math.round(90 + 160 * next()),
    bytesOut: outcome === 'ok' ? Math.round(usage.typicalBytes * pickFactor(next)) : 120 + Math.round(200 * next()),
  };
}

function pickUsage(from: readonly Usage[], next: () => number): Usage {
  let remaining = next() * from.reduce((sum, { weight }) => sum + weight, 0);
  const usage = from.find(({ weight }) => {
    remaining -= weight;
    return remaining < 0;
  });
  return usage ?? (from[0] as Usage);
}

function pickOutcome({ failures }: Usage, next: () => number): Outcome {
  let remaining = next() * 1000;
  const failure = Object.entries(failures).find(([, share]) => {
    remaining -= share;
    return remaining < 0;
  });
  return (failure?.[0] ?? 'ok') as Outcome;
}

/** Returns a factor near 1, sometimes several times that, as response times vary. */
function pickFactor(next: () => number): number {
  return Math.exp((next() + next() + next() - 1.5) * 1.1);
}

/** Returns the upstream duration in ms, or null if the call sent no request. */
function pickUpstreamMs({ typicalMs }: Usage, outcome: Outcome, next: () => number): number | null {
  if (
    [
      'invalid_arguments',
      'secret_missing',
      'no_token',
      'limited',
      'unavailable',
      'circuit_open',
      'blocked',
      'internal',
    ].includes(outcome)
  )
    return null;
  if (outcome === 'timeout') return 10_000;
  return Math.round(typicalMs * pickFactor(next) * (outcome === 'oversize' ? 2 : 1));
}

function pickStatus(outcome: Outcome, next: () => number): number {
  if (outcome === 'redirect') return 301;
  if (outcome !== 'upstream_status') return 200;
  return [404, 404, 404, 422, 403, 500, 503, 429][Math.floor(next() * 8)] ?? 404;
}
