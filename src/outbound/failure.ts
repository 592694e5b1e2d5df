import { OutboundError, type OutboundReason } from '../errors.ts';
import { literalAddress } from './address.ts';

/** What some error codes of Node, OpenSSL and undici mean. The text names the host, but no address, path or query. */
type Failure = [codes: RegExp, reason: OutboundReason, text: (host: string) => string];

const certificate = (codes: RegExp, fault: string): Failure => [
  codes,
  'tls',
  (host) => `the TLS certificate of ${host} ${fault}`,
];
const wrongAuthority = 'is not signed by an authority that is trusted here';
const noneLeft = 'this service has no file descriptor or port left for a connection to';
const notHttp = /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|ERR_ASSERTION)/;

/** The first match counts. */
const failures: readonly Failure[] = [
  [/^(ENOTFOUND|ENODATA|EAI_NONAME|EAI_NODATA)$/, 'dns', (host) => `there is no host ${host}: the name was not found`],
  [/^(EAI_\w+|ESERVFAIL)$/, 'dns', (host) => `the name ${host} could not be looked up just now`],
  [/^ECONNREFUSED$/, 'unreachable', (host) => `${host} refused the connection`],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'unreachable', (host) => `${host} did not accept a connection in time`],
  [/^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, 'unreachable', (host) => `there is no route to ${host}`],
  [/^(EMFILE|ENFILE|ENOBUFS|EADDRNOTAVAIL)$/, 'no_connection', (host) => `${noneLeft} ${host}; try again in a moment`],
  [/^EPROXY$/, 'unreachable', (host) => `the proxy that this service goes out through made no connection to ${host}`],
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
    (host) => `no TLS connection to ${host} could be made; does it speak https on this port?`,
  ],
  [/^INTERIM$/, 'malformed', () => 'the upstream answered with 101, which no request had asked for'],
  [notHttp, 'malformed', () => 'the upstream answered with something that is not valid HTTP'],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED)$/,
    'reset',
    () => 'the upstream closed the connection before it had answered',
  ],
];
const otherwise: Failure = [/^/, 'unreachable', (host) => `no connection to ${host} could be made`];

/** Maps an error that Node or undici reports for a request to `origin` to one of our reasons. */
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

/** What undici says of 101, and of a status below 100, with the code of a lost connection. */
const interimFaults = new Set(['bad response', 'bad upgrade']);
const interimCode = 'INTERIM';

/** Codes that a machine without IPv6 reports for half of the addresses; the errors of the other half say more. */
const noRoute = /^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT)$/;

function codeOf(error: Error): string {
  if (interimFaults.has(error.message)) return interimCode;
  // Undici omits the code when even the first bytes are not HTTP.
  return String((error as NodeJS.ErrnoException).code ?? (error.name === 'HTTPParserError' ? 'HPE_' : ''));
}

/** The host if it is a name; a general term if it is an address. */
function hostIn(origin: string): string {
  const { host, hostname } = new URL(origin);
  return literalAddress(hostname) === undefined ? host : 'the upstream';
}
