import { createHash } from 'node:crypto';
import { quotedName } from '../../domain/http/percent-encoding.ts';
import type { FormPart } from '../../domain/request/upstream-request.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineEnd = Buffer.from('\r\n');

/** A body of `multipart/form-data` (RFC 7578) with the boundary that its Content-Type must name. */
export function multipartBody(parts: readonly FormPart[]): { contentType: string; body: Buffer } {
  const heads = headsOf(parts);
  const values = parts.map(bytesOf);
  // No value can contain the hash of all of them, so the boundary occurs in none.
  const digest = createHash('sha256');
  for (const value of values) digest.update(value);
  const boundary = `toolhost-${digest.digest('hex')}`;
  const delimiter = Buffer.from(`--${boundary}\r\n`);
  const pieces = values.flatMap((value, i) => [delimiter, heads[i] as Buffer, value, lineEnd]);
  const body = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  return { contentType: `multipart/form-data; boundary=${boundary}`, body };
}

/** The headers of each part. Thousands of plain fields may have one name, which is written once. */
function headsOf(parts: readonly FormPart[]): Buffer[] {
  const ofNames = new Map<string, Buffer>();
  return parts.map((part) => {
    const head = (part[2] === undefined ? ofNames.get(part[0]) : undefined) ?? headOf(part);
    if (part[2] === undefined) ofNames.set(part[0], head);
    return head;
  });
}

/** The headers of a part. */
function headOf([name, , { fileName, mediaType } = {}]: FormPart): Buffer {
  const file = fileName === undefined ? '' : `; filename="${quotedName(fileName)}"`;
  const type = mediaType === undefined ? '' : `Content-Type: ${mediaType}\r\n`;
  return Buffer.from(`Content-Disposition: form-data; name="${quotedName(name)}"${file}\r\n${type}\r\n`);
}

/** Only lines of a plain text field are rewritten; a file is sent as it is. */
function bytesOf([, value, of]: FormPart): Buffer {
  if (typeof value !== 'string') return value;
  return of?.fileName === undefined ? withLineEnds(Buffer.from(value)) : Buffer.from(value);
}

/** Lines of a text field end in CRLF. */
function withLineEnds(bytes: Buffer): Buffer {
  if (!bytes.includes(lineFeed) && !bytes.includes(carriageReturn)) return bytes;
  const written = Buffer.allocUnsafe(2 * bytes.length);
  let to = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte !== lineFeed && byte !== carriageReturn) {
      written[to++] = byte;
      continue;
    }
    written[to++] = carriageReturn;
    written[to++] = lineFeed;
    if (byte === carriageReturn && bytes[at + 1] === lineFeed) at++;
  }
  return written.subarray(0, to);
}
