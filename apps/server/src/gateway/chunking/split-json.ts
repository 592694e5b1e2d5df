import { findCharacterBoundary, type ResultChunk } from './chunks.ts';

/**
 * Splits compact JSON, without white space between its tokens, into chunks of at most `maxLength` characters. The first
 * chunk is the JSON with fewer items in its largest list; the others are JSON arrays of further items. An item that is
 * too long for a chunk is split as text, as is JSON without a list that can be split.
 */
export function splitJson(json: string, maxLength: number): ResultChunk[] {
  const list = findLargestList(json);
  const frameLength = list ? list.from + 1 + json.length - list.end + 1 : json.length;
  if (!list || frameLength > maxLength / 2) return splitAsText(json, maxLength, ' of the JSON text');
  return splitItems(json, list, maxLength);
}

function splitItems(json: string, { path, from, end }: List, maxLength: number): ResultChunk[] {
  const prefix = json.slice(0, from + 1);
  const suffix = json.slice(end - 1);
  const name = path === '' ? 'the list' : `the list "${path}"`;
  const chunks: { text: string; about: (items: number) => string }[] = [];
  let start = from + 1;
  let position = start;
  let itemCount = 0;
  let firstItemNumber = 1;
  const closeChunk = () => {
    const text = json.slice(start, Math.max(start, position - 1));
    const range = itemCount < firstItemNumber ? 'none' : `items ${firstItemNumber} to ${itemCount}`;
    if (chunks.length === 0) {
      chunks.push({ text: prefix + text + suffix, about: (count) => `${range} of ${count} of ${name}` });
    } else if (text !== '') {
      chunks.push({ text: `[${text}]`, about: (count) => `${range} of ${count} of ${name}, as a JSON array` });
    }
    start = position;
    firstItemNumber = itemCount + 1;
  };
  while (position < end - 1) {
    const itemEnd = findValueEnd(json, position);
    const space = chunks.length === 0 ? maxLength - prefix.length - suffix.length : maxLength - 2;
    if (itemEnd - start <= space) {
      itemCount++;
      position = itemEnd + 1;
      continue;
    }
    closeChunk();
    if (itemEnd - position <= maxLength - 2) continue;
    const item = ++itemCount;
    for (const chunk of splitAsText(json.slice(position, itemEnd), maxLength, ' of')) {
      chunks.push({ text: chunk.text, about: (count) => `${chunk.about} item ${item} of ${count} of ${name}` });
    }
    position = itemEnd + 1;
    start = position;
    firstItemNumber = itemCount + 1;
  }
  closeChunk();
  return chunks.map(({ text, about }) => ({ text, about: about(itemCount) }));
}

/** Splits JSON text into parts that give the original when joined. Never splits a character, an escape, or a number. */
function splitAsText(json: string, maxLength: number, suffix: string): ResultChunk[] {
  const chunkEnds: number[] = [];
  let start = 0;
  let position = 0;
  const closeAt = (end: number) => {
    if (end > start) chunkEnds.push(end);
    start = end;
  };
  while (position < json.length) {
    const end = findTokenEnd(json, position);
    if (end - start > maxLength && end - position <= maxLength) closeAt(position);
    if (end - start > maxLength) {
      // A token longer than a chunk is almost always a string.
      if (start + maxLength - position < maxEscapeLength) closeAt(position);
      for (let split = position; end - start > maxLength; closeAt(split))
        split = findSplitInString(json, split, start + maxLength);
    }
    position = end;
  }
  closeAt(json.length);
  return chunkEnds.map((end, index) => ({
    text: json.slice(chunkEnds[index - 1] ?? 0, end),
    about: `part ${index + 1} of ${chunkEnds.length}${suffix}`,
  }));
}

function findTokenEnd(json: string, start: number): number {
  const firstCharacter = json[start] as string;
  if (firstCharacter === '"') return findStringEnd(json, start);
  return '{}[],:'.includes(firstCharacter) ? start + 1 : findScalarEnd(json, start);
}

/** Length of the two escapes of a surrogate pair, such as `\ud83d\ude00`. */
const maxEscapeLength = 12;
const escapedPairPattern = /^\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}/;

/** Returns the length of the escape at the start of a text: one such as `\n`, one such as `\u0041`, or a pair. */
function getEscapeLength(text: string): number {
  if (text[1] !== 'u') return 2;
  return escapedPairPattern.test(text) ? maxEscapeLength : 6;
}

/**
 * Returns the last position up to `limit` that splits no character and no escape of a string. `from` must be such a
 * position, too.
 */
function findSplitInString(json: string, from: number, limit: number): number {
  for (let position = from; ; ) {
    const offset = json.slice(position, limit).indexOf('\\');
    if (offset < 0) return findCharacterBoundary(json, position, limit);
    const slash = position + offset;
    const escapeText = json.slice(slash, slash + maxEscapeLength);
    const length = getEscapeLength(escapeText);
    if (slash + length > limit) return slash;
    position = slash + length;
    if (position === limit) return position;
  }
}

const backslash = 0x5c;

/** Returns the position after a string whose opening quote is at `start`. */
function findStringEnd(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (json.charCodeAt(quote - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
}

/** Returns the position after a number or a literal. */
function findScalarEnd(json: string, start: number): number {
  let end = start + 1;
  while (end < json.length && !',]}'.includes(json[end] as string)) end++;
  return end;
}

/** Returns the position after a value. */
function findValueEnd(json: string, start: number): number {
  const firstCharacter = json[start];
  if (firstCharacter === '"') return findStringEnd(json, start);
  if (firstCharacter !== '{' && firstCharacter !== '[') return findScalarEnd(json, start);
  let depth = 0;
  let position = start;
  do {
    const character = json[position];
    if (character === '"') {
      position = findStringEnd(json, position);
      continue;
    }
    position++;
    if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth--;
  } while (depth > 0);
  return position;
}

/** A list in JSON text: `json[from]` is its opening bracket, `json[end - 1]` its closing one. */
type List = { path: string; from: number; end: number };

const maxPathLength = 60;

/** Returns the longest list that is not inside another list; undefined if there is none. */
function findLargestList(json: string): List | undefined {
  let largest: List | undefined;
  const visitValue = (start: number, path: string): number => {
    if (json[start] === '[') {
      const end = findValueEnd(json, start);
      if (end - start > (largest ? largest.end - largest.from : 2)) largest = { path, from: start, end };
      return end;
    }
    if (json[start] !== '{') return findValueEnd(json, start);
    let position = start + 1;
    while (json[position] !== '}') {
      if (json[position] === ',') position++;
      const colon = findStringEnd(json, position);
      const name = json.slice(position + 1, colon - 1);
      const memberPath = path === '' ? name : `${path}.${name}`;
      position = visitValue(colon + 1, path.length > maxPathLength ? path : memberPath);
    }
    return position + 1;
  };
  visitValue(0, '');
  return largest && { ...largest, path: largest.path.slice(0, maxPathLength) };
}
