import type { CircuitState } from '../../domain/limits.ts';
import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import { OutboundError, type OutboundReason } from '../../errors.ts';
import type { Exchange } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';

/**
 * Spares an upstream that fails, and spares its callers the waiting. When most calls of a workspace to one origin fail,
 * the next ones fail at once, until one that is let through succeeds. Each address of strangers has a
 * circuit of its own, so made-up tokens cannot open that of the others.
 */
export type Circuits = {
  /**
   * An HTTP client that sends nothing while a circuit is open.
   * @throws OutboundError circuit_open, and errors of `http`
   */
  around(http: HttpClient): HttpClient;
  /** That of known callers; where no such one calls, that of the address of strangers that calls most. */
  stateOf(workspaceId: string, origin: string): CircuitState;
  /** How many are not closed, for metrics. */
  snapshot(): { open: number; halfOpen: number };
};

/** How the recent calls of one workspace to one origin went, those of one address of strangers or of all others, and whether more of them are sent. */
type Circuit = {
  workspaceId: string;
  origin: string;
  calls: RecentCount;
  failures: RecentCount;
  /** Monotonic ms from when one attempt is let through; 0 while closed. */
  openUntil: number;
  /** Whether that attempt is under way. */
  isTried: boolean;
};

export const circuitWindowMs = 30_000;
const slots = 30;
export const circuitOpenMs = 10_000;
export const leastFailures = 20;
/** One tenant can fill three fourths of it. */
export const mostCircuits = 13_500;

/** Statuses that say that the upstream cannot be reached or does not answer. */
const faults = new Set([502, 503, 504]);

type Meaning = 'good' | 'failed' | 'unrelated';

/** Whether an ending is the fault of the upstream or the network in between. An answer that was not read is a good sign. */
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

/** `clock` is monotonic, in ms. */
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

  /** One call is let through an open circuit once its time has come: the attempt that decides. */
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
  // Calls that began before the circuit opened no longer count.
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

/** Undefined for a circuit that no call has begun. */
function stateOf(circuit: Circuit | undefined, now: number): CircuitState {
  if (!circuit) return { state: 'closed', calls: 0, failures: 0, retryMs: undefined };
  const counts = { calls: recentTotal(circuit.calls, now), failures: recentTotal(circuit.failures, now) };
  if (circuit.openUntil === 0) return { state: 'closed', ...counts, retryMs: undefined };
  const retryMs = Math.max(0, circuit.openUntil - now);
  return { state: retryMs > 0 ? 'open' : 'half_open', ...counts, retryMs };
}

/** `leftMs` is undefined while an attempt is under way. */
function refusalText(leftMs: number | undefined): string {
  const next =
    leftMs === undefined
      ? 'one attempt is under way, try again in a few seconds'
      : `the next attempt is made in ${Math.ceil(leftMs / 1000)} s`;
  return `the upstream has failed most calls of the last ${circuitWindowMs / 1000} s, so nothing was sent to it; ${next}`;
}

/** Counts recent events, one count per time slot; the oldest slot is dropped as time passes. */
export type RecentCount = { slotMs: number; slots: number[]; slot: number; total: number };

/** The window covered is `windowMs` at most, and one slot less at least. */
export function createRecentCount(windowMs: number, slots: number): RecentCount {
  return { slotMs: windowMs / slots, slots: new Array<number>(slots).fill(0), slot: 0, total: 0 };
}

/** `now` is monotonic, in ms. */
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
