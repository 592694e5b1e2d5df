import { scanJson } from '../../domain/json/json-scan.ts';
import type { ContentBlock, ToolResult } from '../../domain/mcp.ts';
import { cutJson } from '../../domain/pieces/cut-json.ts';
import { cutText, type Piece, type Segment, segmentsOf } from '../../domain/pieces/pieces.ts';
import { noteLength } from '../../domain/pieces/read-more.ts';
import type { AnswerFile } from './answer-files.ts';
import { tokensOfContent } from './json-answer.ts';

/** The remainder of a truncated result. */
export type AnswerRest = {
  /** Phrase that describes the part in the result itself. */
  about: string;
  /** Length of that part, in characters. */
  characters: number;
  /** Estimated number of tokens of the complete result. */
  tokens: number;
  /** Number of the remaining chunks, and the segments that contain them. */
  pieces: number;
  segments: Segment[];
};

/** A result, its remainder if it was truncated, and the large files that placeholders in its content stand for. */
export type CutResult = ToolResult & { rest?: AnswerRest; files?: readonly AnswerFile[] };

/**
 * Maximum length of the text that contains the URL of a large file, and minimum size of a chunk next to it, in
 * characters.
 */
const fileTextLength = 300;
const shortestPiece = 100;

/**
 * Truncates the text of a result to `most` characters, leaving space for a note. Takes time proportional to the text. A
 * truncated result has no structured content, because a client may show that instead of the text and the note.
 */
export function fitResult(result: CutResult, most: number): CutResult {
  const ofFiles = (result.files?.length ?? 0) * fileTextLength;
  if (result.content.length + ofFiles <= most) return result;
  const blocks = JSON.parse(String(result.content)) as ContentBlock[];
  const tokens = tokensOfContent(blocks);
  if (charactersOf(blocks) + ofFiles <= most) return result;
  const ofDescriptions = charactersOf(blocks.filter((_, index) => isFileText(blocks, index)));
  const space = Math.max(most - noteLength - ofFiles - ofDescriptions, shortestPiece);
  const { kept, first, others } = split(blocks, space);
  const given: ContentBlock[] = first ? [...kept, { type: 'text', text: first.text }] : kept;
  const about = first?.about ?? 'the beginning';
  return {
    content: JSON.stringify(given),
    structured: undefined,
    isError: result.isError,
    ...(result.files && { files: result.files }),
    rest: { about, characters: charactersOf(given), tokens, pieces: others.length, segments: segmentsOf(others) },
  };
}

function charactersOf(blocks: readonly ContentBlock[]): number {
  return blocks.reduce((sum, block) => sum + (textOf(block)?.length ?? 0), 0);
}

type Split = {
  /** Blocks that stay complete: files, and the texts before the first one that is too long. */
  kept: ContentBlock[];
  /** Chunk of a text that follows these blocks. Undefined if there is too little space for it. */
  first: Piece | undefined;
  others: Piece[];
};

function split(blocks: readonly ContentBlock[], most: number): Split {
  const found: Split = { kept: [], first: undefined, others: [] };
  let left = most;
  let isCut = false;
  for (const [index, block] of blocks.entries()) {
    const text = textOf(block);
    if (text === undefined || isFileText(blocks, index) || (!isCut && text.length <= left)) {
      found.kept.push(block);
      if (!isFileText(blocks, index)) left -= text?.length ?? 0;
      continue;
    }
    const size = isCut || left < most / 2 ? most : left;
    const pieces = isCompactJson(text) ? cutJson(text, size) : cutText(text, size);
    if (!isCut && size === left) found.first = pieces.shift();
    found.others.push(...pieces);
    isCut = true;
  }
  return found;
}

/** Returns true for the description of a file, which stays with the block after it. */
function isFileText(blocks: readonly ContentBlock[], index: number): boolean {
  const block = blocks[index];
  const next = blocks[index + 1];
  const isBeforeFile = next !== undefined && textOf(next) === undefined;
  return isBeforeFile && block?.type === 'text' && block.text.length <= fileTextLength;
}

const mostDepth = 1000;

function isCompactJson(text: string): boolean {
  const scan = scanJson(Buffer.from(text), mostDepth);
  return scan?.isCompact === true && scan.depth <= mostDepth;
}

function textOf(block: ContentBlock): string | undefined {
  if (block.type === 'text') return block.text;
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : undefined;
}
