import type { CompletionResult } from '@codemirror/autocomplete';
import { names, values } from '../../declared.ts';

/** The path of an object as a key of `names`: declared names, and * for the entries of lists and maps. */
function patternOf(path: readonly string[]): string {
  return path.reduce((above, part) => {
    const own = names[above]?.includes(part) ? part : '*';
    return above === '' ? own : `${above}.${own}`;
  }, '');
}

type CaretLocation = { path: string[]; key: string | undefined; isKey: boolean; start: number; prefix: string };

/** Walks the text up to the caret, and finds the object and the string in which the caret is. */
function caretLocation(text: string, caret: number): CaretLocation | undefined {
  const stack: { key: string | undefined; isArray: boolean; isKey: boolean; index: number }[] = [];
  let start = -1;
  for (let at = 0; at < caret; at++) {
    const top = stack.at(-1);
    const letter = text[at];
    if (start >= 0) {
      if (letter === '\\') at++;
      else if (letter === '"') {
        if (top?.isKey) top.key = text.slice(start + 1, at);
        start = -1;
      }
    } else if (letter === '"') start = at;
    else if (letter === '{' || letter === '[')
      stack.push({ key: undefined, isArray: letter === '[', isKey: letter === '{', index: 0 });
    else if (letter === '}' || letter === ']') stack.pop();
    else if (letter === ':' && top) top.isKey = false;
    else if (letter === ',' && top) {
      top.isKey = !top.isArray;
      top.index++;
    }
  }
  const top = stack.at(-1);
  if (start < 0 || !top) return undefined;
  const path = stack.slice(0, -1).map((level) => (level.isArray ? String(level.index) : (level.key ?? '')));
  return { path, key: top.key, isKey: top.isKey, start, prefix: text.slice(start + 1, caret) };
}

/** Allowed names or values for the string before the caret. */
export function completionsAt(text: string, caret: number): CompletionResult | null {
  const location = caretLocation(text, caret);
  if (!location) return null;
  const { path, key, isKey, start, prefix } = location;
  const pattern = patternOf(path);
  const all = (isKey ? names[pattern] : values[pattern === '' ? `${key}` : `${pattern}.${key}`]) ?? [];
  const closing = text.indexOf('"', caret);
  const line = text.indexOf('\n', caret);
  const isClosed = closing >= 0 && (line < 0 || closing < line);
  const to = isClosed ? closing + 1 : caret;
  const colon = isKey && !/^\s*:/.test(text.slice(to)) ? ': ' : '';
  const words = all.filter((word) => word.startsWith(prefix) && word !== prefix);
  const options = words.map((label) => ({ label, apply: `${label}"${colon}` }));
  return { from: start + 1, to, options, filter: false };
}
