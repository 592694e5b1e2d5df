/** Control, bidirectional and zero-width characters would let a name pose as something else. */
const hidden = /[^\P{C}\n\t]/gu;

/** A name or text from outside, with its invisible characters made visible. */
export function visible(text: string): string {
  return text.replaceAll(hidden, '\ufffd');
}

/** JSON whose invisible characters are written as escapes, so that it reads back as the same value. */
export function visibleJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? '';
  return text.replaceAll(hidden, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
