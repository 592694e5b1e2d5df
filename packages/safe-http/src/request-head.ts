import { Buffer } from 'node:buffer';
import { OutboundError } from '@toolhost/errors/errors';
import type { Exchange } from './exchange.ts';
import { tokenPattern } from './token-pattern.ts';

/** Methods whose requests announce even an empty body (RFC 9110, 8.6). */
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH']);
const invalidPathPattern = /[^\x21-\x7e\x80-\xff]/;
const invalidValuePattern = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Formats the head of a request (RFC 9112, 3), including the empty line. `host` is that of the URL; `hopHeader` is a
 * header that every request has. @throws OutboundError if the request could be read in two ways
 */
export function formatRequestHead(exchange: Exchange, host: string, hopHeader: string): string {
  const { method, path, headers, body } = exchange;
  if (!tokenPattern.test(method)) throw createInvalidError('its method');
  if (!path.startsWith('/') || invalidPathPattern.test(path)) throw createInvalidError('its path');
  // Some servers respond to HEAD with a body, so its connection is not used again.
  const connection = method === 'HEAD' ? 'close' : 'keep-alive';
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${connection}\r\n`;
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    const value = headers[index + 1] as string;
    if (!tokenPattern.test(name) || invalidValuePattern.test(value)) throw createInvalidError('a header');
    head += `${name}: ${value}\r\n`;
  }
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  const lengthLine = length > 0 || methodsWithBody.has(method) ? `content-length: ${length}\r\n` : '';
  return `${head}${hopHeader}: 1\r\n${lengthLine}\r\n`;
}

function createInvalidError(part: string): OutboundError {
  return new OutboundError('unreachable', `the request was not sent, because HTTP does not allow ${part}`);
}
