import { keepsNumbers } from '../../domain/json/json.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { wellFormedJsonText } from '../../domain/json/well-formed-json.ts';
import type { ContentBlock, Era, JsonText } from '../../domain/mcp.ts';

/**
 * Structured content that no output schema asks for. Clients of revisions before 2026-07-28 take only an object, and
 * Gemini CLI makes it of the first text of a result that has none: it refuses the result where that text is JSON and no
 * object. So those clients get `{"result": …}`. Where a parser would change a number, the JSON in it is a text, because
 * some clients show nothing else to their model.
 */

const openObject = 0x7b;
const mostDepth = 1000;
const bareStart = /^\s*(?:["[\d-]|(?:true|false|null)\s*$)/;

/** For an answer that is JSON. */
export function structuredForEarlier(json: Buffer, era: Era): JsonText | undefined {
  return era === 'modern' || json[0] === openObject ? undefined : `{"result":${exactly(json.toString('utf8'))}}`;
}

/** For texts, of which the first may be JSON. `more` are the others, such as the note that an answer was cut. */
export function structuredOfTexts(
  blocks: readonly (ContentBlock | { type: 'attached_file' })[],
  era: Era,
): JsonText | undefined {
  if (era === 'modern') return undefined;
  const [first, ...more] = blocks.map((block) => (block.type === 'text' ? block.text : undefined));
  if (first === undefined || !isBareJson(first) || more.includes(undefined)) return undefined;
  return `{"result":${exactly(wellFormedJsonText(first))}${more.length > 0 ? `,"more":${JSON.stringify(more)}` : ''}}`;
}

/** Whether a text is JSON, and no object. */
function isBareJson(text: string): boolean {
  return bareStart.test(text) && scanJson(Buffer.from(text), mostDepth) !== undefined;
}

function exactly(json: string): string {
  return keepsNumbers(json) ? json : JSON.stringify(json);
}
