import type { CompletionResult } from '@codemirror/autocomplete';
import { pathText } from '../../config.ts';
import { names, values } from '../../declared.ts';

/** Enclosing object or list of a position in the text, with the position's index or key. */
type Level = { isArray: boolean; index: number; key: string; isKey: boolean };

/** A string, which may be unterminated, or a punctuator. */
const tokens = /"(?:[^"\\]|\\.)*("|\\?$)|[{}[\]:,]/g;

type Visit = (around: readonly Level[], start: number, end: number) => void;

/**
 * Tokenizes JSON text and calls `visit` for each name and each list entry with its enclosing levels. Returns the levels
 * around the end of the text, and the start of an unterminated string.
 */
function walk(text: string, visit: Visit = () => {}): { around: Level[]; open?: number } {
  const around: Level[] = [];
  for (const { 0: token, 1: closing, index: start } of text.matchAll(tokens)) {
    if (token.startsWith('"') && closing !== '"') return { around, open: start };
    const top = around.at(-1);
    const end = start + token.length;
    if (token === '{' || token === '[') {
      if (top?.isArray) visit(around, start, start + 1);
      around.push({ isArray: token === '[', index: 0, key: '', isKey: token === '{' });
    } else if (token === '}' || token === ']') around.pop();
    else if (token === ':' && top) top.isKey = false;
    else if (token === ',' && top) {
      top.isKey = !top.isArray;
      top.index++;
    } else if (top?.isKey) {
      top.key = token.slice(1, -1);
      visit(around, start, end);
    }
  }
  return { around };
}

/** Returns the range of a path such as `tools[1].url` in JSON text, or of its nearest enclosing value. */
export function locationInJson(text: string, path: string): { start: number; end: number } | undefined {
  let best: { start: number; end: number } | undefined;
  let length = 0;
  walk(text, (around, start, end) => {
    const here = pathText(around.map(({ isArray, index, key }) => (isArray ? index : key)));
    const isAround = path === here || (path.startsWith(here) && /^[.[]/.test(path.slice(here.length)));
    if (!isAround || here.length <= length) return;
    best = { start, end };
    length = here.length;
  });
  return best;
}

/** Returns the path of an object as a key of `names`, with * for entries of lists and maps. */
function patternOf(around: readonly Level[]): string {
  return around.reduce((above, { isArray, key }) => {
    const own = !isArray && names[above]?.includes(key) ? key : '*';
    return above === '' ? own : `${above}.${own}`;
  }, '');
}

/** Returns the allowed names or values for the string before the caret. */
export function completionsAt(text: string, caret: number): CompletionResult | null {
  const { around, open } = walk(text.slice(0, caret));
  const top = around.at(-1);
  if (open === undefined || !top) return null;
  const prefix = text.slice(open + 1, caret);
  const pattern = patternOf(around.slice(0, -1));
  const all = (top.isKey ? names[pattern] : values[pattern === '' ? top.key : `${pattern}.${top.key}`]) ?? [];
  const [rest = ''] = text.slice(caret).split('\n', 1);
  const closing = rest.indexOf('"');
  const to = caret + closing + 1;
  const colon = top.isKey && !/^\s*:/.test(text.slice(to)) ? ': ' : '';
  const words = all.filter((word) => word.startsWith(prefix) && word !== prefix);
  return { from: open + 1, to, options: words.map((label) => ({ label, apply: `${label}"${colon}` })), filter: false };
}
