import { mostInlineBytes } from '../../domain/files/kept-files.ts';
import type { ContentBlock, JsonText } from '../../domain/mcp.ts';

/** A file of an answer that is too large for the result, and gets an address. */
export type AnswerFile = {
  /** Undefined when the upstream names none. */
  name: string | undefined;
  mediaType: string;
  bytes: Uint8Array;
};

/** Stands in the content of a result for the file with this index, until the file has an address. */
export type AttachedBlock = { type: 'attached_file'; file: number };

/**
 * Decides which files of one answer stay in its result: those of the first 256 KiB. `mostCharacters` is the limit of the
 * answer's text. It counts for files that are neither images nor sounds too, because clients that do not know what to do
 * with them give the model their Base64 as text.
 */
export class AttachedFiles {
  readonly list: AnswerFile[] = [];
  readonly #mostCharacters: number;
  #left = mostInlineBytes;

  constructor(mostCharacters: number | undefined) {
    this.#mostCharacters = mostCharacters ?? Number.POSITIVE_INFINITY;
  }

  /** The block for a file that does not stay in the result; undefined for one that stays. */
  take(file: AnswerFile): AttachedBlock | undefined {
    const { length } = file.bytes;
    const isMedia = /^(image|audio)\//.test(file.mediaType);
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
 * The content of a result, which is JSON text, with other blocks in place of those that stand for its files. A text
 * cannot pose as such a block, because its quotation marks are escaped.
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
