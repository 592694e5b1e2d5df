import type { ToolCall } from '../../domain/mcp.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { Held } from '../../domain/work/memory-budget.ts';
import { JobError, type Outcome, plainFailure } from '../../errors.ts';
import type { AnswerHead } from '../answer/answer-head.ts';
import type { AnswerJob } from '../answer/answer-job.ts';
import type { CutResult } from '../answer/fit-answer.ts';
import type { ArgumentJob } from '../arguments/validate-arguments.ts';
import type { CaptureJob } from '../captures/capture-job.ts';
import { toFailure } from '../failure-data.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';
import type { Call } from './call.ts';

/** Whose a job is, the event that cancels it, and the memory that counts its input already, if any does. */
export type JobOf = {
  /** The workspace, or the address of a stranger: strangers do not keep callers with a key from the threads. */
  workspaceId: string;
  onGone: ToolCall['onGone'] | undefined;
  held?: Held;
};

export function jobOf({ server, caller, onGone, held }: Call): JobOf {
  return { workspaceId: caller.network ?? server.workspaceId, onGone, held };
}

/** Work of the gateway that runs on threads. All functions throw JobError. */
export type ThreadWork = {
  checkArguments(input: ArgumentJob['input'], of: JobOf): Promise<ArgumentJob['output']>;
  /** Transfers the memory of the body. */
  readAnswer(input: AnswerJob['input'], of: JobOf): Promise<AnswerJob['output']>;
  writeCapture(input: CaptureJob['input'], of: JobOf): Promise<CaptureJob['output']>;
};

/** @throws ToolFailure when the arguments do not fit, or cannot be checked */
export async function checkOnThread(work: ThreadWork, tool: HostedTool, args: Arguments, of: JobOf): Promise<void> {
  const input = { schema: tool.texts.inputSchema(), args: JSON.stringify(args) };
  const { failure } = await work.checkArguments(input, of).catch((error: unknown) => {
    throw jobFailure(
      error,
      'invalid_arguments',
      'The arguments were not checked, and nothing was sent',
      'send fewer values in one call',
    );
  });
  if (failure) throw toFailure(failure);
}

/** @throws ToolFailure when the answer cannot be read */
export async function readOnThread(
  work: ThreadWork,
  tool: HostedTool,
  answer: { body: Uint8Array; head: AnswerHead },
  of: JobOf,
): Promise<CutResult> {
  const { byteLength } = answer.body;
  const output = await work.readAnswer({ ...answer, reading: tool.texts.reading() }, of).catch((error: unknown) => {
    const what = `The upstream answered with ${byteLength} bytes, which were not read`;
    throw jobFailure(
      error,
      'oversize',
      what,
      'ask for less with filters or paging, or simplify how the tool reads its answer',
    );
  });
  if ('failure' in output) throw toFailure(output.failure);
  const { content, structured, tokens, rest, files } = output;
  const result = { content: toBuffer(content), structured: structured && toBuffer(structured), isError: false };
  return { ...result, ...(tokens !== undefined && { tokens }), ...(rest && { rest }), ...(files && { files }) };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A sentence for the model; any other error than a JobError is returned unchanged. */
function jobFailure(error: unknown, outcome: Outcome, what: string, advice: string): unknown {
  if (!(error instanceof JobError) || error.reason === 'failed') return error;
  const { reason, message } = error;
  if (reason === 'cancelled') return plainFailure('cancelled', message);
  if (reason === 'refused')
    return plainFailure('limited', `${what}: ${message}; make fewer large calls at once, or ${advice}`);
  return plainFailure(outcome, `${what}: ${message}; ${advice}`);
}
