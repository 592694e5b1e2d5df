/**
 * Joiners that are seen: between the pictures of an emoji, and where they shape letters, as in Persian and Hindi. Letters
 * of Latin, Greek and Cyrillic have none.
 */
const seenJoiner = String.raw`(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)\u200d(?=\p{Extended_Pictographic})|(?<=(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])[\p{L}\p{M}])[\u200c\u200d](?=[\p{L}\p{M}])`;

/**
 * Characters that would let a name pose as something else: control, bidirectional, zero-width and blank ones. Variation
 * selectors, and joiners that are seen, are allowed.
 */
export const unseenCharacters = new RegExp(
  String.raw`(?!\ufe0e|\ufe0f|${seenJoiner})(?:[^\P{C}\n\t]|\p{Default_Ignorable_Code_Point})`,
  'gu',
);

/** A pattern of these characters but for joiners that are seen; `characters` is the inside of a class of a pattern. */
export function unseenAmong(characters: string): RegExp {
  return new RegExp(`(?!${seenJoiner})[${characters}]`, 'u');
}
