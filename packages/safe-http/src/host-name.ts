import { domainToASCII } from 'node:url';

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const namePattern = new RegExp(`^${label}(?:\\.${label})*$`);
const maxLength = 253;
/** Characters that would end the host of a URL, or that URLs decode to another character. */
const forbiddenCharacters = /[\s/?#@%:\\]/;
/** Matches a last label that makes URL parsers read a name as an IPv4 address, as in `10.1` (URL standard, 3.5). */
const numericLastLabel = /(?:^|\.)(?:\d+|0x[\da-f]*)$/;

/**
 * Converts a host name to its form in URLs: lowercase ASCII without a trailing dot. Returns undefined for addresses and
 * anything else.
 */
export function toHostName(text: string): string | undefined {
  if (forbiddenCharacters.test(text)) return undefined;
  const withoutDot = text.toLowerCase().replace(/\.$/, '');
  // The conversion time grows with the square of the length.
  const name = numericLastLabel.test(withoutDot) || withoutDot.length > maxLength ? '' : domainToASCII(withoutDot);
  return name.length <= maxLength && namePattern.test(name) ? name : undefined;
}
