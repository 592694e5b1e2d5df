/** A chunk of a long result, with a phrase that describes its position, such as `items 43 to 90 of 380`. */
export type Piece = { text: string; about: string };

/** Chunks that are stored as one row: the JSON text of a list of chunks, and the number of the first one. */
export type Segment = { first: number; json: Uint8Array<ArrayBuffer> };

/** Target length of a segment in characters. A longer chunk becomes a segment of its own. */
const segmentLength = 200_000;

/** Groups chunks, numbered from 1, into segments. */
export function segmentsOf(pieces: readonly Piece[]): Segment[] {
  const segments: Segment[] = [];
  let held: Piece[] = [];
  let length = 0;
  let first = 1;
  const close = () => {
    if (held.length === 0) return;
    segments.push({ first, json: new Uint8Array(Buffer.from(JSON.stringify(held))) });
    first += held.length;
    held = [];
    length = 0;
  };
  for (const piece of pieces) {
    if (length + piece.text.length > segmentLength) close();
    held.push(piece);
    length += piece.text.length + piece.about.length;
  }
  close();
  return segments;
}

/**
 * Splits text into chunks of at most `most` characters: after a line break if possible, otherwise after a character.
 */
export function cutText(text: string, most: number): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < text.length; ) {
    const end = endOfPiece(text, at, most);
    pieces.push({ text: text.slice(at, end), about: `characters ${at + 1} to ${end} of ${text.length}` });
    at = end;
  }
  return pieces;
}

function endOfPiece(text: string, at: number, most: number): number {
  if (text.length - at <= most) return text.length;
  const line = text.slice(at, at + most).lastIndexOf('\n');
  return line >= 0 ? at + line + 1 : characterEnd(text, at, at + most);
}

/** Maximum number of marks and joiners that are treated as part of the preceding character. */
const longestCharacter = 16;
const joins = /\p{M}|\u200d|[\u{1f3fb}-\u{1f3ff}]/u;

/**
 * Returns the last position up to `end` that does not split a user-perceived character. If there is none, returns
 * `end`, adjusted so that it does not split a surrogate pair.
 */
export function characterEnd(text: string, at: number, end: number): number {
  const whole = isLowSurrogate(text, end) && isHighSurrogate(text, end - 1) ? end - 1 : end;
  let position = whole;
  for (let steps = 0; steps < longestCharacter && position > at + 1; steps++) {
    if (!isJoined(text, position)) return position;
    position -= isLowSurrogate(text, position - 1) ? 2 : 1;
  }
  return Math.max(whole, at + 1);
}

function isJoined(text: string, position: number): boolean {
  const next = text.codePointAt(position);
  const before = text[position - 1];
  if (before === '\r' && text[position] === '\n') return true;
  return before === '\u200d' || (next !== undefined && joins.test(String.fromCodePoint(next)));
}

function isHighSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800;
}

function isLowSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
