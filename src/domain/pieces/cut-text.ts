import type { Piece } from './pieces.ts';

/** Cuts a text behind its lines, and a line that is too long behind a character, into pieces of at most `most` characters. */
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

/** How many marks and joined signs at most belong to the character before them. */
const longestCharacter = 16;
const joins = /\p{M}|\u200d|[\u{1f3fb}-\u{1f3ff}]/u;

/** The last position up to `end` at which no character of people is cut; `end` without half a surrogate pair otherwise. */
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
