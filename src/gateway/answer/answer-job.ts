import type { JsonText } from '../../domain/mcp.ts';
import { TooMuchWork } from '../../domain/work/steps.ts';
import { plainFailure, ToolFailure } from '../../errors.ts';
import { compiledTexts } from '../compiled-texts.ts';
import { type FailureData, failureData } from '../failure-data.ts';
import type { AnswerFile } from './answer-files.ts';
import type { AnswerHead } from './answer-head.ts';
import { type AnswerRest, type CutResult, fitResult } from './fit-answer.ts';
import { readContent } from './read-answer.ts';
import { compileReading, type ReadingSource } from './reading.ts';

/** Job that processes the body of a successful response. `reading` is the JSON text of a ReadingSource. */
export type AnswerJob = {
  input: { body: Uint8Array; head: AnswerHead; reading: string };
  output: ReadAnswer | { failure: FailureData };
};

type ReadAnswer = {
  content: Uint8Array;
  structured: Uint8Array | undefined;
  tokens: number | undefined;
  rest?: AnswerRest;
  files?: readonly AnswerFile[];
};

/** Maximum number of steps, about one second. */
const mostSteps = 30_000_000;

const compiled = compiledTexts((source) => compileReading(source as ReadingSource));

export function readAnswerBody({ body, head, reading }: AnswerJob['input']): {
  output: AnswerJob['output'];
  transfer: ArrayBuffer[];
} {
  try {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const rules = compiled(reading);
    const whole = readContent(bytes, head, rules, mostSteps);
    const { rest, files, ...result }: CutResult =
      rules.mostCharacters === undefined ? whole : fitResult(whole, rules.mostCharacters);
    const content = ownBytes(result.content);
    const structured = result.structured === undefined ? undefined : ownBytes(result.structured);
    const pieces = rest?.segments.map(({ json }) => json) ?? [];
    const owned = files?.map((file) => ({ ...file, bytes: new Uint8Array(file.bytes) }));
    const parts = [content, structured, ...pieces, ...(owned?.map((file) => file.bytes) ?? [])];
    const buffers = parts.flatMap((part) => (part ? [part.buffer] : []));
    return {
      output: { content, structured, tokens: result.tokens, ...(rest && { rest }), ...(owned && { files: owned }) },
      transfer: buffers,
    };
  } catch (error) {
    if (error instanceof ToolFailure) return { output: { failure: failureData(error) }, transfer: [] };
    if (error instanceof TooMuchWork) return { output: { failure: failureData(tooMuch) }, transfer: [] };
    throw error;
  }
}

const tooMuch = plainFailure(
  'transform',
  `The response has too many values. Checking them against output_schema takes more than ${mostSteps} steps: about one for each value and each schema keyword that applies to it, and more for a text that a pattern matches. Request less data with filters or paging, or simplify output_schema`,
);

/** Returns bytes with their own memory, which can be transferred. */
function ownBytes(text: JsonText): Uint8Array<ArrayBuffer> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const isOwn = bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength;
  return isOwn ? new Uint8Array(bytes.buffer as ArrayBuffer) : new Uint8Array(bytes);
}
