/**
 * An address as invitations compare it. Only ASCII letters have two cases here: by the rules of Unicode the Kelvin sign
 * would become a k, and so the address of somebody else. Invitations hold ASCII addresses only.
 */
export function foldedAddress(address: string): string {
  return address.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Most characters of an address; a longer one is never cut, because it would become the address of somebody else. */
export const longestAddress = 200;

const addressCharacter = String.raw`[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\s,;:<>()[\]{}"\\@，、；：؛،＠﹐﹑﹔﹕﹫]`;
const oneAddress = new RegExp(`^${addressCharacter}+@${addressCharacter}+$`, 'u');

/**
 * Returns true for exactly one bare address. Mail libraries read commas, semicolons, brackets, quotes, and spaces as lists,
 * groups, and display names, so such a text could add a recipient. Invitations accept fewer characters.
 */
export function isOneAddress(text: string): boolean {
  return text.length <= longestAddress && oneAddress.test(text);
}
