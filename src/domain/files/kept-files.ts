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
