import { OutboundError, type OutboundReason } from '@toolhost/errors/errors';
import type { CircuitState } from '@toolhost/limits/call-limits';
import { createFairCache } from '@toolhost/limits/fair-cache';
import type { Exchange, UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';

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
  isProbing: boolean;
};

export const circuitWindowMs = 30_000;
/** Number of slots in which the calls of a window are counted. */
const windowSlots = 30;
export const circuitOpenMs = 10_000;
/** Minimum number of failures in a window that open a circuit. */
export const minFailures = 20;
/** Maximum number of circuits. One tenant can use three quarters of it. */
export const maxCircuits = 13_500;

/** Statuses that mean that the upstream cannot be reached or does not respond. */
const failureStatuses = new Set([502, 503, 504]);

type Verdict = 'good' | 'failed' | 'unrelated';

/**
 * Maps each failure to a verdict: "failed" if the upstream or the network in between is at fault, "good" if the
 * upstream did respond but the response was not read.
 */
const verdicts: Record<OutboundReason, Verdict> = {
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

/**
 * Protects a failing upstream, and spares its callers the wait. If most calls of a workspace to an origin fail, further
 * calls fail immediately, until a single probe call succeeds. Each network of unverified callers has a separate
 * circuit, so that made-up tokens cannot open the circuit of other callers.
 */
export class CircuitBreakers {
  readonly #clock: () => number;
  readonly #circuits = createFairCache<Circuit>({
    max: maxCircuits,
    getOwner: ({ workspaceId }) => workspaceId,
    getIds: ({ workspaceId, origin }) => [`${workspaceId} ${origin}`],
  });

  /** `clock` returns monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Sends a request, unless its circuit is open. @throws OutboundError circuit_open, and errors of `http`, by rejecting */
  send(http: HttpClient, exchange: Exchange): Promise<UpstreamResponse> {
    const circuit = this.#getCircuit(exchange);
    const isProbe = circuit.openUntil !== 0;
    const refusal = isProbe ? this.#startProbe(circuit) : undefined;
    if (refusal) return Promise.reject(refusal);
    return http.send(exchange, (outcome) => recordOutcome(circuit, isProbe, outcome, this.#clock()));
  }

  #getCircuit({ workspaceId, origin, unverifiedCaller: unverifiedNetwork = '' }: Exchange): Circuit {
    const key = `${workspaceId} ${origin} ${unverifiedNetwork}`;
    const existing = this.#circuits.get(key);
    if (existing) return existing;
    const calls = createRecentCount(circuitWindowMs, windowSlots);
    const failures = createRecentCount(circuitWindowMs, windowSlots);
    const circuit = { workspaceId, origin, calls, failures, openUntil: 0, isProbing: false };
    this.#circuits.set(key, circuit);
    return circuit;
  }

  /** Lets one call through an open circuit after the waiting time. This probe decides if the circuit closes. */
  #startProbe(circuit: Circuit): OutboundError | undefined {
    const remainingMs = circuit.openUntil - this.#clock();
    if (remainingMs <= 0 && !circuit.isProbing) {
      circuit.isProbing = true;
      return undefined;
    }
    return new OutboundError('circuit_open', formatRefusal(circuit.isProbing ? undefined : remainingMs));
  }

  /**
   * Returns the state for verified callers. If none of them call, returns that of the network of unverified callers
   * with the most calls.
   */
  getState(workspaceId: string, origin: string): CircuitState {
    const now = this.#clock();
    const verifiedCircuit = this.#circuits.peek(`${workspaceId} ${origin} `);
    if (verifiedCircuit) return toCircuitState(verifiedCircuit, now);
    const networkStates = [...this.#circuits.getKeys(`${workspaceId} ${origin}`)].map((key) =>
      toCircuitState(this.#circuits.peek(key), now),
    );
    return networkStates.toSorted((a, b) => b.calls - a.calls)[0] ?? toCircuitState(undefined, now);
  }

  /** Returns the number of circuits that are not closed, for metrics. */
  snapshot(): { open: number; halfOpen: number } {
    const now = this.#clock();
    const counts = { open: 0, halfOpen: 0 };
    for (const key of this.#circuits.keys()) {
      const openUntil = this.#circuits.peek(key)?.openUntil ?? 0;
      if (openUntil !== 0) counts[openUntil > now ? 'open' : 'halfOpen']++;
    }
    return counts;
  }
}

