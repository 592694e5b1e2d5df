/**
 * Joiners with a visible effect: between the pictures of an emoji, and where they shape letters, as in Persian and
 * Hindi. They have no effect on Latin, Greek, and Cyrillic letters.
 */
const visibleJoiner = String.raw`(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)\u200d(?=\p{Extended_Pictographic})|(?<=(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])[\p{L}\p{M}])[\u200c\u200d](?=[\p{L}\p{M}])`;

/**
 * Characters that would let a name pose as something else: control, bidirectional, zero-width, and blank characters.
 * Variation selectors and visible joiners are allowed.
 */
export const invisibleCharacters = new RegExp(
  String.raw`(?!\ufe0e|\ufe0f|${visibleJoiner})(?:[^\P{C}\n\t]|\p{Default_Ignorable_Code_Point})`,
  'gu',
);

/**
 * Characters that make a text look like another one, or that end its line, including those that Unicode displays as
 * nothing and the blank Braille pattern. Visible joiners are allowed, as are variation selectors after a character.
 */
export const deceptiveCharacters = new RegExp(
  String.raw`(?!${visibleJoiner}|(?<=[\p{L}\p{N}\p{P}\p{S}])[\ufe0e\ufe0f])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]`,
  'u',
);
