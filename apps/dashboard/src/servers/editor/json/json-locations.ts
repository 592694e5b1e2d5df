import type { CompletionResult } from '@codemirror/autocomplete';
import { formatPath } from '../../config.ts';
import { allowedNames, allowedValues } from '../../declared.ts';

/** Object or list around a position, with the index or key there. `isKey` is true where a key is expected. */
type JsonLevel = { isArray: boolean; index: number; key: string; isKey: boolean };

/** Matches a string, which may be unterminated, or a punctuator. */
const tokenPattern = /"(?:[^"\\]|\\.)*("|\\?$)|[{}[\]:,]/g;

type VisitToken = (levels: readonly JsonLevel[], start: number, end: number) => void;

/**
 * Tokenizes JSON text and calls `onToken` for each name and each list entry with its enclosing levels. Returns the levels
 * around the end of the text, and the start of an unterminated string.
 */
function scanJson(text: string, onToken: VisitToken = () => {}): { levels: JsonLevel[]; openStringStart?: number } {
  const levels: JsonLevel[] = [];
  for (const { 0: token, 1: closingQuote, index: start } of text.matchAll(tokenPattern)) {
    if (token.startsWith('"') && closingQuote !== '"') return { levels, openStringStart: start };
    const top = levels.at(-1);
    const end = start + token.length;
    if (token === '{' || token === '[') {
      if (top?.isArray) onToken(levels, start, start + 1);
      levels.push({ isArray: token === '[', index: 0, key: '', isKey: token === '{' });
    } else if (token === '}' || token === ']') levels.pop();
    else if (token === ':' && top) top.isKey = false;
    else if (token === ',' && top) {
      top.isKey = !top.isArray;
      top.index++;
    } else if (top?.isKey) {
      top.key = token.slice(1, -1);
      onToken(levels, start, end);
    }
  }
  return { levels };
}

/** Returns the range of a path such as `tools[1].url` in JSON text, or of its nearest enclosing value. */
export function findJsonLocation(text: string, path: string): { start: number; end: number } | undefined {
  let bestRange: { start: number; end: number } | undefined;
  let bestLength = 0;
  scanJson(text, (levels, start, end) => {
    const currentPath = formatPath(levels.map(({ isArray, index, key }) => (isArray ? index : key)));
    const isMatch =
      path === currentPath || (path.startsWith(currentPath) && /^[.[]/.test(path.slice(currentPath.length)));
    if (!isMatch || currentPath.length <= bestLength) return;
    bestRange = { start, end };
    bestLength = currentPath.length;
  });
  return bestRange;
}

/** Returns the path of an object as a key of `allowedNames`, with * for entries of lists and maps. */
function toPattern(levels: readonly JsonLevel[]): string {
  return levels.reduce((parent, { isArray, key }) => {
    const segment = !isArray && allowedNames[parent]?.includes(key) ? key : '*';
    return parent === '' ? segment : `${parent}.${segment}`;
  }, '');
}

/** Returns the allowed names or values for the string before the caret. */
export function getCompletions(text: string, caret: number): CompletionResult | null {
  const { levels, openStringStart } = scanJson(text.slice(0, caret));
  const top = levels.at(-1);
  if (openStringStart === undefined || !top) return null;
  const prefix = text.slice(openStringStart + 1, caret);
  const pattern = toPattern(levels.slice(0, -1));
  const candidates =
    (top.isKey ? allowedNames[pattern] : allowedValues[pattern === '' ? top.key : `${pattern}.${top.key}`]) ?? [];
  const [lineRemainder = ''] = text.slice(caret).split('\n', 1);
  const closingQuoteIndex = lineRemainder.indexOf('"');
  const to = caret + closingQuoteIndex + 1;
  const colon = top.isKey && !/^\s*:/.test(text.slice(to)) ? ': ' : '';
  const suggestions = candidates.filter((suggestion) => suggestion.startsWith(prefix) && suggestion !== prefix);
  return {
    from: openStringStart + 1,
    to,
    options: suggestions.map((label) => ({ label, apply: `${label}"${colon}` })),
    filter: false,
  };
}