/** Records the status of a response, or the reason why there was none. */
function recordOutcome(circuit: Circuit, isProbe: boolean, outcome: number | Error, now: number): void {
  // An error that is not about the upstream is one of this service.
  let verdict: Verdict = 'unrelated';
  if (typeof outcome === 'number') verdict = failureStatuses.has(outcome) ? 'failed' : 'good';
  else if (outcome instanceof OutboundError) verdict = verdicts[outcome.reason];
  if (isProbe) circuit.isProbing = false;
  // Calls that started before the circuit opened no longer count.
  if (verdict === 'unrelated' || (circuit.openUntil !== 0 && !isProbe)) return;
  const { calls, failures } = circuit;
  if (isProbe && verdict === 'good') {
    circuit.openUntil = 0;
    clearCount(calls);
    clearCount(failures);
    return;
  }
  countEvent(calls, now);
  if (verdict === 'good') return;
  countEvent(failures, now);
  if (isProbe || isMostlyFailing(failures, calls, now)) circuit.openUntil = now + circuitOpenMs;
}

function isMostlyFailing(failures: RecentCount, calls: RecentCount, now: number): boolean {
  const failed = getRecentTotal(failures, now);
  return failed >= minFailures && failed * 2 > getRecentTotal(calls, now);
}

/** Returns the state of a circuit, which is undefined if there were no calls. */
function toCircuitState(circuit: Circuit | undefined, now: number): CircuitState {
  if (!circuit) return { state: 'closed', calls: 0, failures: 0, retryAfterMs: undefined };
  const counts = { calls: getRecentTotal(circuit.calls, now), failures: getRecentTotal(circuit.failures, now) };
  if (circuit.openUntil === 0) return { state: 'closed', ...counts, retryAfterMs: undefined };
  const retryAfterMs = Math.max(0, circuit.openUntil - now);
  return { state: retryAfterMs > 0 ? 'open' : 'half_open', ...counts, retryAfterMs };
}

/** Formats the refusal. `remainingMs` is undefined while a probe is in progress. */
function formatRefusal(remainingMs: number | undefined): string {
  const next =
    remainingMs === undefined
      ? 'a probe request is in progress; retry in a few seconds'
      : `retry in ${Math.ceil(remainingMs / 1000)} s`;
  return `most calls to the upstream failed in the last ${circuitWindowMs / 1000} s, so nothing was sent; ${next}`;
}

/** A count of recent events, by time slot. The oldest slot is dropped as time passes. */
export type RecentCount = { slotMs: number; slots: number[]; slot: number; total: number };

/** Creates a count that covers at most `windowMs`, and at least one slot less. */
export function createRecentCount(windowMs: number, slots: number): RecentCount {
  return { slotMs: windowMs / slots, slots: new Array<number>(slots).fill(0), slot: 0, total: 0 };
}

/** Counts an event. `now` is in monotonic ms. */
export function countEvent(count: RecentCount, now: number): void {
  dropOldSlots(count, now);
  const index = count.slot % count.slots.length;
  count.slots[index] = (count.slots[index] as number) + 1;
  count.total++;
}

export function getRecentTotal(count: RecentCount, now: number): number {
  dropOldSlots(count, now);
  return count.total;
}

function clearCount(count: RecentCount): void {
  count.slots.fill(0);
  count.total = 0;
}

function dropOldSlots(count: RecentCount, now: number): void {
  const slot = Math.floor(now / count.slotMs);
  if (slot === count.slot) return;
  const { slots } = count;
  for (let slotsToClear = Math.min(slot - count.slot, slots.length); slotsToClear > 0; slotsToClear--) {
    const index = (slot - slotsToClear + 1) % slots.length;
    count.total -= slots[index] as number;
    slots[index] = 0;
  }
  count.slot = slot;
}
