import { OutboundError, type OutboundReason } from '@toolhost/errors/errors';
import { getLiteralAddress } from './address.ts';
import { NotHttpError } from './response-reader.ts';

/**
 * Explanation of some error codes of Node and OpenSSL. The text names the host, but no address, path, or query.
 */
type Failure = [codes: RegExp, reason: OutboundReason, text: (host: string) => string];

const createCertificateFailure = (codes: RegExp, problem: string): Failure => [
  codes,
  'tls',
  (host) => `the TLS certificate of ${host} ${problem}`,
];
const untrustedAuthority = 'is not signed by a trusted authority';
const noResources = 'this service has no file descriptor or port left for a connection to';

/** Explanations of error codes. The first match applies. */
const failures: readonly Failure[] = [
  [/^(ENOTFOUND|ENODATA|EAI_NONAME|EAI_NODATA)$/, 'dns', (host) => `the host ${host} was not found`],
  [/^(EAI_\w+|ESERVFAIL)$/, 'dns', (host) => `the name ${host} could not be resolved; try again in a moment`],
  [/^ECONNREFUSED$/, 'unreachable', (host) => `${host} refused the connection`],
  [/^ETIMEDOUT$/, 'unreachable', (host) => `${host} did not accept a connection in time`],
  [/^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, 'unreachable', (host) => `there is no route to ${host}`],
  [
    /^(EMFILE|ENFILE|ENOBUFS|EADDRNOTAVAIL)$/,
    'no_connection',
    (host) => `${noResources} ${host}; try again in a moment`,
  ],
  [/^EPROXY$/, 'unreachable', (host) => `the egress proxy could not connect to ${host}`],
  createCertificateFailure(/^CERT_HAS_EXPIRED$/, 'has expired'),
  createCertificateFailure(/^CERT_NOT_YET_VALID$/, 'is not valid yet'),
  createCertificateFailure(/^CERT_REVOKED$/, 'has been revoked'),
  createCertificateFailure(/^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/, 'is self-signed'),
  createCertificateFailure(/^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, 'is for another host name'),
  createCertificateFailure(/^(UNABLE_TO_|CERT_UNTRUSTED|CERT_CHAIN_TOO_LONG|INVALID_CA)/, untrustedAuthority),
  createCertificateFailure(/^CERT_/, 'is not valid'),
  [
    /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/,
    'tls',
    (host) => `no TLS connection to ${host} could be established; check that it uses https on this port`,
  ],
  [/^(ECONNRESET|EPIPE)$/, 'reset', () => 'the upstream closed the connection before it responded'],
];
const defaultFailure: Failure = [/^/, 'unreachable', (host) => `no connection to ${host} could be established`];

/** Maps an error of Node or of the response reader for a request to `origin` to one of the reasons of this service. */
export function toOutboundError(error: Error, origin: string): OutboundError {
  if (error instanceof OutboundError) return error;
  if (error.cause instanceof OutboundError) return error.cause;
  if (error instanceof NotHttpError)
    return new OutboundError(
      'malformed',
      `the response of ${describeHost(origin)} is not plain HTTP/1; found ${error.problem}`,
    );
  if (error instanceof AggregateError) {
    const errors = error.errors.filter((candidate) => candidate instanceof Error);
    const informative = errors.find((candidate) => !noRoute.test(getCode(candidate))) ?? errors[0];
    if (informative) return toOutboundError(informative, origin);
  }
  const code = getCode(error);
  const [, reason, format] = failures.find(([codes]) => codes.test(code)) ?? defaultFailure;
  return new OutboundError(reason, format(describeHost(origin)));
}

/**
 * Codes that a machine without IPv6 reports for half of the addresses. The errors of the other half are more
 * informative.
 */
const noRoute = /^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT)$/;

function getCode(error: Error): string {
  return String((error as NodeJS.ErrnoException).code ?? '');
}

/** Returns the host if it is a name, or a generic term if it is an address. */
export function describeHost(origin: string): string {
  const { host, hostname } = new URL(origin);
  return getLiteralAddress(hostname) === undefined ? host : 'the upstream';
}
