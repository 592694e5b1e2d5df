import type { CircuitState } from '../../domain/limits.ts';
import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import { OutboundError, type OutboundReason } from '../../errors.ts';
import type { Exchange } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';

/**
 * Protects a failing upstream, and spares its callers the wait. If most calls of a workspace to an origin fail, further
 * calls fail immediately, until a single probe call succeeds. Each network of unverified callers has a separate
 * circuit, so that made-up tokens cannot open the circuit of other callers.
 */
export type Circuits = {
  /**
   * Wraps an HTTP client. It sends nothing while a circuit is open.
   * @throws OutboundError circuit_open, and errors of `http`
   */
  around(http: HttpClient): HttpClient;
  /**
   * Returns the state for verified callers. If none of them call, returns that of the network of unverified callers
   * with the most calls.
   */
  stateOf(workspaceId: string, origin: string): CircuitState;
  /** Returns the number of circuits that are not closed, for metrics. */
  snapshot(): { open: number; halfOpen: number };
};

/**
 * Recent calls of one workspace to one origin, either of one network of unverified callers or of all other callers, and
 * the state of the circuit.
 */
type Circuit = {
  workspaceId: string;
  origin: string;
  calls: RecentCount;
  failures: RecentCount;
  /** Time from which one probe is sent, in monotonic ms; 0 while closed. */
  openUntil: number;
  /** True while the probe is in progress. */
  isTried: boolean;
};

export const circuitWindowMs = 30_000;
const slots = 30;
export const circuitOpenMs = 10_000;
export const leastFailures = 20;
/** Maximum number of circuits. One tenant can use three quarters of it. */
export const mostCircuits = 13_500;

/** Statuses that mean that the upstream cannot be reached or does not respond. */
const faults = new Set([502, 503, 504]);

type Meaning = 'good' | 'failed' | 'unrelated';

/**
 * Maps each failure to a verdict: "failed" if the upstream or the network in between is at fault, "good" if the
 * upstream did respond but the response was not read.
 */
const meanings: Record<OutboundReason, Meaning> = {
  dns: 'failed',
  unreachable: 'failed',
  tls: 'failed',
  timeout: 'failed',
  reset: 'failed',
  truncated: 'failed',
  malformed: 'failed',
  oversize: 'good',
  busy: 'good',
  blocked: 'unrelated',
  circuit_open: 'unrelated',
  own_credential: 'unrelated',
  no_connection: 'unrelated',
  no_memory: 'unrelated',
  stopped: 'unrelated',
  cancelled: 'unrelated',
};

/** Creates the circuits. `clock` returns monotonic ms. */
export function createCircuits(clock: () => number): Circuits {
  const circuits = createOwnedMemory<Circuit>({
    max: mostCircuits,
    ownerOf: ({ workspaceId }) => workspaceId,
    idsOf: ({ workspaceId, origin }) => [`${workspaceId} ${origin}`],
  });

  function circuitOf({ workspaceId, origin, stranger = '' }: Exchange): Circuit {
    const key = `${workspaceId} ${origin} ${stranger}`;
    const known = circuits.get(key);
    if (known) return known;
    const [calls, failures] = [createRecentCount(circuitWindowMs, slots), createRecentCount(circuitWindowMs, slots)];
    const circuit = { workspaceId, origin, calls, failures, openUntil: 0, isTried: false };
    circuits.set(key, circuit);
    return circuit;
  }

  /** Lets one call through an open circuit after the waiting time. This probe decides if the circuit closes. */
  function takeAttempt(circuit: Circuit): OutboundError | undefined {
    const left = circuit.openUntil - clock();
    if (left <= 0 && !circuit.isTried) {
      circuit.isTried = true;
      return undefined;
    }
    return new OutboundError('circuit_open', refusalText(circuit.isTried ? undefined : left));
  }

  return {
    around: (http) => ({
      ...http,
      async send(exchange) {
        const circuit = circuitOf(exchange);
        const isAttempt = circuit.openUntil !== 0;
        const refusal = isAttempt ? takeAttempt(circuit) : undefined;
        if (refusal) throw refusal;
        try {
          const answer = await http.send(exchange);
          note(circuit, isAttempt, faults.has(answer.status) ? 'failed' : 'good', clock());
          return answer;
        } catch (error) {
          note(circuit, isAttempt, error instanceof OutboundError ? meanings[error.reason] : 'unrelated', clock());
          throw error;
        }
      },
    }),
    stateOf(workspaceId, origin) {
      const now = clock();
      const ofKnown = circuits.peek(`${workspaceId} ${origin} `);
      if (ofKnown) return stateOf(ofKnown, now);
      const states = [...circuits.keysOf(`${workspaceId} ${origin}`)].map((key) => stateOf(circuits.peek(key), now));
      return states.toSorted((one, other) => other.calls - one.calls)[0] ?? stateOf(undefined, now);
    },
    snapshot() {
      const now = clock();
      const counted = { open: 0, halfOpen: 0 };
      for (const key of circuits.keys()) {
        const until = circuits.peek(key)?.openUntil ?? 0;
        if (until !== 0) counted[until > now ? 'open' : 'halfOpen']++;
      }
      return counted;
    },
  };
}

