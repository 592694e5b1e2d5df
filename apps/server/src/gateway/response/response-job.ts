import { recordableFailure, ToolFailure } from '@toolhost/errors/errors';
import { StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import type { JsonText } from '@toolhost/mcp-protocol/mcp';
import { createCompileCache } from '../compile-cache.ts';
import { type FailureData, toFailureData } from '../failure-data.ts';
import { type ResultRemainder, type TruncatedResult, truncateResult } from './fit-result.ts';
import { createContent } from './read-response.ts';
import type { ResultFile } from './response-files.ts';
import type { ResponseHead } from './response-head.ts';
import { compileResponseRules, type ResponseRulesSource } from './response-rules.ts';

/** Job that processes the body of a successful response. `responseRules` is the JSON text of a ResponseRulesSource. */
export type ReadResponseJob = {
  input: { body: Uint8Array; head: ResponseHead; responseRules: string };
  output: ReadResponseOutput | { failure: FailureData };
};

type ReadResponseOutput = {
  content: Uint8Array;
  structured: Uint8Array | undefined;
  tokens: number | undefined;
  remainder?: ResultRemainder;
  files?: readonly ResultFile[];
};

/** Maximum number of steps, about one second. */
const maxSteps = 30_000_000;

const compileCached = createCompileCache((source) => compileResponseRules(source as ResponseRulesSource));

export function readResponseBody({ body, head, responseRules }: ReadResponseJob['input']): {
  output: ReadResponseJob['output'];
  transfer: ArrayBuffer[];
} {
  try {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const rules = compileCached(responseRules);
    const full = createContent(bytes, head, rules, maxSteps);
    const { remainder, files, ...result }: TruncatedResult =
      rules.maxCharacters === undefined ? full : truncateResult(full, rules.maxCharacters);
    const content = toOwnedBytes(result.content);
    const structured = result.structured === undefined ? undefined : toOwnedBytes(result.structured);
    const segmentBytes = remainder?.segments.map(({ json }) => json) ?? [];
    const ownedFiles = files?.map((file) => ({ ...file, bytes: new Uint8Array(file.bytes) }));
    const byteArrays = [content, structured, ...segmentBytes, ...(ownedFiles?.map((file) => file.bytes) ?? [])];
    const buffers = byteArrays.flatMap((bytes) => (bytes ? [bytes.buffer] : []));
    return {
      output: {
        content,
        structured,
        tokens: result.tokens,
        ...(remainder && { remainder }),
        ...(ownedFiles && { files: ownedFiles }),
      },
      transfer: buffers,
    };
  } catch (error) {
    if (error instanceof ToolFailure) return { output: { failure: toFailureData(error) }, transfer: [] };
    if (error instanceof StepLimitExceeded)
      return { output: { failure: toFailureData(tooManyStepsFailure) }, transfer: [] };
    throw error;
  }
}

const tooManyStepsFailure = recordableFailure(
  'transform',
  `The response has too many values. Checking them against output_schema takes more than ${maxSteps} steps: about one for each value and each schema keyword that applies to it, and more for a text that a pattern matches. Request less data with filters or paging, or simplify output_schema`,
);

/** Returns bytes with their own memory, which can be transferred. */
function toOwnedBytes(text: JsonText): Uint8Array<ArrayBuffer> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const isOwned = bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength;
  return isOwned ? new Uint8Array(bytes.buffer as ArrayBuffer) : new Uint8Array(bytes);
}
