import type { ContentBlock } from '../../domain/mcp.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';

/** The beginning of a long result's content, as a try-out shows it. */
export type ShownContent = { content: ContentBlock[]; estimatedTokens: number };

/** Longest text of a long result that is shown, in characters. */
export const mostShownText = 256 * 1024;

/** The blocks of a result, cut to that length of text; a file that does not fit is replaced by its description. */
export function beginningOf(content: readonly ContentBlock[]): ContentBlock[] {
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

/** Estimated tokens of a result's text for a model, at four characters each. Images and files are not counted. */
export function tokensOfContent(content: readonly ContentBlock[]): number {
  const characters = content.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.text.length;
    return block.type === 'resource' && 'text' in block.resource ? sum + block.resource.text.length : sum;
  }, 0);
  return tokensOfLength(characters);
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
