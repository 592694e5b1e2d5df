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
 * JSON is checked and cut, but never parsed and written again, so it is passed on unchanged, except for what parsers of
 * clients refuse. A text: why it cannot be read.
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

/** Compact JSON: the part named by `response_transform`, with only the fields to keep. */
function chosenPart(bytes: Buffer, { transform, fields }: Reading): Buffer {
  const { from, end } = transform.length === 0 ? { from: 0, end: bytes.length } : findPart(bytes, transform);
  const part = bytes.subarray(from, end);
  return fields ? keepFields(part, fields) : compactJson(part);
}

/** Bytes of an answer that a failure shows. */
const shownBytes = 1000;

function checkOutput(json: Buffer, { sensitive }: AnswerHead, output: OutputCheck, mostSteps: number): void {
  const value: unknown = JSON.parse(json.toString('utf8'));
  if (output.fits(value, mostSteps)) return;
  const start = redactedStart(json, shownBytes, new Redactor(sensitive));
  const sentence = 'the answer does not fit output_schema';
  throw new ToolFailure(
    'transform',
    `${sentence}; ${carriedOut}: ${start}`,
    [],
    `${sentence}${misfitOf(value, output, mostSteps)}`,
  );
}

/** Finding the fault may take part of the steps that the verdict may take. @throws TooMuchWork when a thread does that again */
function misfitOf(value: unknown, output: OutputCheck, mostSteps: number): string {
  try {
    return `: ${output.misfit(value, mostSteps / 4)}`;
  } catch (error) {
    if (error instanceof TooMuchWork && mostSteps > stepsOnLoop) return '';
    throw error;
  }
}

/** A result of JSON that is compact. */
function resultOf(json: Buffer): ToolResult {
  const block = new JsonTextBlock(json);
  scanJson(json, maxDepth, block);
  return block.result();
}

const firstOfMark = 0xef;

/** Without the byte order mark. */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === firstOfMark && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

const closeObject = 0x7d;

/**
 * Structured content with the headers of the answer as the property `response_headers`, where that fits its shape: an
 * object without such a property. Otherwise the same JSON.
 */
function withHeaderSlot(json: Buffer, { shown }: AnswerHead, { hasHeaderSlot }: Reading): Buffer {
  if (!hasHeaderSlot || json[0] !== openObject || hasPart(json, [headersProperty])) return json;
  const rest = json[1] === closeObject ? '' : ',';
  return Buffer.concat([Buffer.from(`{"${headersProperty}":${headersJson(shown)}${rest}`), json.subarray(1)]);
}

/** A result with the headers of the answer as a text block before its others. */
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

/**
 * From this length in bytes on, decoding bytes into text costs more than writing them separately from the rest of the
 * answer.
 */
const longBytes = 4096;
/** JSON as a text when it is short, otherwise as its bytes. */
function shortAsText(json: Buffer): JsonText {
  return json.length < longBytes ? json.toString('utf8') : json;
}

/** The beginning of content that begins with a text. */
export const textStart = '[{"type":"text","text":"';
/** The end of content that is one text. */
const textEnd = '"}]';
const startBytes = Buffer.from(textStart);
const endBytes = Buffer.from(textEnd);

/**
 * The content of a result whose text is JSON, made of the escaped text that the scan of the JSON writes: `JSON.stringify`
 * would go over the same text once more, which takes ten times as long.
 */
class JsonTextBlock implements EscapedPieces {
  readonly #length: number;
  readonly #isShort: boolean;
  #text: string;
  /** Of a long text. The first piece begins with the start of the content and has room for its end. */
  readonly #pieces: Buffer[];

  constructor(json: Buffer) {
    this.#length = json.length;
    this.#isShort = json.length < longBytes;
    this.#text = '';
    this.#pieces = [];
  }

  add(bytes: Buffer, length: number): void {
    // A short text is one piece, so no character is divided.
    if (this.#isShort) this.#text = bytes.toString('utf8', 0, length);
    else if (this.#pieces.length > 0) this.#pieces.push(copyOf(bytes, length, 0, 0));
    else {
      const first = copyOf(bytes, length, startBytes.length, endBytes.length);
      first.set(startBytes);
      this.#pieces.push(first);
    }
  }

  /** The result. Only for JSON that the scan found to be compact. */
  result(): ToolResult {
    const content = this.#isShort ? textStart + this.#text + textEnd : this.#longContent();
    return { content, structured: undefined, isError: false, tokens: tokensOfLength(this.#length) };
  }

  #longContent(): Buffer {
    const [first, ...others] = this.#pieces as [Buffer, ...Buffer[]];
    // Most long texts are one piece, which is then the content and not copied again.
    if (others.length === 0) {
      first.set(endBytes, first.length - endBytes.length);
      return first;
    }
    return Buffer.concat([first.subarray(0, first.length - endBytes.length), ...others, endBytes]);
  }
}

/** The first `length` bytes, with room before and behind them. */
function copyOf(bytes: Buffer, length: number, before: number, behind: number): Buffer {
  const copy = Buffer.allocUnsafe(before + length + behind);
  bytes.copy(copy, before, 0, length);
  return copy;
}

/** Longest content with files that is parsed for its texts. */
const mostParsed = 64 * 1024;

/** Estimated tokens of the text of a result, by the length of its JSON, without parsing it. Files do not count. */
export function tokensOfResult({ content }: ToolResult): number {
  const start = typeof content === 'string' ? content : content.toString('latin1', 0, textStart.length);
  if (start.startsWith(textStart)) return tokensOfLength(content.length - textStart.length - textEnd.length);
  return content.length > mostParsed ? 0 : tokensOfContent(JSON.parse(String(content)) as ContentBlock[]);
}

/** Estimated tokens of a result's text for a model, at four characters each. Images and files are not counted. */
export function tokensOfContent(content: readonly ContentBlock[]): number {
  const characters = content.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.text.length;
    return block.type === 'resource' && 'text' in block.resource ? sum + block.resource.text.length : sum;
  }, 0);
  return tokensOfLength(characters);
}

/**
 * Structured content that no output schema asks for. Clients of revisions before 2026-07-28 take only an object, and
 * Gemini CLI makes it of the first text of a result that has none: it refuses the result where that text is JSON and no
 * object. So those clients get `{"result": …}`. Where a parser would change a number, the JSON in it is a text, because
 * some clients show nothing else to their model.
 */

const openObject = 0x7b;
const bareStart = /^\s*(?:["[\d-]|(?:true|false|null)\s*$)/;

/** For an answer that is JSON. */
function structuredForEarlier(json: Buffer, era: Era): JsonText | undefined {
  return era === 'modern' || json[0] === openObject ? undefined : `{"result":${exactly(json.toString('utf8'))}}`;
}

/** For texts, of which the first may be JSON. `more` are the others, such as the note that an answer was cut. */
export function structuredOfTexts(
  blocks: readonly (ContentBlock | { type: 'attached_file' })[],
  era: Era,
): JsonText | undefined {
  if (era === 'modern') return undefined;
  const [first, ...more] = blocks.map((block) => (block.type === 'text' ? block.text : undefined));
  if (first === undefined || !isBareJson(first) || more.includes(undefined)) return undefined;
  return `{"result":${exactly(wellFormedJsonText(first))}${more.length > 0 ? `,"more":${JSON.stringify(more)}` : ''}}`;
}

/** Whether a text is JSON, and no object. */
function isBareJson(text: string): boolean {
  return bareStart.test(text) && scanJson(Buffer.from(text), maxDepth) !== undefined;
}

function exactly(json: string): string {
  return keepsNumbers(json) ? json : JSON.stringify(json);
}
