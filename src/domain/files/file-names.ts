import { mediaTypePattern } from '../http/headers.ts';

/** Usual extensions of media types, for files without a name. */
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

const bytesType = 'application/octet-stream';
/** Types that a browser might run or render as a page. They are texts, so no file should have one. */
const active = /html|svg|[/+]xml$|(?:java|ecma|vb|j)script|^(?:multipart|message|text)\//;

/**
 * Name and media type of a file as it is stored and served. Without a name of its own, which is fit to be shown, it is
 * called after the tool. A type that is not well-formed, or that a browser could run, becomes that of plain bytes.
 */
export function fileHeadOf(name: string | undefined, declared: string, toolName: string): FileHead {
  const isPlain = declared.length <= 100 && mediaTypePattern.test(declared) && !active.test(declared);
  const mediaType = isPlain ? declared : bytesType;
  const extension = Object.hasOwn(extensions, mediaType) ? extensions[mediaType] : 'bin';
  return { name: name ?? `${toolName}.${extension}`, mediaType };
}

/**
 * A Content-Disposition that makes a browser save the file (RFC 6266). The plain form of the name has only ASCII without
 * quotation marks, backslashes and percent signs; the extended form (RFC 8187) has all of it.
 */
export function attachment(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/gu, '_');
  const extended = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`;
}

/** How long the address of a file works. */
export const fileKeptMs = 10 * 60_000;

/** Most bytes of files that stay in one result; those beyond get an address. */
export const mostInlineBytes = 256 * 1024;

/** Bytes of a chunk of a stored file, except the last one. Sealing one takes less than a millisecond. */
export const fileChunkBytes = 192 * 1024;

/** Name and media type of a file; both are fit to be shown and sent in a header. */
export type FileHead = { name: string; mediaType: string };

/** A file that is sent to an upstream in place of Base64. A class, so that no JSON of a caller can pose as one. */
export class GivenFile {
  readonly head: FileHead;
  readonly bytes: Buffer;

  constructor(head: FileHead, bytes: Buffer) {
    this.head = head;
    this.bytes = bytes;
  }
}
