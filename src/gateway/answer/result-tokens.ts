import type { ContentBlock, ToolResult } from '../../domain/mcp.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import { textEnd, textStart } from './json-text-block.ts';

/** Longest content with files that is parsed for its texts. */
const mostParsed = 64 * 1024;

/** Estimated tokens of the text of a result, by the length of its JSON, without parsing it. Files do not count. */
export function tokensOfResult({ content, tokens }: ToolResult): number {
  if (tokens !== undefined) return tokens;
  const start = typeof content === 'string' ? content : content.toString('latin1', 0, textStart.length);
  if (start.startsWith(textStart)) return tokensOfLength(content.length - textStart.length - textEnd.length);
  return content.length > mostParsed ? 0 : tokensOfContent(JSON.parse(String(content)) as ContentBlock[]);
}

/** Estimated tokens of a result's text for a model, at four characters each. Images and files are not counted. */
export function tokensOfContent(content: readonly ContentBlock[]): number {
  const characters = content.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.text.length;
    return block.type === 'resource' && 'text' in block.resource ? sum + block.resource.text.length : sum;
  }, 0);
  return tokensOfLength(characters);
}
