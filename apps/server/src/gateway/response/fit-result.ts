import { scanJson } from '@toolhost/json/json-scan';
import type { ContentBlock, ToolResult } from '@toolhost/mcp-protocol/mcp';
import { reservedNoteLength } from '@toolhost/tool-config/read-more';
import { groupIntoSegments, type ResultChunk, type Segment, splitText } from '../chunking/chunks.ts';
import { splitJson } from '../chunking/split-json.ts';
import { estimateContentTokens } from './json-response.ts';
import type { ResultFile } from './response-files.ts';

/** The remainder of a truncated result. */
export type ResultRemainder = {
  /** Phrase that describes the part that the result contains. */
  description: string;
  /** Length of that part, in characters. */
  characters: number;
  /** Estimated number of tokens of the complete result. */
  tokens: number;
  /** Number of the remaining chunks, and the segments that contain them. */
  chunkCount: number;
  segments: Segment[];
};

/** A result, its remainder if it was truncated, and the large files that placeholders in its content stand for. */
export type TruncatedResult = ToolResult & { remainder?: ResultRemainder; files?: readonly ResultFile[] };

/**
 * Maximum length of the text that contains the URL of a large file, and minimum size of a chunk next to it, in
 * characters.
 */
const fileTextLength = 300;
const minChunkLength = 100;

/**
 * Truncates the text of a result to `maxCharacters` characters, leaving space for a note. Takes time proportional to
 * the text. The truncated result has no structured content, because a client could show that instead of text and note.
 */
export function truncateResult(result: TruncatedResult, maxCharacters: number): TruncatedResult {
  const filesLength = (result.files?.length ?? 0) * fileTextLength;
  if (result.content.length + filesLength <= maxCharacters) return result;
  const blocks = JSON.parse(String(result.content)) as ContentBlock[];
  const tokens = estimateContentTokens(blocks);
  if (countCharacters(blocks) + filesLength <= maxCharacters) return result;
  const descriptionsLength = countCharacters(blocks.filter((_, index) => isFileText(blocks, index)));
  const maxTextLength = Math.max(maxCharacters - reservedNoteLength - filesLength - descriptionsLength, minChunkLength);
  const { retained, firstChunk, otherChunks } = splitBlocks(blocks, maxTextLength);
  const blocksInResult: ContentBlock[] = firstChunk ? [...retained, { type: 'text', text: firstChunk.text }] : retained;
  const description = firstChunk?.about ?? 'the beginning';
  return {
    content: JSON.stringify(blocksInResult),
    structured: undefined,
    isError: result.isError,
    ...(result.files && { files: result.files }),
    remainder: {
      description,
      characters: countCharacters(blocksInResult),
      tokens,
      chunkCount: otherChunks.length,
      segments: groupIntoSegments(otherChunks),
    },
  };
}

function countCharacters(blocks: readonly ContentBlock[]): number {
  return blocks.reduce((sum, block) => sum + (getText(block)?.length ?? 0), 0);
}

type SplitBlocks = {
  /** Blocks that stay complete: files, and the texts before the first one that is too long. */
  retained: ContentBlock[];
  /** Chunk of a text that follows these blocks. Undefined if there is too little space for it. */
  firstChunk: ResultChunk | undefined;
  otherChunks: ResultChunk[];
};

function splitBlocks(blocks: readonly ContentBlock[], maxCharacters: number): SplitBlocks {
  const splitResult: SplitBlocks = { retained: [], firstChunk: undefined, otherChunks: [] };
  let remaining = maxCharacters;
  let isCut = false;
  for (const [index, block] of blocks.entries()) {
    const text = getText(block);
    if (text === undefined || isFileText(blocks, index) || (!isCut && text.length <= remaining)) {
      splitResult.retained.push(block);
      if (!isFileText(blocks, index)) remaining -= text?.length ?? 0;
      continue;
    }
    const size = isCut || remaining < maxCharacters / 2 ? maxCharacters : remaining;
    const chunks = isCompactJson(text) ? splitJson(text, size) : splitText(text, size);
    if (!isCut && size === remaining) splitResult.firstChunk = chunks.shift();
    splitResult.otherChunks.push(...chunks);
    isCut = true;
  }
  return splitResult;
}

/** Returns true for the description of a file, which stays with the block after it. */
function isFileText(blocks: readonly ContentBlock[], index: number): boolean {
  const block = blocks[index];
  const next = blocks[index + 1];
  const isBeforeFile = next !== undefined && getText(next) === undefined;
  return isBeforeFile && block?.type === 'text' && block.text.length <= fileTextLength;
}

/** Maximum nesting of JSON that is split by items. */
const maxDepth = 1000;

function isCompactJson(text: string): boolean {
  const scan = scanJson(Buffer.from(text), maxDepth);
  return scan?.isCompact === true && scan.depth <= maxDepth;
}

function getText(block: ContentBlock): string | undefined {
  if (block.type === 'text') return block.text;
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : undefined;
}
