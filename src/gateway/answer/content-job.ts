import type { ContentBlock } from '../../domain/mcp.ts';
import { beginningOf, type ShownContent, tokensOfContent } from './shown-content.ts';

/** Reads the content of a long result, which is JSON text, for a try-out. */
export type ContentJob = { input: { content: Uint8Array }; output: ShownContent };

export function shortenContent({ content }: ContentJob['input']): { output: ContentJob['output'] } {
  const text = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('utf8');
  const blocks = JSON.parse(text) as ContentBlock[];
  return { output: { content: beginningOf(blocks), estimatedTokens: tokensOfContent(blocks) } };
}
