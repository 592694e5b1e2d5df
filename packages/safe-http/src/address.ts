import ipaddr from 'ipaddr.js';

/** Ranges that ipaddr.js classifies as unicast but that must not be reached. */
const blockedIpv4Ranges = ['168.63.129.16/32', '192.0.0.0/24', '192.88.99.0/24', '198.18.0.0/15', '0.0.0.0/8'].map(
  (range) => ipaddr.IPv4.parseCIDR(range),
);

const globalUnicastV6 = ipaddr.IPv6.parseCIDR('2000::/3');
const blockedIpv6Ranges = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20', '64:ff9b::/96'].map((range) =>
  ipaddr.IPv6.parseCIDR(range),
);

/**
 * Returns true if an address is on the public internet. Everything that is not clearly public is rejected: private,
 * loopback, link-local, shared, documentation, multicast, and reserved ranges, and IPv6 forms that embed an IPv4
 * address.
 */
export function isPublicAddress(addressText: string): boolean {
  if (!ipaddr.isValid(addressText)) return false;
  const address = ipaddr.process(addressText);
  if (address.kind() === 'ipv4') {
    return address.range() === 'unicast' && !blockedIpv4Ranges.some((range) => (address as ipaddr.IPv4).match(range));
  }
  const v6 = address as ipaddr.IPv6;
  return v6.match(globalUnicastV6) && v6.range() === 'unicast' && !blockedIpv6Ranges.some((range) => v6.match(range));
}

/** Reasons for rejecting an address, as metric labels. */
export const blockedClasses = [
  'loopback',
  'private',
  'link_local',
  'shared',
  'embedded_ipv4',
  'multicast',
  'unspecified',
  'reserved',
] as const;
export type BlockedClass = (typeof blockedClasses)[number];

const classByRange: Record<string, BlockedClass> = {
  loopback: 'loopback',
  private: 'private',
  uniqueLocal: 'private',
  linkLocal: 'link_local',
  deprecatedSiteLocal: 'link_local',
  carrierGradeNat: 'shared',
  ipv4Mapped: 'embedded_ipv4',
  rfc6145: 'embedded_ipv4',
  rfc6052: 'embedded_ipv4',
  '6to4': 'embedded_ipv4',
  teredo: 'embedded_ipv4',
  multicast: 'multicast',
  broadcast: 'multicast',
  unspecified: 'unspecified',
};

/** Returns the class of an address that is not public. */
export function getBlockedClass(address: string): BlockedClass {
  return (ipaddr.isValid(address) && classByRange[ipaddr.process(address).range()]) || 'reserved';
}

/** Returns the IP address in a URL's host, without the brackets of IPv6, or undefined if the host is a name. */
export function getLiteralAddress(hostname: string): string | undefined {
  const unbracketed = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  // For a name, the library would throw and catch, which takes a tenth of the time of a configuration check.
  const isAddress = /^[\d.]+$/.test(unbracketed)
    ? ipaddr.IPv4.isValidFourPartDecimal(unbracketed)
    : ipaddr.IPv6.isValid(unbracketed);
  return isAddress ? unbracketed : undefined;
}
