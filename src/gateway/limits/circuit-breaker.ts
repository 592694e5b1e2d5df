import type { CircuitState } from '../../domain/limits.ts';
import { OutboundError, type OutboundReason } from '../../errors.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import {
  type CallerCircuit,
  type Circuit,
  type CircuitCaller,
  createCircuits,
  noteAttempt,
  noteFailure,
  noteSuccess,
  openUntil,
  stateOf,
  windowMs,
} from './circuits.ts';

/**
 * Spares an upstream that fails, and spares its callers the waiting. When most calls to one origin fail, of one caller
 * or of several in one workspace, the next ones fail at once, until one that is let through succeeds.
 */
export type CircuitBreaker = {
  /**
   * An HTTP client that sends nothing while a circuit is open.
   * @throws OutboundError circuit_open, and errors of `http`
   */
  around(http: HttpClient): HttpClient;
  stateOf(workspaceId: string, origin: string): CircuitState;
  /** Counters of the whole process, for metrics; `refused` since the start. */
  snapshot(): { closed: number; open: number; halfOpen: number; refused: number };
};

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
export function createCircuitBreaker(clock: () => number): CircuitBreaker {
  const circuits = createCircuits(clock);
  let refused = 0;

  /** One call of a caller is let through an open circuit once its time has come: the attempt that decides. */
  function takeAttempt(caller: CallerCircuit, until: number): OutboundError | undefined {
    const left = until - clock();
    if (left <= 0 && !caller.isTried) {
      caller.isTried = true;
      return undefined;
    }
    refused++;
    return new OutboundError('circuit_open', refusalText(caller.isTried ? undefined : left));
  }

  return {
    around: (http) => ({
      ...http,
      send(exchange) {
        const circuit = circuits.of(exchange.workspaceId, exchange.origin);
        const who = exchange.caller;
        const caller = circuits.callerOf(circuit, who);
        const until = openUntil(circuit, caller, who);
        const isAttempt = until !== 0;
        const refusal = isAttempt ? takeAttempt(caller, until) : undefined;
        if (refusal) return Promise.reject(refusal);
        const ended: Ended = { circuit, caller, who, isAttempt };
        return http.send(exchange).then(
          (answer) => {
            note(ended, isFault(answer.status) ? 'failed' : 'good', clock());
            return answer;
          },
          (error: unknown) => {
            note(ended, error instanceof OutboundError ? meanings[error.reason] : 'unrelated', clock());
            throw error;
          },
        );
      },
    }),
    stateOf: (workspaceId, origin) => stateOf(circuits.find(workspaceId, origin), clock()),
    snapshot() {
      const now = clock();
      const counted = { closed: 0, open: 0, halfOpen: 0 };
      for (const circuit of circuits.all()) {
        const { state } = stateOf(circuit, now);
        counted[state === 'half_open' ? 'halfOpen' : state]++;
      }
      return { ...counted, refused };
    },
  };
}

function isFault(status: number): boolean {
  return status === 502 || status === 503 || status === 504;
}

/** A call whose ending is still to be recorded. */
type Ended = { circuit: Circuit; caller: CallerCircuit; who: CircuitCaller | undefined; isAttempt: boolean };

function note({ circuit, caller, who, isAttempt }: Ended, meaning: Meaning, now: number): void {
  if (meaning !== 'unrelated' && who?.credential) who.credential.isFailing = meaning === 'failed';
  if (isAttempt) {
    caller.isTried = false;
    if (meaning !== 'unrelated') noteAttempt(circuit, caller, meaning === 'good', now);
    return;
  }
  // Calls that began before the circuit opened no longer count.
  if (meaning === 'unrelated' || openUntil(circuit, caller, undefined) !== 0) return;
  if (meaning === 'good') noteSuccess(caller, now);
  else noteFailure(circuit, caller, now);
}

/** `leftMs` is undefined while an attempt is under way. */
function refusalText(leftMs: number | undefined): string {
  const next =
    leftMs === undefined
      ? 'one attempt is under way, try again in a few seconds'
      : `the next attempt is made in ${Math.ceil(leftMs / 1000)} s`;
  return `the upstream has failed most calls of the last ${windowMs / 1000} s, so nothing was sent to it; ${next}`;
}
