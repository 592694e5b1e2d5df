/** A name from outside on one line. Control characters become U+FFFD, as pages show them: PostgreSQL stores no NUL. */
export function onOneLine(name: string): string {
  return name
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replaceAll(/\p{Cc}/gu, '\ufffd');
}

/**
 * Characters that would let a name pose as something else: control, bidirectional, zero-width and blank ones. Variation
 * selectors, and the joiner between two pictures of an emoji, are allowed, because they are seen.
 */
export const unseenCharacters =
  /(?!\ufe0e|\ufe0f|(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)\u200d(?=\p{Extended_Pictographic}))(?:[^\P{C}\n\t]|\p{Default_Ignorable_Code_Point})/gu;
