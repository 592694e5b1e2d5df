import type { ContentBlock } from '../../domain/mcp.ts';
import { tokensOfContent } from './result-tokens.ts';

/** The beginning of a long result's content, as a try-out shows it. */
type ShownContent = { content: ContentBlock[]; estimatedTokens: number };

/** Reads the content of a long result, which is JSON text, for a try-out. */
export type ContentJob = { input: { content: Uint8Array }; output: ShownContent };

/** Longest text of a long result that is shown, in characters. */
export const mostShownText = 256 * 1024;

export function shortenContent({ content }: ContentJob['input']): { output: ContentJob['output'] } {
  const text = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('utf8');
  const blocks = JSON.parse(text) as ContentBlock[];
  return { output: { content: beginningOf(blocks), estimatedTokens: tokensOfContent(blocks) } };
}

/** The blocks of a result, cut to that length of text; a file that does not fit is replaced by its description. */
function beginningOf(content: readonly ContentBlock[]): ContentBlock[] {
  let left = mostShownText;
  const begun = (text: string) => {
    const start = cutText(text, left);
    left -= start.length;
    return start;
  };
  const shown: ContentBlock[] = [];
  for (const block of content) {
    if (left === 0) break;
    if (block.type === 'text') shown.push({ ...block, text: begun(block.text) });
    else if (block.type === 'resource' && 'text' in block.resource) {
      shown.push({ ...block, resource: { ...block.resource, text: begun(block.resource.text) } });
    } else shown.push(fileOf(block, left));
    left -= base64Of(shown.at(-1) as ContentBlock).length;
  }
  return shown;
}

/** A file if it fits, otherwise its description: half a file is useless. */
function fileOf(block: ContentBlock, left: number): ContentBlock {
  const base64 = base64Of(block);
  if (base64.length <= left) return block;
  const type = block.type === 'resource' ? block.resource.mimeType : 'mimeType' in block ? block.mimeType : '';
  return { type: 'text', text: `[a file of type ${type} with ${Buffer.byteLength(base64, 'base64')} bytes]` };
}

function base64Of(block: ContentBlock): string {
  if (block.type === 'text' || block.type === 'resource_link') return '';
  if (block.type !== 'resource') return block.data;
  return 'blob' in block.resource ? block.resource.blob : '';
}

/** The first characters of a text, without half of a surrogate pair at the end. */
function cutText(text: string, most: number): string {
  const isSplit = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  return text.length <= most ? text : text.slice(0, isSplit ? most - 1 : most);
}
