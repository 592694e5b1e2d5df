import { characterEnd, type Piece } from './pieces.ts';

/**
 * Splits compact JSON into chunks of at most `most` characters. The first chunk is the JSON with fewer items in its
 * largest list; the others are JSON arrays of further items. An item that is too long for a chunk is split as text, as
 * is JSON without a list that can be split.
 */
export function cutJson(json: string, most: number): Piece[] {
  const list = largestList(json);
  const frame = list ? list.from + 1 + json.length - list.end + 1 : json.length;
  if (!list || frame > most / 2) return partsOf(json, most, ' of the JSON text');
  return itemsOf(json, list, most);
}

function itemsOf(json: string, { path, from, end }: List, most: number): Piece[] {
  const before = json.slice(0, from + 1);
  const after = json.slice(end - 1);
  const name = path === '' ? 'the list' : `the list "${path}"`;
  const held: { text: string; about: (items: number) => string }[] = [];
  let start = from + 1;
  let position = start;
  let items = 0;
  let firstItem = 1;
  const close = () => {
    const text = json.slice(start, Math.max(start, position - 1));
    const numbers = items < firstItem ? 'none' : `items ${firstItem} to ${items}`;
    if (held.length === 0) {
      held.push({ text: before + text + after, about: (count) => `${numbers} of ${count} of ${name}` });
    } else if (text !== '') {
      held.push({ text: `[${text}]`, about: (count) => `${numbers} of ${count} of ${name}, as a JSON array` });
    }
    start = position;
    firstItem = items + 1;
  };
  while (position < end - 1) {
    const itemEnd = endOfValue(json, position);
    const space = held.length === 0 ? most - before.length - after.length : most - 2;
    if (itemEnd - start <= space) {
      items++;
      position = itemEnd + 1;
      continue;
    }
    close();
    if (itemEnd - position <= most - 2) continue;
    const item = ++items;
    for (const part of partsOf(json.slice(position, itemEnd), most, ' of')) {
      held.push({ text: part.text, about: (count) => `${part.about} item ${item} of ${count} of ${name}` });
    }
    position = itemEnd + 1;
    start = position;
    firstItem = items + 1;
  }
  close();
  return held.map(({ text, about }) => ({ text, about: about(items) }));
}

/** Splits JSON text into parts that give the original when joined. Never splits a character, an escape, or a number. */
function partsOf(json: string, most: number, what: string): Piece[] {
  const ends: number[] = [];
  let start = 0;
  let position = 0;
  const closeAt = (end: number) => {
    if (end > start) ends.push(end);
    start = end;
  };
  while (position < json.length) {
    const end = endOfToken(json, position);
    if (end - start > most && end - position <= most) closeAt(position);
    if (end - start > most) {
      // A token longer than a chunk is almost always a string.
      if (start + most - position < longestUnit) closeAt(position);
      for (let at = position; end - start > most; closeAt(at)) at = cutInside(json, at, start + most);
    }
    position = end;
  }
  closeAt(json.length);
  return ends.map((end, index) => ({
    text: json.slice(ends[index - 1] ?? 0, end),
    about: `part ${index + 1} of ${ends.length}${what}`,
  }));
}

function endOfToken(json: string, at: number): number {
  const first = json[at] as string;
  if (first === '"') return endOfString(json, at);
  return '{}[],:'.includes(first) ? at + 1 : endOfScalar(json, at);
}

/** Length of the two escapes of a surrogate pair. */
const longestUnit = 12;
const pair = /^\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}/;

/**
 * Returns the last position up to `limit` that splits no character and no escape of a string. `from` must be such a
 * position, too.
 */
function cutInside(json: string, from: number, limit: number): number {
  for (let at = from; ; ) {
    const ahead = json.slice(at, limit).indexOf('\\');
    if (ahead < 0) return characterEnd(json, at, limit);
    const slash = at + ahead;
    const unit = json.slice(slash, slash + longestUnit);
    const length = unit[1] !== 'u' ? 2 : pair.test(unit) ? longestUnit : 6;
    if (slash + length > limit) return slash;
    at = slash + length;
    if (at === limit) return at;
  }
}

/**
 * The following functions return positions in text that is known to be compact JSON, without white space between its
 * tokens.
 */

const backslash = 0x5c;

/** Returns the position after a string whose opening quote is at `at`. */
function endOfString(json: string, at: number): number {
  for (let quote = json.indexOf('"', at + 1); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (json.charCodeAt(quote - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
}

/** Returns the position after a number or a literal. */
function endOfScalar(json: string, at: number): number {
  let end = at + 1;
  while (end < json.length && !',]}'.includes(json[end] as string)) end++;
  return end;
}

/** Returns the position after a value. */
function endOfValue(json: string, at: number): number {
  const first = json[at];
  if (first === '"') return endOfString(json, at);
  if (first !== '{' && first !== '[') return endOfScalar(json, at);
  let depth = 0;
  let position = at;
  do {
    const sign = json[position];
    if (sign === '"') {
      position = endOfString(json, position);
      continue;
    }
    position++;
    if (sign === '{' || sign === '[') depth++;
    else if (sign === '}' || sign === ']') depth--;
  } while (depth > 0);
  return position;
}

/** A list in JSON text: `json[from]` is its opening bracket, `json[end - 1]` its closing one. */
type List = { path: string; from: number; end: number };

const longestPath = 60;

/** Returns the longest list that is not inside another list; undefined if there is none. */
function largestList(json: string): List | undefined {
  let largest: List | undefined;
  const visit = (at: number, path: string): number => {
    if (json[at] === '[') {
      const end = endOfValue(json, at);
      if (end - at > (largest ? largest.end - largest.from : 2)) largest = { path, from: at, end };
      return end;
    }
    if (json[at] !== '{') return endOfValue(json, at);
    let position = at + 1;
    while (json[position] !== '}') {
      if (json[position] === ',') position++;
      const colon = endOfString(json, position);
      const name = json.slice(position + 1, colon - 1);
      position = visit(colon + 1, path.length > longestPath ? path : path === '' ? name : `${path}.${name}`);
    }
    return position + 1;
  };
  visit(0, '');
  return largest && { ...largest, path: largest.path.slice(0, longestPath) };
}
