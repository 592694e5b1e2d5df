import { isUtf8 } from 'node:buffer';
import { knownMediaType } from '../../domain/http/known-media-type.ts';
import { mediaTypeOf } from '../../domain/http/media-type.ts';
import type { ContentBlock } from '../../domain/mcp.ts';
import { plainFailure, ToolFailure } from '../../errors.ts';
import type { AttachedBlock, AttachedFiles } from './attached-files.ts';
import { fileNameIn } from './file-name.ts';
import { isJson, isText, textOfBody } from './text-body.ts';

/** A block of the content of an answer, before its large files have addresses. */
export type AnswerBlock = ContentBlock | AttachedBlock;

/**
 * An image, a sound, or an embedded resource for everything else that is not text. The name of a file ends the URI of
 * its resource, and is in its metadata. A large file is attached to the result instead.
 * @throws ToolFailure malformed when what is called an image is a text: models refuse a whole conversation for that
 */
export function binaryBlock(
  mimeType: string,
  body: Buffer,
  fileName: string | undefined,
  attached: AttachedFiles,
): AnswerBlock {
  const kind = /^(image|audio)\//.exec(mimeType)?.[1] as 'image' | 'audio' | undefined;
  if (kind && isUtf8(body) && !body.includes(0)) {
    const said = (type: string) => `the upstream declared ${type} and answered with text`;
    throw new ToolFailure('malformed', said(mimeType.slice(0, 100)), [], said(knownMediaType(mimeType)));
  }
  const large = attached.take({ name: fileName, mediaType: mimeType, bytes: body });
  if (large) return large;
  const data = body.toString('base64');
  if (kind) return { type: kind, data, mimeType, ...metaOf(fileName) };
  return { type: 'resource', resource: { uri: uriOf(fileName), mimeType, blob: data, ...metaOf(fileName) } };
}

const answerUri = 'urn:toolhost:answer';

function uriOf(fileName: string | undefined): string {
  return fileName === undefined ? answerUri : `${answerUri}/${encodeURIComponent(fileName)}`;
}

function metaOf(fileName: string | undefined): { _meta?: { 'toolhost/file_name': string } } {
  return fileName === undefined ? {} : { _meta: { 'toolhost/file_name': fileName } };
}

const maxParts = 50;

/**
 * The parts of a multipart answer (RFC 2046, 5.1), each as the block of its own media type.
 * @throws ToolFailure malformed
 */
export function multipartBlocks(body: Buffer, contentType: string, attached: AttachedFiles): AnswerBlock[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const name = boundary?.[1] ?? boundary?.[2];
  if (!name) throw plainFailure('malformed', 'the upstream answered with a multipart body without a boundary');
  const parts = split(body, `--${name}`);
  if (parts.length === 0 || parts.length > maxParts) {
    const found = parts.length === 0 ? 'no parts' : `more than ${maxParts} parts`;
    throw plainFailure(
      'malformed',
      `the upstream answered with a multipart body of ${found}; allowed: 1 to ${maxParts}`,
    );
  }
  return parts.map((part) => partBlock(part, attached));
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

function partBlock(part: Buffer, attached: AttachedFiles): AnswerBlock {
  const hasNoHead = part.subarray(0, 2).toString() === '\r\n';
  const headEnd = hasNoHead ? -2 : part.indexOf('\r\n\r\n');
  const head = part.subarray(0, Math.max(0, headEnd)).toString('latin1', 0, longestHead);
  const content = headEnd === -1 ? part : part.subarray(headEnd + 4);
  const contentType = /^content-type:\s*([^\r\n]+)/im.exec(head)?.[1] ?? 'text/plain';
  const mimeType = mediaTypeOf(contentType);
  const fileName = fileNameIn(/^content-disposition:\s*([^\r\n]{1,4096})/im.exec(head)?.[1] ?? '');
  const isBase64 = /^content-transfer-encoding:\s*base64/im.test(head);
  const bytes = isBase64 ? Buffer.from(content.toString('latin1'), 'base64') : content;
  if (mimeType === 'text/plain') return { type: 'text', text: textOfBody(bytes, contentType) };
  if (isJson(mimeType) || isText(mimeType, contentType, bytes)) {
    const text = textOfBody(bytes, contentType);
    return { type: 'resource', resource: { uri: uriOf(fileName), mimeType, text, ...metaOf(fileName) } };
  }
  return binaryBlock(mimeType, bytes, fileName, attached);
}

/** Longest head of a part that is read, in bytes. */
const longestHead = 16_384;
