import { knownMediaType } from '../../domain/http/headers.ts';
import {
  AppError,
  isUnavailable,
  OutboundError,
  type OutboundReason,
  type Outcome,
  plainFailure,
  ToolFailure,
  Unauthenticated,
} from '../../errors.ts';
import { STATUS_CODES } from '../../http/node-http.ts';
import { StoreFault } from '../../store/engine/faults.ts';
import { contentTypeOf } from '../answer/answer-head.ts';
import type { Call } from './call.ts';

/** The outcome of a call that failed with an error. A call whose credential or server ended before is cancelled. */
export function outcomeOfError(error: unknown, isSent: boolean): Outcome {
  if (error instanceof ToolFailure) return error.outcome;
  if (error instanceof StoreFault) return 'unavailable';
  if (error instanceof AppError) return error.kind === 'notFound' ? 'cancelled' : 'limited';
  if (error instanceof Unauthenticated) return isSent ? 'upstream_status' : 'cancelled';
  return 'internal';
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
  if (isKnown || error instanceof AppError) return error;
  onUnexpected(error, requestId);
  return plainFailure('internal', `the call failed inside the service; request ${requestId}`);
}

/** Outcome of a call whose request failed. */
export const outcomeOf: Record<OutboundReason, Outcome> = {
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

/** The part of a call that a reason tells of. */
type Told = Partial<Pick<Call, 'answer' | 'host'>>;

/** Longest reason that a record keeps, in characters. */
const longestReason = 300;

/**
 * Why a call failed, as its record keeps it: no value of an argument, a query, a path or a body, and no text that the
 * upstream chose.
 */
export function recordedReason(error: unknown, call: Told): string {
  const text = textOf(error, call)
    .replaceAll(/\p{Cc}/gu, ' ')
    .toWellFormed();
  return text.length > longestReason ? `${text.slice(0, longestReason - 1).toWellFormed()}…` : text;
}

function textOf(error: unknown, call: Told): string {
  if (error instanceof ToolFailure) return error.forRecord ?? usualText(error.outcome, call);
  if (error instanceof OutboundError) return outboundReason(error, call.host);
  if (error instanceof Unauthenticated) return call.answer ? answerText(call) : 'the login has ended; log in again';
  if (error instanceof StoreFault || error instanceof AppError) return error.message;
  return 'the call failed inside the service';
}

/** What kept a request from its answer, with the host that the configuration names. */
function outboundReason({ forRecord }: OutboundError, host: string | undefined): string {
  return host === undefined || forRecord.includes(host) ? forRecord : `${host}: ${forRecord}`;
}

function usualText(outcome: Outcome, call: Told): string {
  switch (outcome) {
    case 'invalid_arguments':
      return 'the arguments cannot be sent as the tool says';
    case 'upstream_status':
      return answerText(call);
    case 'redirect':
      return `${answerText(call)}: the redirect was not followed`;
    case 'malformed':
    case 'transform':
      return `${answerText(call)}: the answer could not be read as the tool says`;
    case 'internal':
      return 'the call failed inside the service';
    default:
      return outcome.replaceAll('_', ' ');
  }
}

/** `HTTP 404 Not Found, application/json`: the registered words for the status, not those of the upstream. */
function answerText({ answer }: Told): string {
  if (!answer) return 'no answer';
  const words = STATUS_CODES[answer.status];
  return `HTTP ${answer.status}${words === undefined ? '' : ` ${words}`}, ${knownMediaType(contentTypeOf(answer.headers))}`;
}
