import { OutboundError } from '../errors.ts';

/** The sentences say what happened, never where: no address, no port, no path, no query. */
const sentences = {
  dns: 'the upstream host name was not found',
  unreachable: 'no connection to the upstream could be made',
  tls: 'the upstream did not offer a valid TLS certificate or connection',
  reset: 'the upstream closed the connection before it had answered',
  malformed: 'the upstream answered with something that is not valid HTTP',
} as const;

const reasons: [RegExp, keyof typeof sentences][] = [
  [/^(ENOTFOUND|EAI_\w+|ENODATA|ESERVFAIL)$/, 'dns'],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'unreachable'],
  [/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|ERR_OSSL|EPROTO)/, 'tls'],
  [/^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)/, 'malformed'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED)$/, 'reset'],
];

/** Turns whatever Node or undici report into one of our reasons. */
export function toOutboundError(error: Error): OutboundError {
  if (error instanceof OutboundError) return error;
  const inner = error instanceof AggregateError ? error.errors.find((e) => e instanceof Error) : undefined;
  if (inner instanceof Error) return toOutboundError(inner);
  if (error.cause instanceof OutboundError) return error.cause;
  // undici leaves the code out when even the first bytes are not HTTP.
  const code = String((error as NodeJS.ErrnoException).code ?? (error.name === 'HTTPParserError' ? 'HPE_' : ''));
  const reason = reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'unreachable';
  return new OutboundError(reason, sentences[reason]);
}
