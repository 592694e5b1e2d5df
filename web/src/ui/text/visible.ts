import { unseenCharacters } from '../../../../src/domain/unseen-characters.ts';

/** Makes invisible characters in external text visible. */
export function visible(text: string): string {
  return text.replaceAll(unseenCharacters, '\ufffd');
}

/** Serializes JSON with invisible characters escaped, so that it parses back to the same value. */
export function visibleJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.replaceAll(unseenCharacters, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
