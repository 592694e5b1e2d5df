import { recordableFailure } from '@toolhost/errors/errors';
import type { ContentBlock, JsonText } from '@toolhost/mcp-protocol/mcp';
import { maxInlineBytes } from '@toolhost/tool-config/file-names';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { decodeBodyText, isJson, isText, parseFileName } from './response-head.ts';

/** A file of a response that is too large for the result and gets its own URL. */
export type ResultFile = {
  /** Undefined if the upstream specifies none. */
  name: string | undefined;
  mediaType: string;
  bytes: Uint8Array;
};

/** Placeholder in the content of a result for the file with this index, until the file has a URL. */
type FilePlaceholder = { type: 'attached_file'; file: number };

/**
 * Decides which files of one response stay in its result: those of the first 256 KiB. `maxCharacters` is the limit of
 * the result's text. It also applies to files other than images and audio, because clients that cannot handle them pass
 * their base64 to the model as text.
 */
export class AttachmentCollector {
  /** Files that are moved out of the result. */
  readonly attached: ResultFile[] = [];
  readonly #maxCharacters: number;
  #remainingBytes = maxInlineBytes;

  constructor(maxCharacters: number | undefined) {
    this.#maxCharacters = maxCharacters ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the placeholder for a file that is moved out of the result. Returns undefined for a file that stays. */
  attachIfLarge(file: ResultFile): FilePlaceholder | undefined {
    const { length } = file.bytes;
    const isMedia = isModelImage(file.mediaType) || file.mediaType.startsWith('audio/');
    const characters = isMedia ? 0 : Math.ceil(length / 3) * 4;
    if (length <= this.#remainingBytes && characters <= this.#maxCharacters) {
      this.#remainingBytes -= length;
      return undefined;
    }
    this.attached.push(file);
    return { type: 'attached_file', file: this.attached.length - 1 };
  }
}

/**
 * Replaces the file placeholders in the content of a result, which is JSON text, with other blocks. A text cannot pose
 * as a placeholder, because its quotation marks are escaped.
 */
export function replacePlaceholders(content: JsonText, blocks: readonly ContentBlock[][]): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const chunks: Buffer[] = [];
  let offset = 0;
  for (const [file, fileBlocks] of blocks.entries()) {
    const placeholder = JSON.stringify({ type: 'attached_file', file } satisfies FilePlaceholder);
    const position = bytes.indexOf(placeholder, offset);
    chunks.push(bytes.subarray(offset, position), Buffer.from(JSON.stringify(fileBlocks).slice(1, -1)));
    offset = position + placeholder.length;
  }
  return Buffer.concat([...chunks, bytes.subarray(offset)]);
}

/** A content block of a result, before its large files have URLs. */
export type ResultBlock = ContentBlock | FilePlaceholder;

/**
 * Returns blocks for bytes that are not text: an image, audio, or an embedded resource for everything else. The file
 * name ends the resource's URI and is repeated in its metadata. A text block comes first, because some clients read
 * only the first block, and others only text. A large file is attached to the result, with a text that contains its
 * URL.
 */
export function createFileBlocks(
  declaredType: string,
  body: Buffer,
  fileName: string | undefined,
  attachments: AttachmentCollector,
): ResultBlock[] {
  const mimeType = getFileType(declaredType, body);
  const placeholder = attachments.attachIfLarge({ name: fileName, mediaType: mimeType, bytes: body });
  if (placeholder) return [placeholder];
  const text = formatFileDescription(fileName, mimeType, body.length);
  return [{ type: 'text', text }, createFileBlock(mimeType, body.toString('base64'), fileName)];
}

function formatFileDescription(fileName: string | undefined, mimeType: string, bytes: number): string {
  const description =
    fileName === undefined ? `${mimeType}, ${bytes} bytes` : `${fileName} (${mimeType}, ${bytes} bytes)`;
  return `The response is a file: ${description}.`;
}

function createFileBlock(mimeType: string, data: string, fileName: string | undefined): ContentBlock {
  const meta = createFileMeta(fileName);
  if (isModelImage(mimeType)) return { type: 'image', data, mimeType, ...meta };
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType, ...meta };
  return { type: 'resource', resource: { uri: getFileUri(fileName), mimeType, blob: data, ...meta } };
}

/** Images that models accept, by their first bytes (WHATWG MIME Sniffing, 6.1). */
const imageTypes: readonly (readonly [mimeType: string, start: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF.{4}WEBPVP/s],
];
const binaryType = 'application/octet-stream';
/** Maximum length of a media type that is passed on, in characters. */
const maxTypeLength = 100;

