import { isUtf8 } from 'node:buffer';
import { mediaTypeOf } from '../../domain/http/media-type.ts';
import { compactJson } from '../../domain/json/json-cursor.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { keepFields } from '../../domain/json/response-fields.ts';
import { findPart } from '../../domain/json/response-transform.ts';
import type { ContentBlock, ToolResult } from '../../domain/mcp.ts';
import { ToolFailure } from '../../errors.ts';
import { binaryBlock, escapedTextBlock, multipartBlocks } from './content-blocks.ts';
import type { Reading } from './reading.ts';

const maxDepth = 1000;
/**
 * From this length on, decoding bytes into text costs more than writing them separately from the rest of the answer.
 */
const longBytes = 4096;

/**
 * Turns the body of a successful answer into a result. Time is proportional to the body, except for the check of
 * structured content, which may take `mostSteps`.
 * @throws ToolFailure malformed, transform
 * @throws TooMuchWork
 */
export function readContent(body: Buffer, contentType: string, reading: Reading, mostSteps: number): ToolResult {
  const type = mediaTypeOf(contentType);
  if (isJson(type)) return jsonResult(body, reading, mostSteps);
  if (reading.transform.length > 0) {
    throw new ToolFailure(
      'transform',
      `response_transform needs a JSON answer; the upstream answered with ${type || 'no media type'}`,
    );
  }
  if (isText(type)) return blocks([{ type: 'text', text: decoded(body, contentType) }]);
  if (type.startsWith('multipart/')) return blocks(multipartBlocks(body, contentType));
  if (type === '' && isUtf8(body)) return untyped(body, reading, mostSteps);
  return blocks([binaryBlock(type || 'application/octet-stream', body)]);
}

export function isJson(type: string): boolean {
  return type === 'application/json' || type.endsWith('+json') || type === 'text/json';
}

export function isText(type: string): boolean {
  return (
    type.startsWith('text/') || type === 'application/xml' || type.endsWith('+xml') || type === 'application/javascript'
  );
}

export function blocks(content: ContentBlock[]): ToolResult {
  return { content: JSON.stringify(content), structured: undefined, isError: false };
}

/** The text of a body in the character set that it claims, UTF-8 when it claims none that is known. */
function decoded(body: Buffer, contentType: string): string {
  const charset = /;\s*charset="?([\w.:-]{1,40})/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return body.toString('utf8');
  }
}

/** Content without a media type: JSON if it parses, otherwise text. */
function untyped(body: Buffer, reading: Reading, mostSteps: number): ToolResult {
  try {
    return jsonResult(body, reading, mostSteps);
  } catch (error) {
    if (!(error instanceof ToolFailure) || error.outcome !== 'malformed') throw error;
    return blocks([{ type: 'text', text: body.toString('utf8') }]);
  }
}

/** JSON is checked and cut, but never parsed and written again, so it is passed on unchanged. */
function jsonResult(body: Buffer, reading: Reading, mostSteps: number): ToolResult {
  if (!isUtf8(body)) throw new ToolFailure('malformed', 'the upstream answered with JSON that is not valid UTF-8');
  const bytes = hasByteOrderMark(body) ? body.subarray(3) : body;
  const isWhole = reading.transform.length === 0 && !reading.fields;
  const escaped: Uint8Array[] | undefined = isWhole && bytes.length >= longBytes ? [] : undefined;
  const scan = scanJson(bytes, maxDepth, escaped);
  if (!scan) throw new ToolFailure('malformed', 'the upstream answered with something that is not valid JSON');
  if (scan.depth > maxDepth) throw new ToolFailure('malformed', `the answer is nested deeper than ${maxDepth} levels`);
  const chosen = isWhole && scan.isCompact ? bytes : chosenPart(bytes, reading);
  if (reading.fits) judge(chosen, reading.fits, mostSteps);
  if (escaped && scan.isCompact) return { content: escapedTextBlock(escaped), structured: bytes, isError: false };
  return jsonOf(chosen);
}

/** Compact JSON: the part named by `response_transform`, with only the fields to keep. */
function chosenPart(bytes: Buffer, { transform, fields }: Reading): Buffer {
  const { from, end } = transform.length === 0 ? { from: 0, end: bytes.length } : findPart(bytes, transform);
  const part = bytes.subarray(from, end);
  return fields ? keepFields(part, fields) : compactJson(part);
}

function judge(json: Buffer, fits: NonNullable<Reading['fits']>, mostSteps: number): void {
  if (fits(JSON.parse(json.toString('utf8')), mostSteps)) return;
  const start = json.toString('utf8', 0, 4000).slice(0, 1000);
  throw new ToolFailure('transform', `the answer does not fit output_schema: ${start}`);
}

function jsonOf(json: Buffer): ToolResult {
  if (json.length < longBytes) {
    const text = json.toString('utf8');
    return { content: `[{"type":"text","text":${JSON.stringify(text)}}]`, structured: text, isError: false };
  }
  const escaped: Uint8Array[] = [];
  scanJson(json, maxDepth, escaped);
  return { content: escapedTextBlock(escaped), structured: json, isError: false };
}

function hasByteOrderMark(body: Buffer): boolean {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
}
