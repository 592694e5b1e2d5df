/**
 * Lowercases an address, so that it can be compared with that of an invitation. Only ASCII letters change: by Unicode's
 * rules, the Kelvin sign becomes a k, and the address that of another person. Invitations accept ASCII addresses only.
 */
export function foldAddressCase(address: string): string {
  return address.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * Maximum length of an address in characters. A longer one is never cut, because it would become another person's
 * address.
 */
export const maxAddressLength = 200;

/** Matches a visible character that separates nothing in a list of addresses, in any script. */
const addressCharacter = String.raw`[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\s,;:<>()[\]{}"\\@\uff0c\u3001\uff1b\uff1a\u061b\u060c\uff20\ufe50\ufe51\ufe54\ufe55\ufe6b]`;
const singleAddressPattern = new RegExp(`^${addressCharacter}+@${addressCharacter}+$`, 'u');

/**
 * Returns true for exactly one bare address. Mail libraries read commas, semicolons, brackets, quotes, and spaces as
 * lists, groups, and display names, so such a text could add a recipient. Invitations accept fewer characters.
 */
export function isSingleAddress(text: string): boolean {
  return text.length <= maxAddressLength && singleAddressPattern.test(text);
}
