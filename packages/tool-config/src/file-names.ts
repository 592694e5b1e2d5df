import { mediaTypePattern } from './http/headers.ts';

/** Common extensions of media types, for files without a name. */
const extensions: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'application/gzip': 'gz',
  'application/x-gzip': 'gz',
  'application/x-tar': 'tar',
  'application/x-7z-compressed': '7z',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'application/vnd.oasis.opendocument.text': 'odt',
  'application/vnd.oasis.opendocument.spreadsheet': 'ods',
  'application/msword': 'doc',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.ms-powerpoint': 'ppt',
  'application/vnd.apache.parquet': 'parquet',
  'application/vnd.sqlite3': 'sqlite',
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/tiff': 'tiff',
  'image/bmp': 'bmp',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/ogg': 'ogg',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'font/woff2': 'woff2',
};

const genericBinaryType = 'application/octet-stream';
/**
 * Matches types that a browser might run or render as a page. All of them are text formats, which results contain as
 * text, so no file needs one.
 */
const activeTypePattern = /html|svg|[/+]xml$|(?:java|ecma|vb|j)script|^(?:multipart|message|text)\//;

/**
 * Returns the name and media type of a file as stored and served. Without a displayable name of its own, a file is
 * named after the tool. A type that is malformed, or that a browser could run, becomes the generic binary type.
 */
export function toFileHead(name: string | undefined, declaredType: string, toolName: string): FileHead {
  const isInert =
    declaredType.length <= 100 && mediaTypePattern.test(declaredType) && !activeTypePattern.test(declaredType);
  const mediaType = isInert ? declaredType : genericBinaryType;
  const extension = Object.hasOwn(extensions, mediaType) ? extensions[mediaType] : 'bin';
  return { name: name ?? `${toolName}.${extension}`, mediaType };
}

/**
 * Returns a Content-Disposition that makes a browser save the file (RFC 6266). The plain form of the name contains only
 * ASCII without quotation marks, backslashes, and percent signs; the extended form (RFC 8187) contains the full name.
 */
export function formatContentDisposition(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/gu, '_');
  const extended = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`;
}

/** Time for which the URL of a file is valid, in ms. */
export const fileRetentionMs = 10 * 60_000;

/** Maximum bytes of all files that are embedded in one result. Further files get a URL. */
export const maxInlineBytes = 256 * 1024;

/** Size in bytes of the chunks of a stored file. Sealing a chunk takes less than a millisecond. */
export const fileChunkBytes = 192 * 1024;

/** Name and media type of a file; both are safe to display and to send in a header. */
export type FileHead = { name: string; mediaType: string };

/**
 * A file that is sent to an upstream in place of Base64 text. It is a class, so that no JSON from a caller can pose as
 * one.
 */
export class UploadedFile {
  readonly head: FileHead;
  readonly bytes: Buffer;

  constructor(head: FileHead, bytes: Buffer) {
    this.head = head;
    this.bytes = bytes;
  }
}