function note(circuit: Circuit, isAttempt: boolean, meaning: Meaning, now: number): void {
  if (isAttempt) circuit.isTried = false;
  // Calls that started before the circuit opened no longer count.
  if (meaning === 'unrelated' || (circuit.openUntil !== 0 && !isAttempt)) return;
  const { calls, failures } = circuit;
  if (isAttempt && meaning === 'good') {
    circuit.openUntil = 0;
    clearCount(calls);
    clearCount(failures);
    return;
  }
  countAt(calls, now);
  if (meaning === 'good') return;
  countAt(failures, now);
  if (isAttempt || isMostly(failures, calls, now)) circuit.openUntil = now + circuitOpenMs;
}

function isMostly(failures: RecentCount, calls: RecentCount, now: number): boolean {
  const failed = recentTotal(failures, now);
  return failed >= leastFailures && failed * 2 > recentTotal(calls, now);
}

/** Returns the state of a circuit, which is undefined if there were no calls. */
function stateOf(circuit: Circuit | undefined, now: number): CircuitState {
  if (!circuit) return { state: 'closed', calls: 0, failures: 0, retryMs: undefined };
  const counts = { calls: recentTotal(circuit.calls, now), failures: recentTotal(circuit.failures, now) };
  if (circuit.openUntil === 0) return { state: 'closed', ...counts, retryMs: undefined };
  const retryMs = Math.max(0, circuit.openUntil - now);
  return { state: retryMs > 0 ? 'open' : 'half_open', ...counts, retryMs };
}

/** Formats the refusal. `leftMs` is undefined while a probe is in progress. */
function refusalText(leftMs: number | undefined): string {
  const next =
    leftMs === undefined
      ? 'a probe request is in progress; retry in a few seconds'
      : `the next request is allowed in ${Math.ceil(leftMs / 1000)} s`;
  return `most calls to the upstream failed in the last ${circuitWindowMs / 1000} s, so nothing was sent; ${next}`;
}

/** A count of recent events, by time slot. The oldest slot is dropped as time passes. */
export type RecentCount = { slotMs: number; slots: number[]; slot: number; total: number };

/** Creates a count that covers at most `windowMs`, and at least one slot less. */
export function createRecentCount(windowMs: number, slots: number): RecentCount {
  return { slotMs: windowMs / slots, slots: new Array<number>(slots).fill(0), slot: 0, total: 0 };
}

/** Counts an event. `now` is in monotonic ms. */
export function countAt(count: RecentCount, now: number): void {
  dropOld(count, now);
  const at = count.slot % count.slots.length;
  count.slots[at] = (count.slots[at] as number) + 1;
  count.total++;
}

export function recentTotal(count: RecentCount, now: number): number {
  dropOld(count, now);
  return count.total;
}

function clearCount(count: RecentCount): void {
  count.slots.fill(0);
  count.total = 0;
}

function dropOld(count: RecentCount, now: number): void {
  const slot = Math.floor(now / count.slotMs);
  if (slot === count.slot) return;
  const { slots } = count;
  for (let passed = Math.min(slot - count.slot, slots.length); passed > 0; passed--) {
    const at = (slot - passed + 1) % slots.length;
    count.total -= slots[at] as number;
    slots[at] = 0;
  }
  count.slot = slot;
}
