import { names, values } from '../declared.ts';

/** The path of an object in a configuration as `names` has it: its own names, and * for entries of lists and maps. */
function patternOf(path: readonly string[]): string {
  return path.reduce((above, part) => {
    const own = names[above]?.includes(part) ? part : '*';
    return above === '' ? own : `${above}.${own}`;
  }, '');
}

type Place = { path: string[]; key: string | undefined; isKey: boolean; start: number; prefix: string };

/** Walks the text up to the caret and tells in which object, and in which string of it, the caret stands. */
function placeAt(text: string, caret: number): Place | undefined {
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

type Completions = { words: readonly string[]; start: number; end: number; prefix: string; isKey: boolean };

/** The names or values that are allowed in the string around the caret and begin as it does. */
export function completionsAt(text: string, caret: number): Completions | undefined {
  const place = placeAt(text, caret);
  if (!place) return undefined;
  const pattern = patternOf(place.path);
  const all =
    (place.isKey ? names[pattern] : values[pattern === '' ? `${place.key}` : `${pattern}.${place.key}`]) ?? [];
  const words = all.filter((word) => word.startsWith(place.prefix) && word !== place.prefix);
  const closing = text.indexOf('"', caret);
  const line = text.indexOf('\n', caret);
  const isClosed = closing >= 0 && (line < 0 || closing < line);
  return { words, start: place.start, end: isClosed ? closing + 1 : caret, prefix: place.prefix, isKey: place.isKey };
}

export function insertAt(text: string, place: Completions, word: string): { text: string; caret: number } {
  const rest = text.slice(place.end);
  const colon = place.isKey && !/^\s*:/.test(rest) ? ': ' : '';
  const written = `"${word}"${colon}`;
  return { text: text.slice(0, place.start) + written + rest, caret: place.start + written.length };
}
