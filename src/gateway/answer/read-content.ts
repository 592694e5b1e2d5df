import { isUtf8 } from 'node:buffer';
import { redact, redactor } from '../../domain/credentials/redactor.ts';
import { knownMediaType } from '../../domain/http/known-media-type.ts';
import { mediaTypeOf } from '../../domain/http/media-type.ts';
import { compactJson } from '../../domain/json/json-cursor.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { keepFields } from '../../domain/json/response-fields.ts';
import { findPart } from '../../domain/json/response-transform.ts';
import { wellFormedJson } from '../../domain/json/well-formed-json.ts';
import type { ToolResult } from '../../domain/mcp.ts';
import { isDoneAgain } from '../../domain/work/do-in-turn.ts';
import { TooMuchWork } from '../../domain/work/steps.ts';
import { plainFailure, ToolFailure } from '../../errors.ts';
import type { OutputCheck } from '../arguments/validate-arguments.ts';
import type { AnswerHead } from './answer-head.ts';
import { AttachedFiles } from './attached-files.ts';
import { type AnswerBlock, binaryBlock, multipartBlocks } from './content-blocks.ts';
import type { CutResult } from './fit-answer.ts';
import { JsonTextBlock } from './json-text-block.ts';
import { carriedOut, fieldForJson, type Reading } from './reading.ts';
import { redactedStart } from './redact.ts';
import { isJson, isText, jsonInUtf8, textOfBody } from './text-body.ts';
import { withHeaderSlot, withHeaders } from './with-headers.ts';

/** With types such as application/vnd.github.raw+json an API sends a file as it is, which is seldom JSON. */
const rawSuffix = '.raw+json';
const maxDepth = 1000;

/**
 * Turns the body of a successful answer into a result. Time is proportional to the body, except for the check of
 * structured content, which may take `mostSteps`.
 * @throws ToolFailure malformed, transform
 * @throws TooMuchWork
 */
export function readContent(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): CutResult {
  try {
    return contentOf(body, head, reading, mostSteps);
  } catch (error) {
    throw error instanceof ToolFailure ? withoutCredentials(error, head) : error;
  }
}

/** A failure may name what the upstream wrote. */
function withoutCredentials({ outcome, message, problems, forRecord }: ToolFailure, { sensitive }: AnswerHead) {
  return new ToolFailure(outcome, redact(message, sensitive), problems, forRecord);
}

function contentOf(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): CutResult {
  const { contentType, fileName } = head;
  const type = mediaTypeOf(contentType);
  const isRaw = type.endsWith(rawSuffix);
  if (isJson(type) && !isRaw) return jsonResult(jsonInUtf8(body, contentType), head, reading, mostSteps);
  if (isRaw && isUtf8(body)) return perhapsJson(body, head, reading, mostSteps);
  const field = fieldForJson(reading);
  if (type === '' && isUtf8(body) && field !== 'response_transform') return perhapsJson(body, head, reading, mostSteps);
  if (field !== undefined) {
    throw new ToolFailure(
      'transform',
      `${field} needs a JSON answer; the upstream answered with ${type || 'no media type'}; ${carriedOut}`,
      [],
      `${field} needs a JSON answer; the upstream answered with ${knownMediaType(contentType)}`,
    );
  }
  if (isText(type, contentType, body)) return blocks([{ type: 'text', text: textOfBody(body, contentType) }], head);
  const files = new AttachedFiles(reading.mostCharacters);
  const content = type.startsWith('multipart/')
    ? multipartBlocks(body, contentType, files)
    : [binaryBlock(type || 'application/octet-stream', body, fileName, files)];
  return files.list.length === 0 ? blocks(content, head) : { ...blocks(content, head), files: files.list };
}

function blocks(content: AnswerBlock[], head: AnswerHead): ToolResult {
  return withHeaders({ content: JSON.stringify(content), structured: undefined, isError: false }, head);
}

/** Content without a media type or with one of raw files: JSON if it parses, otherwise text. */
function perhapsJson(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): ToolResult {
  try {
    return jsonResult(body, head, reading, mostSteps);
  } catch (error) {
    if (!(error instanceof ToolFailure) || error.outcome !== 'malformed' || fieldForJson(reading)) throw error;
    return blocks([{ type: 'text', text: body.toString('utf8') }], head);
  }
}

/**
 * JSON is checked and cut, but never parsed and written again, so it is passed on unchanged, except for what parsers of
 * clients refuse.
 */
function jsonResult(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): ToolResult {
  if (!isUtf8(body)) throw plainFailure('malformed', 'the upstream answered with JSON that is not valid UTF-8');
  const bytes = wellFormedJson(hasByteOrderMark(body) ? body.subarray(3) : body);
  const isWhole = reading.transform.length === 0 && !reading.fields;
  const block = isWhole ? new JsonTextBlock(bytes) : undefined;
  const scan = scanJson(bytes, maxDepth, block);
  if (!scan) throw plainFailure('malformed', 'the upstream answered with something that is not valid JSON');
  if (scan.depth > maxDepth) throw plainFailure('malformed', `the answer is nested deeper than ${maxDepth} levels`);
  const chosen = isWhole && scan.isCompact ? bytes : chosenPart(bytes, reading);
  const structured = withHeaderSlot(chosen, head, reading);
  if (reading.output) checkOutput(structured, head, reading.output, mostSteps);
  const result = block && scan.isCompact ? block.result() : resultOf(chosen);
  return head.shown.length === 0 ? result : withHeaders({ ...result, structured }, head);
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
  const start = redactedStart(json, shownBytes, redactor(sensitive));
  const sentence = 'the answer does not fit output_schema';
  throw new ToolFailure('transform', `${sentence}: ${start}`, [], `${sentence}${misfitOf(value, output, mostSteps)}`);
}

/** Finding the fault may take part of the steps that the verdict may take. @throws TooMuchWork when that is done again */
function misfitOf(value: unknown, output: OutputCheck, mostSteps: number): string {
  try {
    return `: ${output.misfit(value, mostSteps / 4)}`;
  } catch (error) {
    if (error instanceof TooMuchWork && !isDoneAgain(mostSteps)) return '';
    throw error;
  }
}

/** A result of JSON that is compact. */
function resultOf(json: Buffer): ToolResult {
  const block = new JsonTextBlock(json);
  scanJson(json, maxDepth, block);
  return block.result();
}

function hasByteOrderMark(body: Buffer): boolean {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
}
