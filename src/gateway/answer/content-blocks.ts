import { isUtf8 } from 'node:buffer';
import type { ContentBlock } from '../../domain/mcp.ts';
import { ToolFailure } from '../../errors.ts';

/**
 * An image, a sound, or an embedded resource for everything else that is not text.
 * @throws ToolFailure malformed when what is called an image is a text: models refuse a whole conversation for that
 */
export function binaryBlock(mimeType: string, body: Buffer): ContentBlock {
  const data = body.toString('base64');
  const kind = /^(image|audio)\//.exec(mimeType)?.[1] as 'image' | 'audio' | undefined;
  if (kind && isUtf8(body) && !body.includes(0)) {
    throw new ToolFailure('malformed', `the upstream declared ${mimeType.slice(0, 100)} and answered with text`);
  }
  if (kind) return { type: kind, data, mimeType };
  return { type: 'resource', resource: { uri: 'urn:toolhost:answer', mimeType, blob: data } };
}

const maxParts = 50;

/**
 * The parts of a multipart answer (RFC 2046, 5.1), each as the block of its own media type.
 * @throws ToolFailure malformed
 */
export function multipartBlocks(body: Buffer, contentType: string): ContentBlock[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const name = boundary?.[1] ?? boundary?.[2];
  if (!name) throw new ToolFailure('malformed', 'the upstream answered with a multipart body without a boundary');
  const parts = split(body, `--${name}`);
  if (parts.length === 0 || parts.length > maxParts) {
    const found = parts.length === 0 ? 'no parts' : `more than ${maxParts} parts`;
    throw new ToolFailure(
      'malformed',
      `the upstream answered with a multipart body of ${found}; allowed: 1 to ${maxParts}`,
    );
  }
  return parts.map(partBlock);
}

/** The parts of a body; one more than allowed when there are too many. */
function split(body: Buffer, delimiter: string): Buffer[] {
  const parts: Buffer[] = [];
  let start = body.indexOf(delimiter);
  while (start >= 0 && parts.length <= maxParts) {
    const from = start + delimiter.length;
    if (body.subarray(from, from + 2).toString() === '--') break;
    const end = body.indexOf(`\r\n${delimiter}`, from);
    if (end < 0) break;
    parts.push(body.subarray(from + 2, end));
    start = end + 2;
  }
  return parts;
}

function partBlock(part: Buffer): ContentBlock {
  const hasNoHead = part.subarray(0, 2).toString() === '\r\n';
  const headEnd = hasNoHead ? -2 : part.indexOf('\r\n\r\n');
  const head = part.subarray(0, Math.max(0, headEnd)).toString('latin1');
  const content = headEnd === -1 ? part : part.subarray(headEnd + 4);
  const mimeType = /^content-type:\s*([^\s;]+)/im.exec(head)?.[1]?.toLowerCase() ?? 'text/plain';
  const isBase64 = /^content-transfer-encoding:\s*base64/im.test(head);
  const bytes = isBase64 ? Buffer.from(content.toString('latin1'), 'base64') : content;
  if (mimeType === 'text/plain') return { type: 'text', text: bytes.toString('utf8') };
  if (mimeType.startsWith('text/') || mimeType.endsWith('json') || mimeType.endsWith('xml')) {
    return { type: 'resource', resource: { uri: 'urn:toolhost:answer', mimeType, text: bytes.toString('utf8') } };
  }
  return binaryBlock(mimeType, bytes);
}

/** A text block as JSON text. `escaped` is its text, already escaped as inside a JSON string. */
export function escapedTextBlock(escaped: readonly Uint8Array[]): Buffer {
  return Buffer.concat([blockStart, ...escaped, blockEnd]);
}

const blockStart = Buffer.from('[{"type":"text","text":"');
const blockEnd = Buffer.from('"}]');
