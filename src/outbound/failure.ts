import { OutboundError, type OutboundReason } from '../errors.ts';
import { literalAddress } from './address.ts';

/** Meaning of the error codes of Node, OpenSSL and undici. The text names the host, but no address, path or query. */
type Failure = { codes: RegExp; reason: OutboundReason; text: (host: string) => string };

const certificate = (codes: RegExp, fault: string): Failure => ({
  codes,
  reason: 'tls',
  text: (host) => `the TLS certificate of ${host} ${fault}`,
});

/** The first match counts. */
const failures: readonly Failure[] = [
  {
    codes: /^(ENOTFOUND|ENODATA|EAI_NONAME|EAI_NODATA)$/,
    reason: 'dns',
    text: (host) => `there is no host ${host}: the name was not found`,
  },
  { codes: /^(EAI_\w+|ESERVFAIL)$/, reason: 'dns', text: (host) => `the name ${host} could not be looked up just now` },
  { codes: /^ECONNREFUSED$/, reason: 'unreachable', text: (host) => `${host} refused the connection` },
  {
    codes: /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
    reason: 'unreachable',
    text: (host) => `${host} did not accept a connection in time`,
  },
  {
    codes: /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/,
    reason: 'unreachable',
    text: (host) => `there is no route to ${host}`,
  },
  {
    codes: /^(EMFILE|ENFILE|ENOBUFS|EADDRNOTAVAIL)$/,
    reason: 'no_connection',
    text: (host) =>
      `this service has no file descriptor or port left for a connection to ${host}; try again in a moment`,
  },
  {
    codes: /^EPROXY$/,
    reason: 'unreachable',
    text: (host) => `the proxy that this service goes out through made no connection to ${host}`,
  },
  certificate(/^CERT_HAS_EXPIRED$/, 'has expired'),
  certificate(/^CERT_NOT_YET_VALID$/, 'is not valid yet'),
  certificate(/^CERT_REVOKED$/, 'has been revoked'),
  certificate(/^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/, 'is self-signed'),
  certificate(/^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, 'is for another host name'),
  certificate(
    /^(UNABLE_TO_|CERT_UNTRUSTED|CERT_CHAIN_TOO_LONG|INVALID_CA)/,
    'is not signed by an authority that is trusted here',
  ),
  certificate(/^CERT_/, 'is not valid'),
  {
    codes: /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/,
    reason: 'tls',
    text: (host) => `no TLS connection to ${host} could be made; does it speak https on this port?`,
  },
  {
    codes: /^INTERIM$/,
    reason: 'malformed',
    text: () => 'the upstream answered with 101, which no request had asked for',
  },
  {
    codes: /^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|ERR_ASSERTION)/,
    reason: 'malformed',
    text: () => 'the upstream answered with something that is not valid HTTP',
  },
  {
    codes: /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED)$/,
    reason: 'reset',
    text: () => 'the upstream closed the connection before it had answered',
  },
];

const otherwise: Failure = {
  codes: /^/,
  reason: 'unreachable',
  text: (host) => `no connection to ${host} could be made`,
};

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
  const failure = failures.find(({ codes }) => codes.test(code)) ?? otherwise;
  return new OutboundError(failure.reason, failure.text(hostIn(origin)));
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
