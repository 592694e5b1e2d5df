import type { ContentBlock, JsonText } from '../../domain/mcp.ts';
import { TooMuchWork } from '../../domain/work/steps.ts';
import { plainFailure, ToolFailure } from '../../errors.ts';
import { compiledTexts } from '../compiled-texts.ts';
import { type FailureData, failureData } from '../failure-data.ts';
import type { AnswerFile } from './answer-files.ts';
import type { AnswerHead } from './answer-head.ts';
import { type AnswerRest, type CutResult, fitResult } from './fit-answer.ts';
import { tokensOfContent } from './json-answer.ts';
import { readContent } from './read-answer.ts';
import { compileReading, type ReadingSource } from './reading.ts';

/** Reads the body of a successful answer. `reading` is the JSON text of a ReadingSource. */
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

/** About one second. */
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
  `the answer holds too many values to check against output_schema, which takes more than ${mostSteps} steps: about one for each value and each part of the schema that it meets, and more for a text that a pattern reads; ask for less with filters or paging, or simplify output_schema`,
);

/** Bytes in their own memory, which can be transferred. */
function ownBytes(text: JsonText): Uint8Array<ArrayBuffer> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const isOwn = bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength;
  return isOwn ? new Uint8Array(bytes.buffer as ArrayBuffer) : new Uint8Array(bytes);
}

/** The beginning of a long result's content, as a try-out shows it. */
type ShownContent = { content: ContentBlock[]; estimatedTokens: number };

/** Reads the content of a long result, which is JSON text, for a try-out. */
export type ContentJob = { input: { content: Uint8Array }; output: ShownContent };

/** Longest text of a long result that is shown, in characters. */
export const mostShownText = 256 * 1024;

export function shortenContent({ content }: ContentJob['input']): { output: ContentJob['output'] } {
  const text = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('utf8');
  const blocks = JSON.parse(text) as ContentBlock[];
  return { output: { content: beginningOf(blocks), estimatedTokens: tokensOfContent(blocks) } };
}

/** The blocks of a result, cut to that length of text; a file that does not fit is replaced by its description. */
function beginningOf(content: readonly ContentBlock[]): ContentBlock[] {
  let left = mostShownText;
  const begun = (text: string) => {
    const start = cutText(text, left);
    left -= start.length;
    return start;
  };
  const shown: ContentBlock[] = [];
  for (const block of content) {
    if (left === 0) break;
    if (block.type === 'text') shown.push({ ...block, text: begun(block.text) });
    else if (block.type === 'resource' && 'text' in block.resource) {
      shown.push({ ...block, resource: { ...block.resource, text: begun(block.resource.text) } });
    } else shown.push(fileOf(block, left));
    left -= base64Of(shown.at(-1) as ContentBlock).length;
  }
  return shown;
}

/** A file if it fits, otherwise its description: half a file is useless. */
function fileOf(block: ContentBlock, left: number): ContentBlock {
  const base64 = base64Of(block);
  if (base64.length <= left) return block;
  const type = block.type === 'resource' ? block.resource.mimeType : 'mimeType' in block ? block.mimeType : '';
  return { type: 'text', text: `[a file of type ${type} with ${Buffer.byteLength(base64, 'base64')} bytes]` };
}

function base64Of(block: ContentBlock): string {
  if (block.type === 'text' || block.type === 'resource_link') return '';
  if (block.type !== 'resource') return block.data;
  return 'blob' in block.resource ? block.resource.blob : '';
}

/** The first characters of a text, without half of a surrogate pair at the end. */
function cutText(text: string, most: number): string {
  const isSplit = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  return text.length <= most ? text : text.slice(0, isSplit ? most - 1 : most);
}
