import { OutboundError, type OutboundReason } from '../errors.ts';
import { literalAddress } from './address.ts';

/**
 * Explanation of some error codes of Node, OpenSSL, and undici. The text names the host, but no address, path, or
 * query.
 */
type Failure = [codes: RegExp, reason: OutboundReason, text: (host: string) => string];

const certificate = (codes: RegExp, fault: string): Failure => [
  codes,
  'tls',
  (host) => `the TLS certificate of ${host} ${fault}`,
];
const wrongAuthority = 'is not signed by a trusted authority';
const noneLeft = 'this service has no file descriptor or port left for a connection to';
const notHttp = /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|ERR_ASSERTION)/;

/** Explanations of error codes. The first match applies. */
const failures: readonly Failure[] = [
  [/^(ENOTFOUND|ENODATA|EAI_NONAME|EAI_NODATA)$/, 'dns', (host) => `the host ${host} was not found`],
  [/^(EAI_\w+|ESERVFAIL)$/, 'dns', (host) => `the name ${host} could not be resolved; try again in a moment`],
  [/^ECONNREFUSED$/, 'unreachable', (host) => `${host} refused the connection`],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'unreachable', (host) => `${host} did not accept a connection in time`],
  [/^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, 'unreachable', (host) => `there is no route to ${host}`],
  [/^(EMFILE|ENFILE|ENOBUFS|EADDRNOTAVAIL)$/, 'no_connection', (host) => `${noneLeft} ${host}; try again in a moment`],
  [/^EPROXY$/, 'unreachable', (host) => `the egress proxy could not connect to ${host}`],
  certificate(/^CERT_HAS_EXPIRED$/, 'has expired'),
  certificate(/^CERT_NOT_YET_VALID$/, 'is not valid yet'),
  certificate(/^CERT_REVOKED$/, 'has been revoked'),
  certificate(/^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/, 'is self-signed'),
  certificate(/^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, 'is for another host name'),
  certificate(/^(UNABLE_TO_|CERT_UNTRUSTED|CERT_CHAIN_TOO_LONG|INVALID_CA)/, wrongAuthority),
  certificate(/^CERT_/, 'is not valid'),
  [
    /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/,
    'tls',
    (host) => `no TLS connection to ${host} could be established; check that it uses https on this port`,
  ],
  [/^INTERIM$/, 'malformed', () => 'the upstream responded with 101, which was not requested'],
  [notHttp, 'malformed', () => 'the upstream response is not valid HTTP'],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED)$/,
    'reset',
    () => 'the upstream closed the connection before it responded',
  ],
];
const otherwise: Failure = [/^/, 'unreachable', (host) => `no connection to ${host} could be established`];

/** Maps an error of Node or undici for a request to `origin` to one of the reasons of this service. */
export function toOutboundError(error: Error, origin: string): OutboundError {
  if (error instanceof OutboundError) return error;
  if (error.cause instanceof OutboundError) return error.cause;
  if (error instanceof AggregateError) {
    const ofEach = error.errors.filter((one) => one instanceof Error);
    const telling = ofEach.find((one) => !noRoute.test(codeOf(one))) ?? ofEach[0];
    if (telling) return toOutboundError(telling, origin);
  }
  const code = codeOf(error);
  const [, reason, text] = failures.find(([codes]) => codes.test(code)) ?? otherwise;
  return new OutboundError(reason, text(hostIn(origin)));
}

/** Undici's messages for 101 and for a status below 100. Their code is that of a lost connection. */
const interimFaults = new Set(['bad response', 'bad upgrade']);
const interimCode = 'INTERIM';

/**
 * Codes that a machine without IPv6 reports for half of the addresses. The errors of the other half are more
 * informative.
 */
const noRoute = /^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT)$/;

function codeOf(error: Error): string {
  if (interimFaults.has(error.message)) return interimCode;
  // Undici omits the code if even the first bytes are not HTTP.
  return String((error as NodeJS.ErrnoException).code ?? (error.name === 'HTTPParserError' ? 'HPE_' : ''));
}

/** Returns the host if it is a name, or a generic term if it is an address. */
function hostIn(origin: string): string {
  const { host, hostname } = new URL(origin);
  return literalAddress(hostname) === undefined ? host : 'the upstream';
}
