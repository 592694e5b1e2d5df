import { hasPart } from '../../domain/json/response-transform.ts';
import type { JsonText, ToolResult } from '../../domain/mcp.ts';
import { type AnswerHead, headerLines, headersJson } from './answer-head.ts';
import { headersProperty, type Reading } from './reading.ts';

const openObject = 0x7b;
const closeObject = 0x7d;

/**
 * Structured content with the headers of the answer as the property `response_headers`, where that fits its shape: an
 * object without such a property. Otherwise the same JSON.
 */
export function withHeaderSlot(json: Buffer, { shown }: AnswerHead, { hasHeaderSlot }: Reading): Buffer {
  if (shown.length === 0 || !hasHeaderSlot || json[0] !== openObject || hasPart(json, [headersProperty])) return json;
  const rest = json[1] === closeObject ? '' : ',';
  return Buffer.concat([Buffer.from(`{"${headersProperty}":${headersJson(shown)}${rest}`), json.subarray(1)]);
}

/** A result with the headers of the answer as a text block before its others. */
export function withHeaders(result: ToolResult, { shown }: AnswerHead): ToolResult {
  if (shown.length === 0) return result;
  return { ...result, content: withFirst({ type: 'text', text: headerLines(shown) }, result.content) };
}

function withFirst(block: object, content: JsonText): JsonText {
  const start = `[${JSON.stringify(block)},`;
  return typeof content === 'string'
    ? start + content.slice(1)
    : Buffer.concat([Buffer.from(start), content.subarray(1)]);
}
