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

/**
 * Context of a job: the tenant that it is charged to, the event that cancels it, and the reservation that already
 * counts its input, if any.
 */
export type JobOf = {
  /**
   * Workspace, or network of a caller without a verified API key, so that such callers cannot occupy the threads of
   * callers with a key.
   */
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
  /** Processes a response. Transfers the memory of the body. */
  readAnswer(input: AnswerJob['input'], of: JobOf): Promise<AnswerJob['output']>;
  writeCapture(input: CaptureJob['input'], of: JobOf): Promise<CaptureJob['output']>;
};

/** Checks arguments on a thread. @throws ToolFailure if the arguments are invalid, or cannot be checked */
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

/** Processes a response on a thread. @throws ToolFailure if the response cannot be processed */
export async function readOnThread(
  work: ThreadWork,
  tool: HostedTool,
  answer: { body: Uint8Array; head: AnswerHead },
  of: JobOf,
): Promise<CutResult> {
  const { byteLength } = answer.body;
  const output = await work.readAnswer({ ...answer, reading: tool.texts.reading() }, of).catch((error: unknown) => {
    const what = `The upstream returned ${byteLength} bytes, which were not processed`;
    throw jobFailure(
      error,
      'oversize',
      what,
      "request less data with filters or paging, or simplify the tool's response settings",
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

/** Returns a failure with a message for the model. Any error other than a JobError is returned unchanged. */
function jobFailure(error: unknown, outcome: Outcome, what: string, advice: string): unknown {
  if (!(error instanceof JobError) || error.reason === 'failed') return error;
  const { reason, message } = error;
  if (reason === 'cancelled') return plainFailure('cancelled', message);
  if (reason === 'refused')
    return plainFailure('limited', `${what}: ${message}; make fewer large calls in parallel, or ${advice}`);
  return plainFailure(outcome, `${what}: ${message}; ${advice}`);
}
