import { knownMediaType } from '../../domain/http/known-media-type.ts';
import { AppError, OutboundError, type Outcome, ToolFailure, Unauthenticated } from '../../errors.ts';
import { STATUS_CODES } from '../../http/node-http.ts';
import { StoreFault } from '../../store/engine/faults.ts';
import { contentTypeOf } from '../answer/answer-head.ts';
import type { Call } from './call.ts';

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
export function outboundReason({ forRecord }: OutboundError, host: string | undefined): string {
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
