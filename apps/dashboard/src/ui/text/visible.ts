import { invisibleCharacters } from '@toolhost/tool-config/invisible-characters';

/** Makes invisible characters in external text visible. */
export function toVisible(text: string): string {
  return text.replaceAll(invisibleCharacters, '\ufffd');
}

/** Serializes JSON with invisible characters escaped, so that it parses back to the same value. */
export function toVisibleJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.replaceAll(invisibleCharacters, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
