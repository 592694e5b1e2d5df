import { domainToASCII } from 'node:url';

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const nameForm = new RegExp(`^${label}(?:\\.${label})*$`);
const longest = 253;
/** Characters that would end the host of a URL, or that URLs decode to another character. */
const notOfHosts = /[\s/?#@%:\\]/;
/** Matches a last label that makes URL parsers read a name as an IPv4 address, as in `10.1` (URL standard, 3.5). */
const endsInNumber = /(?:^|\.)(?:\d+|0x[\da-f]*)$/;

/**
 * Converts a host name to its form in URLs: lowercase ASCII without a trailing dot. Returns undefined for addresses and
 * anything else.
 */
export function hostNameOf(text: string): string | undefined {
  if (notOfHosts.test(text)) return undefined;
  const bare = text.toLowerCase().replace(/\.$/, '');
  // The conversion time grows with the square of the length.
  const name = endsInNumber.test(bare) || bare.length > longest ? '' : domainToASCII(bare);
  return name.length <= longest && nameForm.test(name) ? name : undefined;
}
