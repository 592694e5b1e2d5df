/** A chunk of a long result, with a phrase that describes its position, such as `items 43 to 90 of 380`. */
export type ResultChunk = { text: string; about: string };

/** Chunks that are stored as one row: the JSON text of a list of chunks, and the number of the first one. */
export type Segment = { first: number; json: Uint8Array<ArrayBuffer> };

/** Target length of a segment in characters. A longer chunk becomes a segment of its own. */
const targetSegmentLength = 200_000;

/** Groups chunks, numbered from 1, into segments. */
export function groupIntoSegments(chunks: readonly ResultChunk[]): Segment[] {
  const segments: Segment[] = [];
  let pending: ResultChunk[] = [];
  let length = 0;
  let first = 1;
  const closeSegment = () => {
    if (pending.length === 0) return;
    segments.push({ first, json: new Uint8Array(Buffer.from(JSON.stringify(pending))) });
    first += pending.length;
    pending = [];
    length = 0;
  };
  for (const chunk of chunks) {
    if (length + chunk.text.length > targetSegmentLength) closeSegment();
    pending.push(chunk);
    length += chunk.text.length + chunk.about.length;
  }
  closeSegment();
  return segments;
}

/** Splits text into chunks of at most `maxLength` characters, after line breaks where possible. */
export function splitText(text: string, maxLength: number): ResultChunk[] {
  const chunks: ResultChunk[] = [];
  for (let start = 0; start < text.length; ) {
    const end = findChunkEnd(text, start, maxLength);
    chunks.push({ text: text.slice(start, end), about: `characters ${start + 1} to ${end} of ${text.length}` });
    start = end;
  }
  return chunks;
}

function findChunkEnd(text: string, start: number, maxLength: number): number {
  if (text.length - start <= maxLength) return text.length;
  const lastLineBreak = text.slice(start, start + maxLength).lastIndexOf('\n');
  return lastLineBreak >= 0 ? start + lastLineBreak + 1 : findCharacterBoundary(text, start, start + maxLength);
}

/** Maximum number of marks and joiners that are treated as part of the preceding character. */
const maxJoinedCodePoints = 16;
/** Matches combining marks, the zero-width joiner, and skin tones. */
const joinerPattern = /\p{M}|\u200d|[\u{1f3fb}-\u{1f3ff}]/u;

/**
 * Returns the last position between `start` and `end` that does not split a user-perceived character. If there is none,
 * returns `end`, adjusted so that it does not split a surrogate pair.
 */
export function findCharacterBoundary(text: string, start: number, end: number): number {
  const wholeEnd = isLowSurrogate(text, end) && isHighSurrogate(text, end - 1) ? end - 1 : end;
  let position = wholeEnd;
  for (let steps = 0; steps < maxJoinedCodePoints && position > start + 1; steps++) {
    if (!isInsideCharacter(text, position)) return position;
    position -= isLowSurrogate(text, position - 1) ? 2 : 1;
  }
  return Math.max(wholeEnd, start + 1);
}

function isInsideCharacter(text: string, position: number): boolean {
  const nextCodePoint = text.codePointAt(position);
  const before = text[position - 1];
  if (before === '\r' && text[position] === '\n') return true;
  return (
    before === '\u200d' || (nextCodePoint !== undefined && joinerPattern.test(String.fromCodePoint(nextCodePoint)))
  );
}

function isHighSurrogate(text: string, index: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === 0xd800;
}

function isLowSurrogate(text: string, index: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === 0xdc00;
}
