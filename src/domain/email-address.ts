/**
 * An address as invitations compare it. Only ASCII letters have two cases here: by the rules of Unicode the Kelvin sign
 * would become a k, and so the address of somebody else. Invitations hold ASCII addresses only.
 */
export function foldedAddress(address: string): string {
  return address.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Most characters of an address; a longer one is never cut, because it would become the address of somebody else. */
export const longestAddress = 200;
