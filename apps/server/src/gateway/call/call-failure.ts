import {
  AppError,
  isUnavailableError,
  OutboundError,
  type OutboundReason,
  type Outcome,
  recordableFailure,
  ToolFailure,
  Unauthenticated,
} from '@toolhost/errors/errors';
import { describeMediaType } from '@toolhost/tool-config/http/headers';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { STATUS_CODES } from '../../http/node-http.ts';
import { DatabaseError } from '../../store/engine/database-errors.ts';
import { getResponseContentType } from '../response/response-head.ts';
import type { Call } from './call.ts';

/**
 * Returns the outcome of a call that failed with an error. If its credential or server was removed before the request
 * was sent, the call counts as canceled.
 */
export function getOutcome(error: unknown, isSent: boolean): Outcome {
  if (error instanceof ToolFailure) return error.outcome;
  if (error instanceof DatabaseError) return 'unavailable';
  if (error instanceof AppError) return error.kind === 'notFound' ? 'cancelled' : 'limited';
  if (error instanceof Unauthenticated) return isSent ? 'upstream_status' : 'cancelled';
  return 'internal';
}

/**
 * Returns the error to report for a call that failed after its request was built. Its message is meant for the model or
 * client.
 */
export function toReportedError(
  error: unknown,
  { host, request, toolCall: { requestId } }: Call,
  onUnexpected: (error: unknown, requestId: string) => void,
): unknown {
  if (error instanceof OutboundError) return toToolFailure(hideHost(error, host, request?.request.origin), host);
  const isExpected = error instanceof ToolFailure || error instanceof Unauthenticated || isUnavailableError(error);
  // A request that is sent again is authorized again, which can throw an AppError.
  if (isExpected || error instanceof AppError) return error;
  onUnexpected(error, requestId);
  return recordableFailure('internal', `the call failed with an internal error; request ${requestId}`);
}

/** Maps the reason of a failed request to the outcome of its call. */
export const outcomeByReason: Record<OutboundReason, Outcome> = {
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

/** Writes the host of a request as the configuration does, because it may contain the value of a person. */
function hideHost(error: OutboundError, host: string | undefined, origin = ''): OutboundError {
  const sent = parseUrl(origin);
  if (host === undefined || !sent || sent.host === host) return error;
  const hide = (text: string) => text.replaceAll(sent.hostname, host.replace(/:\d+$/, ''));
  return new OutboundError(error.reason, hide(error.message), hide(error.recordMessage));
}

function toToolFailure(error: OutboundError, host: string | undefined): ToolFailure {
  const hint =
    error.reason === 'oversize'
      ? '. Request less data with filters or paging, or have the server return fewer fields with response_fields'
      : '';
  return new ToolFailure(outcomeByReason[error.reason], `${error.message}${hint}`, [], getOutboundReason(error, host));
}

/** The fields of a call that a failure reason mentions. */
type FailedCall = Partial<Pick<Call, 'response' | 'host'>>;

/** Maximum length of a reason in a record, in characters. */
const maxReasonLength = 300;

/**
 * Returns the reason of a failure for the call record. It contains no value of an argument, query, path, or body, and
 * no text from the upstream.
 */
export function getRecordedReason(error: unknown, call: FailedCall): string {
  const text = getReason(error, call)
    .replaceAll(/\p{Cc}/gu, ' ')
    .toWellFormed();
  return text.length > maxReasonLength ? `${text.slice(0, maxReasonLength - 1).toWellFormed()}…` : text;
}

function getReason(error: unknown, call: FailedCall): string {
  if (error instanceof ToolFailure) return error.recordMessage ?? getDefaultReason(error.outcome, call);
  if (error instanceof OutboundError) return getOutboundReason(error, call.host);
  if (error instanceof Unauthenticated)
    return call.response ? formatResponse(call) : 'the login has expired or was revoked; log in again';
  if (error instanceof DatabaseError || error instanceof AppError) return error.message;
  return 'the call failed with an internal error';
}

/** Returns the reason why a request got no response, with the host from the configuration. */
function getOutboundReason({ recordMessage }: OutboundError, host: string | undefined): string {
  return host === undefined || recordMessage.includes(host) ? recordMessage : `${host}: ${recordMessage}`;
}

function getDefaultReason(outcome: Outcome, call: FailedCall): string {
  switch (outcome) {
    case 'invalid_arguments':
      return 'the arguments cannot be sent as the tool is configured';
    case 'upstream_status':
      return formatResponse(call);
    case 'redirect':
      return `${formatResponse(call)}: the redirect was not followed`;
    case 'malformed':
    case 'transform':
      return `${formatResponse(call)}: the response could not be processed as the tool is configured`;
    case 'internal':
      return 'the call failed with an internal error';
    default:
      return outcome.replaceAll('_', ' ');
  }
}

/**
 * Formats a response, such as `HTTP 404 Not Found, application/json`, with the registered status text instead of the
 * upstream's.
 */
function formatResponse({ response }: FailedCall): string {
  if (!response) return 'no response';
  const statusText = STATUS_CODES[response.status];
  return `HTTP ${response.status}${statusText === undefined ? '' : ` ${statusText}`}, ${describeMediaType(getResponseContentType(response.headers))}`;
}
