import { Buffer, isUtf8 } from 'node:buffer';
import { Redactor, redactedStart } from '../../domain/credentials/redactor.ts';
import { keepsNumbers } from '../../domain/json/json.ts';
import { compactJson } from '../../domain/json/json-cursor.ts';
import { type EscapedPieces, scanJson, wellFormedJson, wellFormedJsonText } from '../../domain/json/json-scan.ts';
import { keepFields } from '../../domain/json/response-fields.ts';
import { findPart, hasPart } from '../../domain/json/response-transform.ts';
import type { ContentBlock, Era, JsonText, ToolResult } from '../../domain/mcp.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import { stepsOnLoop, TooMuchWork } from '../../domain/work/steps.ts';
import { ToolFailure } from '../../errors.ts';
import type { OutputCheck } from '../arguments/validate-arguments.ts';
import { type AnswerHead, headerLines, headersJson } from './answer-head.ts';
import { carriedOut, headersProperty, type Reading } from './reading.ts';

const maxDepth = 1000;

/**
 * Creates a result from a JSON body. JSON is validated and cut, but never parsed and serialized again, so it is passed
 * on unchanged except for sequences that client parsers reject. Returns a string with the reason if the body is not
 * acceptable JSON.
 */
export function resultOfJson(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): ToolResult | string {
  if (!isUtf8(body)) return 'it is not valid UTF-8';
  const bytes = wellFormedJson(body[0] === firstOfMark ? withoutMark(body) : body);
  const isWhole = reading.transform.length === 0 && !reading.fields;
  const block = isWhole ? new JsonTextBlock(bytes) : undefined;
  const scan = scanJson(bytes, maxDepth, block);
  if (!scan) return 'it is not strict JSON';
  if (scan.depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
  const chosen = isWhole && scan.isCompact ? bytes : chosenPart(bytes, reading);
  const whole = head.shown.length === 0 ? chosen : withHeaderSlot(chosen, head, reading);
  if (reading.output) checkOutput(whole, head, reading.output, mostSteps);
  const result = block && scan.isCompact ? block.result() : resultOf(chosen);
  if (reading.isAnnounced) return withHeaders({ ...result, structured: shortAsText(whole) }, head);
  if (head.shown.length > 0) return withHeaders(result, head);
  return { ...result, structured: structuredForEarlier(chosen, head.era) };
}

/** Returns compact JSON: the part that `response_transform` selects, with only the configured fields. */
function chosenPart(bytes: Buffer, { transform, fields }: Reading): Buffer {
  const { from, end } = transform.length === 0 ? { from: 0, end: bytes.length } : findPart(bytes, transform);
  const part = bytes.subarray(from, end);
  return fields ? keepFields(part, fields) : compactJson(part);
}

/** Maximum number of bytes of a response in a failure message. */
const shownBytes = 1000;

function checkOutput(json: Buffer, { sensitive }: AnswerHead, output: OutputCheck, mostSteps: number): void {
  const value: unknown = JSON.parse(json.toString('utf8'));
  if (output.fits(value, mostSteps)) return;
  const start = redactedStart(json, shownBytes, new Redactor(sensitive));
  const sentence = 'the response does not match output_schema';
  throw new ToolFailure(
    'transform',
    `${sentence}; ${carriedOut}: ${start}`,
    [],
    `${sentence}${misfitOf(value, output, mostSteps)}`,
  );
}

/**
 * Describes the mismatch, with a quarter of the steps that validation may take. @throws TooMuchWork if a thread can try
 * again
 */
function misfitOf(value: unknown, output: OutputCheck, mostSteps: number): string {
  try {
    return `: ${output.misfit(value, mostSteps / 4)}`;
  } catch (error) {
    if (error instanceof TooMuchWork && mostSteps > stepsOnLoop) return '';
    throw error;
  }
}

/** Creates a result from compact JSON. */
function resultOf(json: Buffer): ToolResult {
  const block = new JsonTextBlock(json);
  scanJson(json, maxDepth, block);
  return block.result();
}

const firstOfMark = 0xef;

/** Removes the byte order mark. */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === firstOfMark && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

const closeObject = 0x7d;

/**
 * Adds the response headers to structured content as the property `response_headers`, if it is an object without such a
 * property. Otherwise returns the JSON unchanged.
 */
function withHeaderSlot(json: Buffer, { shown }: AnswerHead, { hasHeaderSlot }: Reading): Buffer {
  if (!hasHeaderSlot || json[0] !== openObject || hasPart(json, [headersProperty])) return json;
  const rest = json[1] === closeObject ? '' : ',';
  return Buffer.concat([Buffer.from(`{"${headersProperty}":${headersJson(shown)}${rest}`), json.subarray(1)]);
}

/** Adds the response headers to a result, as a text block before the other blocks. */
export function withHeaders(result: ToolResult, { shown }: AnswerHead): ToolResult {
  if (shown.length === 0) return result;
  const text = headerLines(shown);
  const tokens = result.tokens !== undefined && { tokens: result.tokens + tokensOfLength(text.length) };
  return { ...result, ...tokens, content: withFirst({ type: 'text', text }, result.content) };
}

function withFirst(block: object, content: JsonText): JsonText {
  const start = `[${JSON.stringify(block)},`;
  return typeof content === 'string'
    ? start + content.slice(1)
    : Buffer.concat([Buffer.from(start), content.subarray(1)]);
}

/** Minimum length of bytes that are sent as a separate chunk. Decoding more than that into a string costs more. */
const longBytes = 4096;
/** Returns short JSON as a string, otherwise its bytes. */
function shortAsText(json: Buffer): JsonText {
  return json.length < longBytes ? json.toString('utf8') : json;
}

/** Start of content whose first block is a text. */
export const textStart = '[{"type":"text","text":"';
/** End of content that is a single text. */
const textEnd = '"}]';
const startBytes = Buffer.from(textStart);
const endBytes = Buffer.from(textEnd);

/**
 * The content of a result whose text is JSON. It is built from the escaped text that the scan of the JSON writes,
 * because `JSON.stringify` would process the same text once more and take ten times as long.
 */
class JsonTextBlock implements EscapedPieces {
  readonly #length: number;
  readonly #isShort: boolean;
  #text: string;
  /** Chunks of a long text. The first one begins with the start of the content and has space for its end. */
  readonly #pieces: Buffer[];

  constructor(json: Buffer) {
    this.#length = json.length;
    this.#isShort = json.length < longBytes;
    this.#text = '';
    this.#pieces = [];
  }

  add(bytes: Buffer, length: number): void {
    // A short text is a single chunk, so no character is split.
    if (this.#isShort) this.#text = bytes.toString('utf8', 0, length);
    else if (this.#pieces.length > 0) this.#pieces.push(copyOf(bytes, length, 0, 0));
    else {
      const first = copyOf(bytes, length, startBytes.length, endBytes.length);
      first.set(startBytes);
      this.#pieces.push(first);
    }
  }

  /** Returns the result. Valid only for JSON that the scan found to be compact. */
  result(): ToolResult {
    const content = this.#isShort ? textStart + this.#text + textEnd : this.#longContent();
    return { content, structured: undefined, isError: false, tokens: tokensOfLength(this.#length) };
  }

  #longContent(): Buffer {
    const [first, ...others] = this.#pieces as [Buffer, ...Buffer[]];
    // Most long texts are a single chunk, which becomes the content without another copy.
    if (others.length === 0) {
      first.set(endBytes, first.length - endBytes.length);
      return first;
    }
    return Buffer.concat([first.subarray(0, first.length - endBytes.length), ...others, endBytes]);
  }
}

/** Copies the first `length` bytes, with space before and after them. */
function copyOf(bytes: Buffer, length: number, before: number, behind: number): Buffer {
  const copy = Buffer.allocUnsafe(before + length + behind);
  bytes.copy(copy, before, 0, length);
  return copy;
}

/** Maximum length of content with files that is parsed to find its texts. */
const mostParsed = 64 * 1024;

/** Estimates the tokens of a result's text from the length of its JSON, without parsing it. Files do not count. */
export function tokensOfResult({ content }: ToolResult): number {
  const start = typeof content === 'string' ? content : content.toString('latin1', 0, textStart.length);
  if (start.startsWith(textStart)) return tokensOfLength(content.length - textStart.length - textEnd.length);
  return content.length > mostParsed ? 0 : tokensOfContent(JSON.parse(String(content)) as ContentBlock[]);
}

/** Estimates the tokens of a result's text for a model, at four characters each. Images and files do not count. */
export function tokensOfContent(content: readonly ContentBlock[]): number {
  const characters = content.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.text.length;
    return block.type === 'resource' && 'text' in block.resource ? sum + block.resource.text.length : sum;
  }, 0);
  return tokensOfLength(characters);
}

/**
 * Structured content without an output schema. Clients of revisions before 2026-07-28 accept only an object, and Gemini
 * CLI creates it from the first text of a result that has none, rejecting the result if that text is JSON but not an
 * object. These clients therefore get `{"result": …}`. If a parser would change a number, the JSON is included as a
 * string, because some clients show their model nothing else.
 */

const openObject = 0x7b;
const bareStart = /^\s*(?:["[\d-]|(?:true|false|null)\s*$)/;

/** Returns structured content for a JSON response. */
function structuredForEarlier(json: Buffer, era: Era): JsonText | undefined {
  return era === 'modern' || json[0] === openObject ? undefined : `{"result":${exactly(json.toString('utf8'))}}`;
}

/**
 * Returns structured content for text blocks, the first of which may be JSON. `more` lists the others, such as the note
 * that a result was truncated.
 */
export function structuredOfTexts(
  blocks: readonly (ContentBlock | { type: 'attached_file' })[],
  era: Era,
): JsonText | undefined {
  if (era === 'modern') return undefined;
  const [first, ...more] = blocks.map((block) => (block.type === 'text' ? block.text : undefined));
  if (first === undefined || !isBareJson(first) || more.includes(undefined)) return undefined;
  return `{"result":${exactly(wellFormedJsonText(first))}${more.length > 0 ? `,"more":${JSON.stringify(more)}` : ''}}`;
}

/** Returns true if a text is JSON, but not an object. */
function isBareJson(text: string): boolean {
  return bareStart.test(text) && scanJson(Buffer.from(text), maxDepth) !== undefined;
}

function exactly(json: string): string {
  return keepsNumbers(json) ? json : JSON.stringify(json);
}
