import { getPublicSuffix } from 'tldts';

/** Section of the public suffix list: names of registries, or names that companies added for their customers. */
export type SuffixSection = 'icann' | 'private';

/**
 * Returns the section of the public suffix list that lets people have names directly below this host name, or
 * undefined if its owner decides who has one.
 */
export function findSuffixSection(hostname: string): SuffixSection | undefined {
  if (isPublicSuffix(hostname, false)) return 'icann';
  return isPublicSuffix(hostname, true) ? 'private' : undefined;
}

/** Also returns true for the parent of a wildcard rule, such as `kawasaki.jp`. */
function isPublicSuffix(hostname: string, allowPrivateDomains: boolean): boolean {
  const suffix = getPublicSuffix(`x.${hostname}`, { allowPrivateDomains, extractHostname: false });
  return suffix !== null && suffix.length >= hostname.length;
}
