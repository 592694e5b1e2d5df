import { JobError, type Outcome, recordableFailure } from '@toolhost/errors/errors';
import type { MemoryReservation } from '@toolhost/limits/memory-budget';
import type { ToolCall } from '@toolhost/mcp-protocol/mcp';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { ArgumentJob } from '../arguments/validate-arguments.ts';
import type { CaptureJob } from '../captures/capture-job.ts';
import { fromFailureData } from '../failure-data.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';
import type { TruncatedResult } from '../response/fit-result.ts';
import type { ResponseHead } from '../response/response-head.ts';
import type { ReadResponseJob } from '../response/response-job.ts';
import type { Call } from './call.ts';

/**
 * Context of a job: the tenant that it is charged to, the event that cancels it, and the reservation that already
 * counts its input, if any.
 */
export type JobContext = {
  /**
   * Workspace, or network of a caller without a verified API key, so that such callers cannot occupy the threads of
   * callers with a key.
   */
  ownerId: string;
  registerCancel: ToolCall['onDisconnect'] | undefined;
  reservation?: MemoryReservation;
};

export function toJobContext({ server, caller, onDisconnect, reservation }: Call): JobContext {
  return { ownerId: caller.network ?? server.workspaceId, registerCancel: onDisconnect, reservation };
}

/** Work of the gateway that runs on threads. All functions throw JobError. */
export type ThreadWork = {
  checkArguments(input: ArgumentJob['input'], context: JobContext): Promise<ArgumentJob['output']>;
  /** Processes a response. Transfers the memory of the body. */
  readResponse(input: ReadResponseJob['input'], context: JobContext): Promise<ReadResponseJob['output']>;
  writeCapture(input: CaptureJob['input'], context: JobContext): Promise<CaptureJob['output']>;
};

/** Checks arguments on a thread. @throws ToolFailure if the arguments are invalid, or cannot be checked */
export async function checkOnThread(
  work: ThreadWork,
  tool: HostedTool,
  args: Arguments,
  context: JobContext,
): Promise<void> {
  const input = { schema: tool.threadJson.toInputSchema(), args: JSON.stringify(args) };
  const { failure } = await work.checkArguments(input, context).catch((error: unknown) => {
    throw toJobFailure(
      error,
      'invalid_arguments',
      'The arguments were not checked, and nothing was sent',
      'send fewer values in one call',
    );
  });
  if (failure) throw fromFailureData(failure);
}

/** Processes a response on a thread. @throws ToolFailure if the response cannot be processed */
export async function readOnThread(
  work: ThreadWork,
  tool: HostedTool,
  response: { body: Uint8Array; head: ResponseHead },
  context: JobContext,
): Promise<TruncatedResult> {
  const { byteLength } = response.body;
  const output = await work
    .readResponse({ ...response, responseRules: tool.threadJson.toResponseRules() }, context)
    .catch((error: unknown) => {
      const summary = `The upstream returned ${byteLength} bytes, which were not processed`;
      throw toJobFailure(
        error,
        'oversize',
        summary,
        "request less data with filters or paging, or simplify the tool's response settings",
      );
    });
  if ('failure' in output) throw fromFailureData(output.failure);
  const { content, structured, tokens, remainder, files } = output;
  const result = { content: toBuffer(content), structured: structured && toBuffer(structured), isError: false };
  return {
    ...result,
    ...(tokens !== undefined && { tokens }),
    ...(remainder && { remainder }),
    ...(files && { files }),
  };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Returns a failure with a message for the model. Any error other than a JobError is returned unchanged. */
function toJobFailure(error: unknown, outcome: Outcome, summary: string, advice: string): unknown {
  if (!(error instanceof JobError) || error.reason === 'failed') return error;
  const { reason, message } = error;
  if (reason === 'cancelled') return recordableFailure('cancelled', message);
  if (reason === 'refused')
    return recordableFailure('limited', `${summary}: ${message}; make fewer large calls in parallel, or ${advice}`);
  return recordableFailure(outcome, `${summary}: ${message}; ${advice}`);
}
