import { unseenCharacters } from '../../../../src/domain/unseen-characters.ts';

/** A name or text from outside, with its invisible characters made visible. */
export function visible(text: string): string {
  return text.replaceAll(unseenCharacters, '\ufffd');
}

/** JSON whose invisible characters are written as escapes, so that it reads back as the same value. */
export function visibleJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.replaceAll(unseenCharacters, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
