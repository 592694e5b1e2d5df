import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { getLiteralAddress, isPublicAddress } from './address.ts';
import { toHostName } from './host-name.ts';

/** Operator's exceptions to the address guard, from `EGRESS_ALLOW`. No user configuration extends them. */
export type EgressAllow = readonly { host: string | undefined; range: AddressRange | undefined; port: number }[];

type AddressRange = [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * Parses comma-separated entries `host-or-address-or-cidr:port`. `source` is the variable or the file that they are from.
 * @throws Error with a sentence that names the source and the entry
 */
export function parseEgressAllow(text: string, source = 'EGRESS_ALLOW'): EgressAllow {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => parseEntry(entry, source));
}

function parseEntry(entry: string, source: string): EgressAllow[number] {
  const [, target = '', digits] = /^(.+):(\d{1,5})$/.exec(entry) ?? [];
  const port = Number(digits);
  const range = parseRange(target);
  const host = range ? undefined : toHostName(target);
  if (port >= 1 && port <= 65_535 && (range || host !== undefined)) return { host, range, port };
  throw new Error(
    `${source}: found ${JSON.stringify(entry.replace(/^.*@/, '…@').slice(0, 100))}; allowed: host-or-address-or-cidr:port, such as 10.1.2.3:8080, intranet.example.com:80, 10.1.0.0/16:8080 or [fd00::1]:8080; omit the scheme and path, and do not use *`,
  );
}

/** Parses an address or CIDR range, with or without brackets. Returns undefined for anything else. */
function parseRange(target: string): AddressRange | undefined {
  const unbracketed = target.replace(/^\[([^\]]+)\](\/\d+)?$/, '$1$2');
  const [, addressText = '', digits] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(unbracketed) ?? [];
  if (isIP(addressText) === 0) return undefined;
  // An IPv4-mapped IPv6 address is compared as IPv4, and cannot have a prefix length in that form.
  const address = ipaddr.process(addressText);
  const addressBits = address.kind() === 'ipv4' ? 32 : 128;
  if (digits === undefined) return [address, addressBits];
  const isMapped = addressBits === 32 && addressText.includes(':');
  return Number(digits) <= addressBits && !isMapped ? [address, Number(digits)] : undefined;
}

/** Formats the exceptions as text that `parseEgressAllow` accepts. */
export function formatEgressAllow(allow: EgressAllow): string {
  return allow.map(({ host, range, port }) => `${host ?? `${range?.[0].toString()}/${range?.[1]}`}:${port}`).join(',');
}

/**
 * Returns true if the operator permits this address on this port, by the address itself or by the name that resolved to
 * it.
 */
export function isAllowed(allow: EgressAllow, hostname: string, address: string, port: number): boolean {
  return allow.some((entry) => {
    if (entry.port !== port) return false;
    // A trailing dot names the same host.
    if (entry.host !== undefined) return entry.host === hostname.toLowerCase().replace(/\.$/, '');
    if (!entry.range || !ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    return parsed.kind() === entry.range[0].kind() && parsed.match(entry.range as [ipaddr.IPv4, number]);
  });
}

/** Returns true if a connection may be made to `address`, an address of `hostname`. */
export function canConnect(allow: EgressAllow, hostname: string, address: string, port: number): boolean {
  return isPublicAddress(address) || isAllowed(allow, hostname, address, port);
}

const isWebPort = (port: number) => [80, 443, 3000, 4443, 5000, 9443].includes(port) || (port >= 8000 && port <= 8999);
const localNamePattern = /(^|\.)(local|localhost|internal|intranet|lan|home|corp|arpa|invalid|test)$/i;

/**
 * Returns the reason why a configured URL may not be called, decided without a DNS lookup; undefined if it may.
 * `serviceLocation` is the host and path of this service: a tool that calls it would create a loop. Without `allow`,
 * there are no exceptions, and the message mentions none.
 */
export function checkUrl(
  url: URL,
  allow: EgressAllow | undefined,
  serviceLocation: string | undefined,
): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `found ${url.protocol}//; allowed: https://`;
  if (url.username || url.password) return 'a URL must not contain a user name or password; use authentication';
  if (url.hash) return 'a request URL cannot have a #fragment; leave it out';
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  // A trailing dot names the same host.
  const hostname = url.hostname.replace(/\.$/, '');
  const host = url.port ? `${hostname}:${url.port}` : hostname;
  if (serviceLocation !== undefined && `${host}${url.pathname}/`.startsWith(`${serviceLocation}/`))
    return 'a hosted server cannot call this service itself';
  const address = getLiteralAddress(hostname);
  if (allow && isAllowed(allow, hostname, address ?? '', port)) return undefined;
  const problem = checkPublicUrl(url.protocol, hostname, address, port);
  if (problem === undefined || !allow) return problem;
  return `${problem}; the operator can allow it with EGRESS_ALLOW=${hostname}:${port}`;
}

/** Returns why a URL is not callable on the public internet. */
function checkPublicUrl(
  protocol: string,
  hostname: string,
  address: string | undefined,
  port: number,
): string | undefined {
  if (protocol === 'http:') return 'found http://; allowed: https://';
  if (!isWebPort(port)) return `found port ${port}; allowed: web ports such as 443 and 8443`;
  if (address !== undefined) {
    return isPublicAddress(address)
      ? undefined
      : 'found an address that is not on the public internet; allowed: a public one';
  }
  const isLocal = !hostname.includes('.') || localNamePattern.test(hostname);
  return isLocal ? `found ${hostname}, which is not a public name; allowed: names on the public internet` : undefined;
}
