import { Buffer, isUtf8 } from 'node:buffer';
import { Redactor, redactPrefix } from '@toolhost/credentials/redactor';
import { ToolFailure } from '@toolhost/errors/errors';
import { preservesNumbers } from '@toolhost/json/json';
import { compactJson } from '@toolhost/json/json-cursor';
import { type EscapedChunks, scanJson, toWellFormedJson, toWellFormedJsonText } from '@toolhost/json/json-scan';
import { selectFields } from '@toolhost/json/response-fields';
import { findValueRange, hasPath } from '@toolhost/json/response-transform';
import { maxEventLoopSteps, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import { takeSlab } from '@toolhost/limits/slabs';
import type { ContentBlock, JsonText, ProtocolGeneration, ToolResult } from '@toolhost/mcp-protocol/mcp';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import type { OutputCheck } from '../arguments/validate-arguments.ts';
import { formatHeaderLines, formatHeadersJson, type ResponseHead } from './response-head.ts';
import { headersProperty, type ResponseRules, requestCarriedOut } from './response-rules.ts';

const maxDepth = 1000;

/**
 * Creates a result from a JSON body. JSON is validated and cut, but never parsed and serialized again, so it is passed
 * on unchanged except for sequences that client parsers reject. Returns a string with the reason if the body is not
 * acceptable JSON.
 */
export function createJsonResult(
  body: Buffer,
  responseHead: ResponseHead,
  responseRules: ResponseRules,
  maxSteps: number,
): ToolResult | string {
  if (!isUtf8(body)) return 'it is not valid UTF-8';
  const bytes = toWellFormedJson(body[0] === byteOrderMarkStart ? stripByteOrderMark(body) : body);
  const isUnfiltered = responseRules.transform.length === 0 && !responseRules.fields;
  const block = isUnfiltered ? new JsonTextBlock(bytes) : undefined;
  const scan = scanJson(bytes, maxDepth, block);
  if (!scan) return 'it is not strict JSON';
  if (scan.depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
  const selected = isUnfiltered && scan.isCompact ? bytes : selectPart(bytes, responseRules);
  const structuredJson =
    responseHead.displayedHeaders.length === 0 ? selected : addHeadersProperty(selected, responseHead, responseRules);
  if (responseRules.outputCheck) checkOutput(structuredJson, responseHead, responseRules.outputCheck, maxSteps);
  const result = block && scan.isCompact ? block.result() : toJsonResult(selected);
  if (responseRules.isSchemaListed)
    return addHeadersBlock({ ...result, structured: toJsonText(structuredJson) }, responseHead);
  if (responseHead.displayedHeaders.length > 0) return addHeadersBlock(result, responseHead);
  return { ...result, structured: createStatefulStructured(selected, responseHead.generation) };
}

/** Returns compact JSON: the part that `response_transform` selects, with only the configured fields. */
function selectPart(bytes: Buffer, { transform, fields }: ResponseRules): Buffer {
  const { from: start, end } =
    transform.length === 0 ? { from: 0, end: bytes.length } : findValueRange(bytes, transform);
  const part = bytes.subarray(start, end);
  return fields ? selectFields(part, fields) : compactJson(part);
}

/** Maximum number of bytes of a response in a failure message. */
const maxDisplayedBytes = 1000;

function checkOutput(json: Buffer, { sensitive }: ResponseHead, output: OutputCheck, maxSteps: number): void {
  const value: unknown = JSON.parse(json.toString('utf8'));
  if (output.isValid(value, maxSteps)) return;
  const start = redactPrefix(json, maxDisplayedBytes, new Redactor(sensitive));
  const problem = 'the response does not match output_schema';
  throw new ToolFailure(
    'transform',
    `${problem}; ${requestCarriedOut}: ${start}`,
    [],
    `${problem}${describeMismatch(value, output, maxSteps)}`,
  );
}

/**
 * Describes the mismatch, with a quarter of the steps that validation may take.
 * @throws StepLimitExceeded on the event loop, so that a thread tries again
 */
function describeMismatch(value: unknown, output: OutputCheck, maxSteps: number): string {
  try {
    return `: ${output.describeMismatch(value, maxSteps / 4)}`;
  } catch (error) {
    if (error instanceof StepLimitExceeded && maxSteps > maxEventLoopSteps) return '';
    throw error;
  }
}

/** Creates a result from compact JSON. */
function toJsonResult(json: Buffer): ToolResult {
  const block = new JsonTextBlock(json);
  scanJson(json, maxDepth, block);
  return block.result();
}

const byteOrderMarkStart = 0xef;

/** Removes the byte order mark. */
export function stripByteOrderMark(body: Buffer): Buffer {
  return body[0] === byteOrderMarkStart && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

const closeObject = 0x7d;

/**
 * Adds the response headers to structured content as the property `response_headers`, if it is an object without such a
 * property. Otherwise returns the JSON unchanged.
 */
function addHeadersProperty(
  json: Buffer,
  { displayedHeaders }: ResponseHead,
  { declaresHeaders }: ResponseRules,
): Buffer {
  if (!declaresHeaders || json[0] !== openObject || hasPath(json, [headersProperty])) return json;
  const separator = json[1] === closeObject ? '' : ',';
  return Buffer.concat([
    Buffer.from(`{"${headersProperty}":${formatHeadersJson(displayedHeaders)}${separator}`),
    json.subarray(1),
  ]);
}

/** Adds the response headers to a result, as a text block before the other blocks. */
export function addHeadersBlock(result: ToolResult, { displayedHeaders }: ResponseHead): ToolResult {
  if (displayedHeaders.length === 0) return result;
  const text = formatHeaderLines(displayedHeaders);
  const tokens = result.tokens !== undefined && { tokens: result.tokens + estimateTokenCount(text.length) };
  return { ...result, ...tokens, content: prependBlock({ type: 'text', text }, result.content) };
}

function prependBlock(block: object, content: JsonText): JsonText {
  const start = `[${JSON.stringify(block)},`;
  return typeof content === 'string'
    ? start + content.slice(1)
    : Buffer.concat([Buffer.from(start), content.subarray(1)]);
}

/** Minimum length of bytes that are sent as a separate chunk. Decoding more than that into a string costs more. */
const minChunkBytes = 4096;
/** Returns short JSON as a string, otherwise its bytes. */
function toJsonText(json: Buffer): JsonText {
  return json.length < minChunkBytes ? json.toString('utf8') : json;
}

/** Start of content whose first block is a text. */
export const textStart = '[{"type":"text","text":"';
/** End of content that is a single text. */
const textEnd = '"}]';
const textStartBytes = Buffer.from(textStart);
const textEndBytes = Buffer.from(textEnd);

/**
 * The content of a result whose text is JSON. It is built from the escaped text that the scan of the JSON writes,
 * because `JSON.stringify` would process the same text once more and take ten times as long.
 */
class JsonTextBlock implements EscapedChunks {
  readonly #length: number;
  readonly #isShort: boolean;
  #text: string;
  /** Chunks of a long text. The first one begins with the start of the content and has space for its end. */
  readonly #chunks: Buffer[];

  constructor(json: Buffer) {
    this.#length = json.length;
    this.#isShort = json.length < minChunkBytes;
    this.#text = '';
    this.#chunks = [];
  }

  add(bytes: Buffer, length: number): void {
    // A short text is a single chunk, so no character is split.
    if (this.#isShort) this.#text = bytes.toString('utf8', 0, length);
    else if (this.#chunks.length > 0) this.#chunks.push(copyWithMargins(bytes, length, 0, 0));
    else {
      const first = copyWithMargins(bytes, length, textStartBytes.length, textEndBytes.length);
      first.set(textStartBytes);
      this.#chunks.push(first);
    }
  }

  /** Returns the result. Valid only for JSON that the scan found to be compact. */
  result(): ToolResult {
    const content = this.#isShort ? textStart + this.#text + textEnd : this.#getLongContent();
    return { content, structured: undefined, isError: false, tokens: estimateTokenCount(this.#length) };
  }

  #getLongContent(): Buffer {
    const [first, ...otherChunks] = this.#chunks as [Buffer, ...Buffer[]];
    // Most long texts are a single chunk, which becomes the content without another copy.
    if (otherChunks.length === 0) {
      first.set(textEndBytes, first.length - textEndBytes.length);
      return first;
    }
    return Buffer.concat([first.subarray(0, first.length - textEndBytes.length), ...otherChunks, textEndBytes]);
  }
}

/** Copies the first `length` bytes into a slab, with space before and after them. */
function copyWithMargins(bytes: Buffer, length: number, spaceBefore: number, spaceAfter: number): Buffer {
  const copy = takeSlab(spaceBefore + length + spaceAfter);
  bytes.copy(copy, spaceBefore, 0, length);
  return copy;
}

/** Maximum length of content with files that is parsed to find its texts. */
const maxParsedLength = 64 * 1024;

/** Estimates the tokens of a result's text from the length of its JSON, without parsing it. Files do not count. */
export function estimateResultTokens({ content }: ToolResult): number {
  const start = typeof content === 'string' ? content : content.toString('latin1', 0, textStart.length);
  if (start.startsWith(textStart)) return estimateTokenCount(content.length - textStart.length - textEnd.length);
  return content.length > maxParsedLength ? 0 : estimateContentTokens(JSON.parse(String(content)) as ContentBlock[]);
}

/** Estimates the tokens of a result's text for a model, at four characters each. Images and files do not count. */
export function estimateContentTokens(content: readonly ContentBlock[]): number {
  const characters = content.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.text.length;
    return block.type === 'resource' && 'text' in block.resource ? sum + block.resource.text.length : sum;
  }, 0);
  return estimateTokenCount(characters);
}

/**
 * Structured content of results without an output schema. Clients of revisions before 2026-07-28 accept only objects.
 * If there is none, Gemini CLI parses the first text, and rejects the result if that is JSON but not an object. Such
 * results therefore have `{"result": …}`. If a parser would change a number, the JSON is included as a string, because
 * some clients show their model nothing else.
 */

const openObject = 0x7b;
/** Matches the start of a string, an array, or a number, or a complete literal. */
const nonObjectPattern = /^\s*(?:["[\d-]|(?:true|false|null)\s*$)/;

/** Returns structured content for a JSON response. */
function createStatefulStructured(json: Buffer, generation: ProtocolGeneration): JsonText | undefined {
  return generation === 'stateless' || json[0] === openObject
    ? undefined
    : `{"result":${toExactJson(json.toString('utf8'))}}`;
}

/** Returns structured content for text blocks. The first may be JSON. The others, such as notes, become `more`. */
export function createStructuredFromTexts(
  blocks: readonly (ContentBlock | { type: 'attached_file' })[],
  generation: ProtocolGeneration,
): JsonText | undefined {
  if (generation === 'stateless') return undefined;
  const [first, ...otherTexts] = blocks.map((block) => (block.type === 'text' ? block.text : undefined));
  if (first === undefined || !isNonObjectJson(first) || otherTexts.includes(undefined)) return undefined;
  return `{"result":${toExactJson(toWellFormedJsonText(first))}${otherTexts.length > 0 ? `,"more":${JSON.stringify(otherTexts)}` : ''}}`;
}

/** Returns true if a text is JSON, but not an object. */
function isNonObjectJson(text: string): boolean {
  return nonObjectPattern.test(text) && scanJson(Buffer.from(text), maxDepth) !== undefined;
}

function toExactJson(json: string): string {
  return preservesNumbers(json) ? json : JSON.stringify(json);
}
