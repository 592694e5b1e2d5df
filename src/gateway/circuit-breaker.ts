import type { CircuitState } from '../domain/limits.ts';
import { OutboundError, type OutboundReason } from '../errors.ts';
import type { OutboundDoor } from '../outbound/door.ts';
import { type Circuit, close, createCircuits, windowMs } from './circuits.ts';
import { countAt, recentTotal } from './recent-count.ts';

/**
 * Spares an upstream that fails, and its callers the waiting: when most calls of one workspace to one origin fail,
 * the next ones fail at once, until one that is let through succeeds.
 */
export type CircuitBreaker = {
  /** A door that sends nothing where the circuit is open. @throws OutboundError circuit_open, and what the door throws */
  around(door: OutboundDoor): OutboundDoor;
  stateOf(workspaceId: string, origin: string): CircuitState;
  /** Plain numbers of the whole process, for metrics; `refused` since the start. */
  snapshot(): { closed: number; open: number; halfOpen: number; refused: number };
};

const leastFailures = 20;
const openMs = 10_000;

type Meaning = 'good' | 'failed' | 'unrelated';

/** What an ending says about the upstream: it or the way to it is at fault, or it is not. An answer too large is one. */
const meanings: Record<OutboundReason, Meaning> = {
  dns: 'failed',
  unreachable: 'failed',
  tls: 'failed',
  timeout: 'failed',
  reset: 'failed',
  truncated: 'failed',
  malformed: 'failed',
  oversize: 'good',
  blocked: 'unrelated',
  circuit_open: 'unrelated',
  no_connection: 'unrelated',
  cancelled: 'unrelated',
};

/** `clock` is monotonic, in ms. */
export function createCircuitBreaker(clock: () => number): CircuitBreaker {
  const circuits = createCircuits(clock);
  let refused = 0;

  /** One call is let through an open circuit once its time has come: the attempt that decides. The others are refused. */
  function takeAttempt(circuit: Circuit): OutboundError | undefined {
    const left = circuit.openUntil - clock();
    if (left <= 0 && !circuit.isTried) {
      circuit.isTried = true;
      return undefined;
    }
    refused++;
    return new OutboundError('circuit_open', refusalText(circuit.isTried ? undefined : left));
  }

  return {
    around: (door) => ({
      ...door,
      send(exchange) {
        const circuit = circuits.of(exchange.workspaceId, exchange.origin);
        const isAttempt = circuit.openUntil !== 0;
        const refusal = isAttempt ? takeAttempt(circuit) : undefined;
        if (refusal) return Promise.reject(refusal);
        return door.send(exchange).then(
          (answer) => {
            note(circuit, isAttempt, isFault(answer.status) ? 'failed' : 'good', clock());
            return answer;
          },
          (error: unknown) => {
            note(circuit, isAttempt, error instanceof OutboundError ? meanings[error.reason] : 'unrelated', clock());
            throw error;
          },
        );
      },
    }),
    stateOf: (workspaceId, origin) => stateOf(circuits.find(workspaceId, origin), clock()),
    snapshot() {
      const now = clock();
      const counted = { closed: 0, open: 0, halfOpen: 0 };
      for (const { openUntil } of circuits.all()) {
        counted[openUntil === 0 ? 'closed' : openUntil > now ? 'open' : 'halfOpen']++;
      }
      return { ...counted, refused };
    },
  };
}

function isFault(status: number): boolean {
  return status === 502 || status === 503 || status === 504;
}

/** Takes the ending of a call into account. */
function note(circuit: Circuit, isAttempt: boolean, meaning: Meaning, now: number): void {
  if (isAttempt) {
    circuit.isTried = false;
    if (meaning === 'failed') circuit.openUntil = now + openMs;
    if (meaning === 'good') close(circuit);
    return;
  }
  // Calls that began before the circuit opened decide nothing any more.
  if (meaning === 'unrelated' || circuit.openUntil !== 0) return;
  countAt(circuit.calls, now);
  if (meaning === 'good') return;
  countAt(circuit.failures, now);
  const { total } = circuit.failures;
  if (total >= leastFailures && total * 2 > circuit.calls.total) circuit.openUntil = now + openMs;
}

function stateOf(circuit: Circuit | undefined, now: number): CircuitState {
  if (!circuit) return { state: 'closed', calls: 0, failures: 0, retryMs: undefined };
  const counts = { calls: recentTotal(circuit.calls, now), failures: recentTotal(circuit.failures, now) };
  if (circuit.openUntil === 0) return { state: 'closed', ...counts, retryMs: undefined };
  const retryMs = Math.max(0, circuit.openUntil - now);
  return { state: retryMs > 0 ? 'open' : 'half_open', ...counts, retryMs };
}

/** `leftMs` undefined: the attempt is under way. */
function refusalText(leftMs: number | undefined): string {
  const next =
    leftMs === undefined
      ? 'one attempt is under way, try again in a few seconds'
      : `the next attempt is made in ${Math.ceil(leftMs / 1000)} s`;
  return `the upstream has failed most calls of the last ${windowMs / 1000} s, so nothing was sent to it; ${next}`;
}
