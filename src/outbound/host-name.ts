import { domainToASCII } from 'node:url';

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const nameForm = new RegExp(`^${label}(?:\\.${label})*$`);
const longest = 253;
/** What would end the host of a URL, or stand for another character there. */
const notOfHosts = /[\s/?#@%:\\]/;
/** A last label that makes URLs read a name as an IPv4 address, as in `10.1` (URL standard, 3.5). */
const endsInNumber = /(?:^|\.)(?:\d+|0x[\da-f]*)$/;

/** A host name as URLs hold it, in lower-case ASCII without a dot at its end. Undefined for addresses and anything else. */
export function hostNameOf(text: string): string | undefined {
  if (notOfHosts.test(text)) return undefined;
  const bare = text.toLowerCase().replace(/\.$/, '');
  // The conversion takes a time that grows with the square of the length.
  const name = endsInNumber.test(bare) || bare.length > longest ? '' : domainToASCII(bare);
  return name.length <= longest && nameForm.test(name) ? name : undefined;
}
