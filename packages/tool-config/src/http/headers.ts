import { foldHeaderName } from './parameter-names.ts';

/**
 * Rules for the header names and values that a configuration may set on upstream requests. For security, no header of
 * the client is forwarded by default.
 */

/** Header on every request that Toolhost sends. An incoming request that has it was sent by a Toolhost tool. */
export const hopHeader = 'toolhost-hop';

const headerNamePattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;

/** Matches an HTTP field value: visible latin-1 with inner spaces and tabs (RFC 9110, 5.5). */
const headerValuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

const forbiddenHeaders = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'forwarded',
  'via',
  'accept-encoding',
  'traceparent',
  'tracestate',
  hopHeader,
]);

const forbiddenPrefixes = ['proxy-', 'x-forwarded-', 'mcp-', 'sec-'];

/** Headers that Toolhost sets if a tool does not, by folded name. */
const descriptiveHeaders = new Map(
  ['Accept', 'Content-Type', 'User-Agent'].map((name) => [foldHeaderName(name), name]),
);

/**
 * Returns the name under which a header is sent. CGI and its descendants read `User_Agent` as `User-Agent`, other
 * receivers do not. Such a spelling of a header that Toolhost sets is therefore replaced with the usual one.
 */
export function toSentHeaderName(name: string): string {
  const folded = foldHeaderName(name);
  return folded === name.toLowerCase() ? name : (descriptiveHeaders.get(folded) ?? name);
}

/** Returns the value of a header by its folded name. */
export function getHeader(headers: { readonly [name: string]: string }, folded: string): string | undefined {
  return Object.entries(headers).find(([name]) => foldHeaderName(name) === folded)?.[1];
}

export function isDescribingHeader(name: string): boolean {
  return descriptiveHeaders.has(foldHeaderName(name));
}

export function isHeaderName(name: string): boolean {
  return headerNamePattern.test(name);
}

export function isHeaderValue(value: string): boolean {
  return headerValuePattern.test(value) && value === value.trim();
}

/** Returns the reason why a header of this name cannot be set, or undefined if it can. */
export function getHeaderNameProblem(name: string): string | undefined {
  if (!isHeaderName(name))
    return `found ${JSON.stringify(name)}; allowed: a name without spaces or colons, such as X-Api-Key`;
  const folded = foldHeaderName(name);
  if (folded === 'cookie')
    return 'cookies are set by a credential of type Cookie and by arguments with "in": "cookie"; use these instead';
  if (forbiddenHeaders.has(folded) || forbiddenPrefixes.some((prefix) => folded.startsWith(prefix))) {
    return 'this header is set by the service or by HTTP itself; remove it';
  }
  return undefined;
}

/**
 * Client headers that contain its credentials, reveal its address, or let it choose a different request than the tool
 * makes.
 */
const clientHeaderPattern =
  /authori[sz]|authenticat|(?:^|-)auth(?:-|$)|(?:api|access)-?key|token|secret|passw|credential|cookie|signature|jwt|(?:^|-)ip$|^content-|^accept$|^user-agent$|^range$|^if-|method|original-url|rewrite-url/;

/** Returns the reason why a client header cannot be forwarded, or undefined if it can. */
export function getForwardedNameProblem(name: string): string | undefined {
  if (!clientHeaderPattern.test(foldHeaderName(name))) return getHeaderNameProblem(name);
  return 'this header is never forwarded, because it contains a credential or an address or controls the request itself; remove it';
}

/** Returns the media type of a Content-Type header in lower case, without parameters; empty if there is none. */
export function parseMediaType(contentType: string | undefined): string {
  if (contentType === undefined || contentType === 'application/json') return contentType ?? '';
  return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}

/** Matches a media type with or without parameters (RFC 9110, 8.3.1), of a length that servers accept. */
export const mediaTypePattern =
  /^(?=.{1,200}$)[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(?:[ \t]?;[ \t]?[\w!#$&^.+-]{1,50}=(?:[\w!#$&^.+-]{1,100}|"[ !#-[\]-~]{0,100}"))*$/;

/**
 * Parses a list of media types, separated by commas. Entries may be ranges such as `image/*`, which `types` leaves out.
 */
export function parseMediaTypeChoices(text: string): { types: string[]; isSingle: boolean } | undefined {
  const entries = text.split(/\s*,\s*/);
  const types = entries.filter((type) => mediaTypePattern.test(type));
  const ranges = entries.filter((type) => /^(?:\*|[\w!#$&^.+-]{1,100})\/\*$/.test(type));
  if (types.length + ranges.length < entries.length) return undefined;
  return { types, isSingle: entries.length === 1 && ranges.length === 0 };
}

/** Media types that call records may name. Any other media type could contain text that an upstream chose. */
const commonMediaTypes: ReadonlySet<string> = new Set([
  ...['json', 'problem+json', 'ld+json', 'hal+json', 'vnd.api+json', 'geo+json', 'xml', 'problem+xml', 'soap+xml'].map(
    (name) => `application/${name}`,
  ),
  ...['x-ndjson', 'yaml', 'octet-stream', 'pdf', 'zip', 'gzip', 'javascript', 'x-www-form-urlencoded', 'msgpack'].map(
    (name) => `application/${name}`,
  ),
  ...['grpc', 'protobuf', 'x-protobuf', 'atom+xml', 'rss+xml', 'xhtml+xml', 'vnd.ms-excel'].map(
    (name) => `application/${name}`,
  ),
  ...['plain', 'html', 'xml', 'csv', 'json', 'markdown', 'css', 'javascript', 'event-stream', 'calendar', 'yaml'].map(
    (name) => `text/${name}`,
  ),
  ...['png', 'jpeg', 'gif', 'webp', 'svg+xml', 'avif', 'tiff', 'bmp'].map((name) => `image/${name}`),
  ...['mpeg', 'wav', 'ogg', 'mp4', 'webm', 'flac', 'aac'].flatMap((name) => [`audio/${name}`, `video/${name}`]),
  ...['mixed', 'form-data', 'related', 'byteranges', 'alternative'].map((name) => `multipart/${name}`),
]);

/** Returns the media type of a Content-Type if it is a common one, and otherwise a text without any part of it. */
export function describeMediaType(contentType: string | undefined): string {
  const type = parseMediaType(contentType);
  if (type === '') return 'no media type';
  return commonMediaTypes.has(type) ? type : 'another media type';
}

/** Methods in wide use (RFC 9110, 4918, 5323, 3253, and the QUERY draft). */
export const methods = [
  ...(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const),
  ...(['QUERY', 'PROPFIND', 'REPORT', 'SEARCH', 'COPY', 'MOVE'] as const),
];

/** Matches methods that a tool may use: any token (RFC 9110, 9.1) except methods that concern the connection. */
export const methodPattern = /^(?!(?:CONNECT|TRACE)$)[!#$%&'*+\-.^_`|~0-9A-Z]+$/;
export const maxMethodLength = 40;

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY', 'PROPFIND', 'REPORT', 'SEARCH']);
const bodilessMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'COPY', 'MOVE']);

/** Returns true if a request of this method only reads (RFC 9110, 9.2.1). */
export function isSafeMethod(method: string): boolean {
  return safeMethods.has(method);
}

/** Returns true if requests of this method have no body unless the tool sets one. */
export function hasOptionalBody(method: string): boolean {
  return bodilessMethods.has(method);
}

/** Returns true if a request of this method can remove or replace data. */
export function isDestructiveMethod(method: string): boolean {
  return method === 'DELETE' || method === 'COPY' || method === 'MOVE';
}
