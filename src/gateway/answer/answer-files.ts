import { mostInlineBytes } from '../../domain/files/file-names.ts';
import { mediaTypeOf } from '../../domain/http/headers.ts';
import type { ContentBlock, JsonText } from '../../domain/mcp.ts';
import { plainFailure } from '../../errors.ts';
import { fileNameIn, isJson, isText, textOfBody } from './answer-head.ts';

/** A file of a response that is too large for the result and gets its own URL. */
export type AnswerFile = {
  /** Undefined if the upstream specifies none. */
  name: string | undefined;
  mediaType: string;
  bytes: Uint8Array;
};

/** Placeholder in the content of a result for the file with this index, until the file has a URL. */
type AttachedBlock = { type: 'attached_file'; file: number };

/**
 * Decides which files of one response stay in its result: those of the first 256 KiB. `mostCharacters` is the limit of
 * the result's text. It also applies to files other than images and audio, because clients that cannot handle them pass
 * their base64 to the model as text.
 */
export class AttachedFiles {
  readonly list: AnswerFile[] = [];
  readonly #mostCharacters: number;
  #left = mostInlineBytes;

  constructor(mostCharacters: number | undefined) {
    this.#mostCharacters = mostCharacters ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the placeholder for a file that is moved out of the result. Returns undefined for a file that stays. */
  take(file: AnswerFile): AttachedBlock | undefined {
    const { length } = file.bytes;
    const isMedia = isModelImage(file.mediaType) || file.mediaType.startsWith('audio/');
    const characters = isMedia ? 0 : Math.ceil(length / 3) * 4;
    if (length <= this.#left && characters <= this.#mostCharacters) {
      this.#left -= length;
      return undefined;
    }
    this.list.push(file);
    return { type: 'attached_file', file: this.list.length - 1 };
  }
}

/**
 * Replaces the file placeholders in the content of a result, which is JSON text, with other blocks. A text cannot pose
 * as a placeholder, because its quotation marks are escaped.
 */
export function withBlocks(content: JsonText, blocks: readonly ContentBlock[][]): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const pieces: Buffer[] = [];
  let from = 0;
  for (const [file, list] of blocks.entries()) {
    const stand = JSON.stringify({ type: 'attached_file', file } satisfies AttachedBlock);
    const at = bytes.indexOf(stand, from);
    pieces.push(bytes.subarray(from, at), Buffer.from(JSON.stringify(list).slice(1, -1)));
    from = at + stand.length;
  }
  return Buffer.concat([...pieces, bytes.subarray(from)]);
}

/** A content block of a result, before its large files have URLs. */
export type AnswerBlock = ContentBlock | AttachedBlock;

/**
 * Returns blocks for bytes that are not text: an image, audio, or an embedded resource for everything else. The file
 * name ends the resource's URI and is repeated in its metadata. A text block comes first, because some clients read
 * only the first block, and others only text. A large file is attached to the result, with a text that contains its
 * URL.
 */
export function fileBlocks(
  declaredType: string,
  body: Buffer,
  fileName: string | undefined,
  attached: AttachedFiles,
): AnswerBlock[] {
  const mimeType = fileTypeOf(declaredType, body);
  const large = attached.take({ name: fileName, mediaType: mimeType, bytes: body });
  if (large) return [large];
  const text = fileText(fileName, mimeType, body.length);
  return [{ type: 'text', text }, fileBlock(mimeType, body.toString('base64'), fileName)];
}

function fileText(fileName: string | undefined, mimeType: string, bytes: number): string {
  const about = fileName === undefined ? `${mimeType}, ${bytes} bytes` : `${fileName} (${mimeType}, ${bytes} bytes)`;
  return `The response is a file: ${about}.`;
}

function fileBlock(mimeType: string, data: string, fileName: string | undefined): ContentBlock {
  const meta = metaOf(fileName);
  if (isModelImage(mimeType)) return { type: 'image', data, mimeType, ...meta };
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType, ...meta };
  return { type: 'resource', resource: { uri: uriOf(fileName), mimeType, blob: data, ...meta } };
}

/** Images that models accept, by their first bytes (WHATWG MIME Sniffing, 6.1). */
const imageTypes: readonly (readonly [mimeType: string, start: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF.{4}WEBPVP/s],
];
const bytesType = 'application/octet-stream';
const longestType = 100;

function isModelImage(mimeType: string): boolean {
  return imageTypes.some(([type]) => type === mimeType);
}

/**
 * Returns the media type of a file. For images that models accept, the bytes decide, because a wrong label makes all
 * later turns of a conversation fail.
 */
function fileTypeOf(declared: string, body: Buffer): string {
  const start = body.toString('latin1', 0, 16);
  const image = imageTypes.find(([, pattern]) => pattern.test(start));
  if (image) return image[0];
  return declared === '' || declared.length > longestType || isModelImage(declared) || declared === 'image/jpg'
    ? bytesType
    : declared;
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
 * Returns the parts of a multipart response (RFC 2046, 5.1), each as the blocks of its own media type.
 * @throws ToolFailure malformed
 */
export function multipartBlocks(body: Buffer, contentType: string, attached: AttachedFiles): AnswerBlock[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const name = boundary?.[1] ?? boundary?.[2];
  if (!name) throw plainFailure('malformed', 'the upstream returned a multipart body without a boundary');
  const parts = split(body, `--${name}`);
  if (parts.length === 0 || parts.length > maxParts) {
    const found = parts.length === 0 ? 'no parts' : `more than ${maxParts} parts`;
    throw plainFailure('malformed', `the upstream returned a multipart body with ${found}; allowed: 1 to ${maxParts}`);
  }
  return parts.flatMap((part) => partBlocks(part, attached));
}

/** Splits a body into its parts. Returns one more than `maxParts` if there are too many. */
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

function partBlocks(part: Buffer, attached: AttachedFiles): AnswerBlock[] {
  const hasNoHead = part.subarray(0, 2).toString() === '\r\n';
  const headEnd = hasNoHead ? -2 : part.indexOf('\r\n\r\n');
  const head = part.subarray(0, Math.max(0, headEnd)).toString('latin1', 0, longestHead);
  const content = headEnd === -1 ? part : part.subarray(headEnd + 4);
  const contentType = /^content-type:\s*([^\r\n]+)/im.exec(head)?.[1] ?? 'text/plain';
  const mimeType = mediaTypeOf(contentType);
  const fileName = fileNameIn(/^content-disposition:\s*([^\r\n]{1,4096})/im.exec(head)?.[1] ?? '');
  const isBase64 = /^content-transfer-encoding:\s*base64/im.test(head);
  const bytes = isBase64 ? Buffer.from(content.toString('latin1'), 'base64') : content;
  if (mimeType === 'text/plain') return [{ type: 'text', text: textOfBody(bytes, contentType) }];
  if (isJson(mimeType) || isText(mimeType, contentType, bytes)) {
    const text = textOfBody(bytes, contentType);
    const description: ContentBlock = { type: 'text', text: fileText(fileName, mimeType, bytes.length) };
    return [description, { type: 'resource', resource: { uri: uriOf(fileName), mimeType, text, ...metaOf(fileName) } }];
  }
  return fileBlocks(mimeType, bytes, fileName, attached);
}

/** Maximum length of a part's headers that is read, in bytes. */
const longestHead = 16_384;