function isModelImage(mimeType: string): boolean {
  return imageTypes.some(([type]) => type === mimeType);
}

/**
 * Returns the media type of a file. For images that models accept, the bytes decide, because a wrong label makes all
 * later turns of a conversation fail.
 */
function getFileType(declared: string, body: Buffer): string {
  const start = body.toString('latin1', 0, 16);
  const image = imageTypes.find(([, pattern]) => pattern.test(start));
  if (image) return image[0];
  return declared === '' || declared.length > maxTypeLength || isModelImage(declared) || declared === 'image/jpg'
    ? binaryType
    : declared;
}

const responseUri = 'urn:toolhost:answer';

function getFileUri(fileName: string | undefined): string {
  return fileName === undefined ? responseUri : `${responseUri}/${encodeURIComponent(fileName)}`;
}

function createFileMeta(fileName: string | undefined): { _meta?: { 'toolhost/file_name': string } } {
  return fileName === undefined ? {} : { _meta: { 'toolhost/file_name': fileName } };
}

const maxParts = 50;

/**
 * Returns the parts of a multipart response (RFC 2046, 5.1), each as the blocks of its own media type.
 * @throws ToolFailure malformed
 */
export function createMultipartBlocks(
  body: Buffer,
  contentType: string,
  attachments: AttachmentCollector,
): ResultBlock[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const name = boundary?.[1] ?? boundary?.[2];
  if (!name) throw recordableFailure('malformed', 'the upstream returned a multipart body without a boundary');
  const parts = splitParts(body, `--${name}`);
  if (parts.length === 0 || parts.length > maxParts) {
    const count = parts.length === 0 ? 'no parts' : `more than ${maxParts} parts`;
    throw recordableFailure(
      'malformed',
      `the upstream returned a multipart body with ${count}; allowed: 1 to ${maxParts}`,
    );
  }
  return parts.flatMap((part) => createPartBlocks(part, attachments));
}

/** Splits a body into its parts. Returns one more than `maxParts` if there are too many. */
function splitParts(body: Buffer, delimiter: string): Buffer[] {
  const parts: Buffer[] = [];
  let start = body.indexOf(delimiter);
  while (start >= 0 && parts.length <= maxParts) {
    const bodyStart = start + delimiter.length;
    if (body.subarray(bodyStart, bodyStart + 2).toString() === '--') break;
    const end = body.indexOf(`\r\n${delimiter}`, bodyStart);
    if (end < 0) break;
    parts.push(body.subarray(bodyStart + 2, end));
    start = end + 2;
  }
  return parts;
}

function createPartBlocks(part: Buffer, attachments: AttachmentCollector): ResultBlock[] {
  const hasNoHeaders = part.subarray(0, 2).toString() === '\r\n';
  // Without headers, a part begins with the second half of the blank line.
  const headersEnd = hasNoHeaders ? -2 : part.indexOf('\r\n\r\n');
  const partHeaders = part.subarray(0, Math.max(0, headersEnd)).toString('latin1', 0, maxPartHeaderBytes);
  const content = headersEnd === -1 ? part : part.subarray(headersEnd + 4);
  const contentType = /^content-type:\s*([^\r\n]+)/im.exec(partHeaders)?.[1] ?? 'text/plain';
  const mimeType = parseMediaType(contentType);
  const fileName = parseFileName(/^content-disposition:\s*([^\r\n]{1,4096})/im.exec(partHeaders)?.[1] ?? '');
  const isBase64 = /^content-transfer-encoding:\s*base64/im.test(partHeaders);
  const bytes = isBase64 ? Buffer.from(content.toString('latin1'), 'base64') : content;
  if (mimeType === 'text/plain') return [{ type: 'text', text: decodeBodyText(bytes, contentType) }];
  if (isJson(mimeType) || isText(mimeType, contentType, bytes)) {
    const text = decodeBodyText(bytes, contentType);
    const description: ContentBlock = { type: 'text', text: formatFileDescription(fileName, mimeType, bytes.length) };
    return [
      description,
      { type: 'resource', resource: { uri: getFileUri(fileName), mimeType, text, ...createFileMeta(fileName) } },
    ];
  }
  return createFileBlocks(mimeType, bytes, fileName, attachments);
}

/** Maximum length of a part's headers that is read, in bytes. */
const maxPartHeaderBytes = 16_384;
