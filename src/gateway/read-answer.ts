import { isUtf8 } from 'node:buffer';
import { compactJson, isDeeperThan, parseJson } from '../domain/json.ts';
import { scanJson } from '../domain/json-scan.ts';
import type { ContentBlock, ToolResult } from '../domain/mcp.ts';
import { type DotPath, extract, keepFields } from '../domain/response-transform.ts';
import { ToolFailure } from '../errors.ts';
import { STATUS_CODES } from '../http.ts';
import type { Answer } from '../outbound/door.ts';
import { binaryBlock, escapedTextBlock, multipartBlocks } from './content-blocks.ts';

/** How the answer of a tool is read; compiled from its configuration. */
export type Reading = {
  transform: DotPath;
  fields: readonly DotPath[] | undefined;
  /** Whether the tool sends a body without `Prefer`, which explains an empty answer. */
  hintPrefer: boolean;
  /** Judges structured content by the tool's output schema. */
  fits: ((value: unknown, mostSteps: number) => boolean) | undefined;
};

const maxDepth = 1000;
/** From this length on, making text of bytes costs more than writing them apart from the rest of the answer. */
const longBytes = 4096;
const maxErrorBytes = 8 * 1024;

/**
 * Turns what the upstream answered into the tool result (behaviour: "The tool result").
 * `redact` takes the credentials of the call out of text that the upstream may have echoed.
 * @throws ToolFailure upstream_status, redirect, malformed, transform
 */
export function readAnswer(answer: Answer, reading: Reading, redact: (text: string) => string): ToolResult {
  const { status } = answer;
  if (status >= 300 && status < 400) {
    throw new ToolFailure(
      'redirect',
      `${redact(statusText(answer))}: the upstream redirects to another URL; redirects are not followed`,
    );
  }
  if (status >= 400) throw new ToolFailure('upstream_status', errorText(answer, redact));
  if (status === 204 || answer.body.length === 0) return emptyResult(answer, reading);
  const type = mediaType(answer);
  if (isJson(type)) return jsonResult(answer.body, reading);
  if (reading.transform.length > 0) {
    throw new ToolFailure(
      'transform',
      `response_transform needs a JSON answer; the upstream answered with ${type || 'no media type'}`,
    );
  }
  if (isText(type)) return blocks([{ type: 'text', text: decoded(answer) }]);
  if (type.startsWith('multipart/'))
    return blocks(multipartBlocks(answer.body, String(answer.headers['content-type'])));
  if (type === '' && isUtf8(answer.body)) return untyped(answer.body, reading);
  return blocks([binaryBlock(type || 'application/octet-stream', answer.body)]);
}

function mediaType(answer: Answer): string {
  const type = String(answer.headers['content-type'] ?? '');
  if (type === 'application/json') return type;
  return type.split(';')[0]?.trim().toLowerCase() ?? '';
}

export function isJson(type: string): boolean {
  return type === 'application/json' || type.endsWith('+json') || type === 'text/json';
}

export function isText(type: string): boolean {
  return (
    type.startsWith('text/') || type === 'application/xml' || type.endsWith('+xml') || type === 'application/javascript'
  );
}

/** The text of a body in the character set that it claims, UTF-8 when it claims none that is known. */
function decoded(answer: Answer): string {
  const charset = /;\s*charset="?([\w.:-]{1,40})/i.exec(String(answer.headers['content-type']))?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(charset).decode(answer.body);
  } catch {
    return answer.body.toString('utf8');
  }
}

function statusText(answer: Answer): string {
  const reason = answer.statusText || STATUS_CODES[answer.status] || '';
  return `HTTP ${answer.status}${reason ? ` ${reason.slice(0, 100)}` : ''}`;
}

function errorText(answer: Answer, redact: (text: string) => string): string {
  const retry = answer.headers['retry-after'];
  const retryText = typeof retry === 'string' ? `\nRetry-After: ${redact(retry.slice(0, 100))}` : '';
  const body = isUtf8(answer.body) ? cut(redact(answer.body.toString('utf8'))) : '';
  return `${redact(statusText(answer))}${retryText}${body && `\n${body}`}`;
}

/** The first 8 KiB of a text, whole characters only. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxErrorBytes) return text;
  let end = maxErrorBytes;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.toString('utf8', 0, end)}\n… (${bytes.length} bytes in all)`;
}

function emptyResult(answer: Answer, reading: Reading): ToolResult {
  const hint = reading.hintPrefer
    ? ' (the header "Prefer: return=representation" asks some upstreams for the written row)'
    : '';
  if (reading.transform.length > 0) {
    throw new ToolFailure(
      'transform',
      `response_transform needs a JSON answer; ${statusText(answer)} came without a body${hint}`,
    );
  }
  return blocks([
    { type: 'text', text: `${statusText(answer).slice(5)}: the upstream answered without a body${hint}` },
  ]);
}

function blocks(content: ContentBlock[]): ToolResult {
  return { content: JSON.stringify(content), structured: undefined, isError: false };
}

/** No media type at all: JSON when it is, text otherwise. */
function untyped(body: Buffer, reading: Reading): ToolResult {
  try {
    return jsonResult(body, reading);
  } catch (error) {
    if (error instanceof ToolFailure && error.outcome !== 'malformed') throw error;
    return blocks([{ type: 'text', text: body.toString('utf8') }]);
  }
}

/** An answer that is passed on whole is only checked to be JSON; its text is what goes out. */
function jsonResult(body: Buffer, reading: Reading): ToolResult {
  if (!isUtf8(body)) throw new ToolFailure('malformed', 'the upstream answered with JSON that is not valid UTF-8');
  const bytes = hasByteOrderMark(body) ? body.subarray(3) : body;
  const whole = reading.transform.length === 0 && !reading.fields;
  const escaped: Uint8Array[] | undefined = whole && !reading.fits && bytes.length >= longBytes ? [] : undefined;
  const scan = scanJson(bytes, maxDepth, escaped);
  if (!scan) throw new ToolFailure('malformed', 'the upstream answered with something that is not valid JSON');
  if (scan.depth > maxDepth) throw new ToolFailure('malformed', `the answer is nested deeper than ${maxDepth} levels`);
  if (escaped && scan.isCompact) return { content: escapedTextBlock(escaped), structured: bytes, isError: false };
  const text = bytes.toString('utf8');
  if (whole && !reading.fits) return jsonText(scan.isCompact ? text : compactJson(text));
  const value = parseJson(text);
  const chosen = whole ? value : chosenPart(value, reading);
  const json = whole ? compactJson(text) : JSON.stringify(chosen);
  if (reading.fits && !reading.fits(chosen, 1e9)) {
    throw new ToolFailure('transform', `the answer does not fit output_schema: ${json.slice(0, 1000)}`);
  }
  return jsonText(json);
}

function hasByteOrderMark(body: Buffer): boolean {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
}

function jsonText(json: string): ToolResult {
  return { content: `[{"type":"text","text":${JSON.stringify(json)}}]`, structured: json, isError: false };
}

function chosenPart(value: unknown, reading: Reading): unknown {
  const part = extract(value, reading.transform);
  const kept = reading.fields ? keepFields(part, reading.fields) : part;
  if (isDeeperThan(kept, maxDepth))
    throw new ToolFailure('malformed', `the answer is nested deeper than ${maxDepth} levels`);
  return kept;
}
