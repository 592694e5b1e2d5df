import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { TooMuchWork } from '../../domain/work/steps.ts';
import { Unauthenticated } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import { headOf } from '../answer/answer-head.ts';
import type { CutResult } from '../answer/fit-answer.ts';
import { isLongAnswer, readAnswer } from '../answer/read-answer.ts';
import type { Call, CallRequest } from './call.ts';
import { isCallCaptured } from './capture.ts';
import { jobOf, readOnThread, type ThreadWork } from './thread-work.ts';

/**
 * Learns what an answer proves about the credential of the caller.
 * @throws Unauthenticated when the upstream no longer takes a token that the caller must renew
 */
export function noteAnswer(
  call: Call,
  { request }: CallRequest,
  answer: Answer,
  onUnexpected: (error: unknown, requestId: string) => void,
): void {
  const { caller, tool } = call;
  call.answer = answer;
  if (caller.known?.noteAnswer(caller, tool, request, answer.status)) {
    call.isNewlyAccepted = true;
    caller.askLogin?.().catch((error: unknown) => onUnexpected(error, call.asked.requestId));
  }
  if (answer.status === 401 && call.server.access === 'passthrough') {
    throw new Unauthenticated('invalid', 'the upstream no longer accepts this token; log in again');
  }
}

/** Reads a long answer, or one that takes long to check, on a thread. */
export function readCall(call: Call, answer: Answer, threads: ThreadWork): MaybePromise<CutResult> {
  const { tool } = call;
  try {
    if (!isLongAnswer(answer, tool.reading)) return readAnswer(answer, tool.reading, call.sensitive);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
  }
  // The bytes are transferred, so the part that a capture needs is copied first.
  const body = isCallCaptured(call) ? Buffer.from(answer.body) : answer.body;
  return readOnThread(threads, tool, { body, head: headOf(answer, tool.reading, call.sensitive) }, jobOf(call));
}
