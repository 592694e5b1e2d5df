import { redactor } from '../../domain/credentials/redactor.ts';
import { doInTurn } from '../../domain/work/do-in-turn.ts';
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
  const { caller } = call;
  call.answer = answer;
  if (caller.known?.noteAnswer(call, request, answer.status)) {
    call.isNewlyAccepted = true;
    caller.askLogin?.().catch((error: unknown) => onUnexpected(error, call.asked.requestId));
  }
  if (answer.status === 401 && call.server.access === 'passthrough') {
    throw new Unauthenticated('invalid', 'the upstream no longer accepts this token; log in again');
  }
}

/** A longer answer, in bytes, takes so long to read that those which come together have a turn each. */
const longBytes = 64 * 1024;

/** Reads the answer to a call: on a thread when it is long, or takes long to check. */
export function readCall(call: Call, answer: Answer, threads: ThreadWork): MaybePromise<CutResult> {
  const { tool, sensitive } = call;
  const work = (mostSteps: number) =>
    isLongAnswer(answer, tool.reading)
      ? leaveToThread(call, answer, threads)
      : readAnswer(answer, tool.reading, sensitive, mostSteps);
  const read = doInTurn(answer.body.length > longBytes, work, call.server);
  if (!(read instanceof Promise)) return read;
  return read.catch((error: unknown) => {
    if (error instanceof TooMuchWork) return leaveToThread(call, answer, threads);
    throw error;
  });
}

function leaveToThread(call: Call, answer: Answer, threads: ThreadWork): Promise<CutResult> {
  const { tool } = call;
  // The bytes are transferred, so the part that a capture needs is copied first.
  const body = isCallCaptured(call) ? Buffer.from(answer.body) : answer.body;
  const head = headOf(answer, tool.reading, call.sensitive, redactor(call.sensitive));
  return readOnThread(threads, tool, { body, head }, jobOf(call));
}
