import {
  AppError,
  isUnavailable,
  OutboundError,
  type OutboundReason,
  type Outcome,
  plainFailure,
  ServerChanged,
  ToolFailure,
  Unauthenticated,
} from '../../errors.ts';
import { StoreFault } from '../../store/engine/faults.ts';
import type { Call } from './call.ts';
import { outboundReason } from './call-reason.ts';

/** The outcome of a call that failed with an error. A call whose credential or server ended before is cancelled. */
export function outcomeOfError(error: unknown, isSent: boolean): Outcome {
  if (error instanceof ToolFailure) return error.outcome;
  if (error instanceof StoreFault) return 'unavailable';
  if (error instanceof AppError) return error.kind === 'notFound' ? 'cancelled' : 'limited';
  if (error instanceof Unauthenticated) return isSent ? 'upstream_status' : 'cancelled';
  return error instanceof ServerChanged ? 'cancelled' : 'internal';
}

/** The error to report for a call that failed after its request was built; its message is for the model or client. */
export function failureOf(
  error: unknown,
  { host, asked: { requestId } }: Call,
  onUnexpected: (error: unknown, requestId: string) => void,
): unknown {
  if (error instanceof OutboundError) return toToolFailure(error, host);
  const isKnown = error instanceof ToolFailure || error instanceof Unauthenticated || isUnavailable(error);
  // Before a request is sent once more, the call is admitted again.
  if (isKnown || error instanceof AppError || error instanceof ServerChanged) return error;
  onUnexpected(error, requestId);
  return plainFailure('internal', `the call failed inside the service; request ${requestId}`);
}

const outcomeOf: Record<OutboundReason, Outcome> = {
  blocked: 'blocked',
  dns: 'unreachable',
  unreachable: 'unreachable',
  tls: 'unreachable',
  reset: 'unreachable',
  truncated: 'malformed',
  malformed: 'malformed',
  timeout: 'timeout',
  oversize: 'oversize',
  busy: 'limited',
  circuit_open: 'circuit_open',
  own_credential: 'invalid_arguments',
  no_connection: 'limited',
  no_memory: 'limited',
  stopped: 'unavailable',
  cancelled: 'cancelled',
};

function toToolFailure(error: OutboundError, host: string | undefined): ToolFailure {
  const hint =
    error.reason === 'oversize'
      ? '; ask for less with filters or paging, or let the server keep fewer fields with response_fields'
      : '';
  return new ToolFailure(outcomeOf[error.reason], `${error.message}${hint}`, [], outboundReason(error, host));
}
