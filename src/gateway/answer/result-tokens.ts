import type { ContentBlock, ToolResult } from '../../domain/mcp.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import { tokensOfContent } from './shown-content.ts';

/** The beginning of content that begins with a text. */
export const textStart = '[{"type":"text","text":"';
const textEnd = '"}]';
/** Longest content with files that is parsed for its texts. */
const mostParsed = 64 * 1024;

/** Estimated tokens of the text of a result, by the length of its JSON, without parsing it. Files do not count. */
export function tokensOfResult({ content, structured, tokens }: ToolResult): number {
  if (tokens !== undefined) return tokens;
  if (structured !== undefined) return tokensOfLength(structured.length);
  const start = typeof content === 'string' ? content : content.toString('latin1', 0, textStart.length);
  if (start.startsWith(textStart)) return tokensOfLength(content.length - textStart.length - textEnd.length);
  return content.length > mostParsed ? 0 : tokensOfContent(JSON.parse(String(content)) as ContentBlock[]);
}
