import { foldedHeader } from './parameter-names.ts';

/** Which header names and values a configuration may set on the upstream request (security: built from nothing). */

/** The header on every request that this service sends. An incoming request that has it was sent by one of our tools. */
export const hopHeader = 'toolhost-hop';

const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;

/** Visible latin-1 with inner spaces and tabs: what an HTTP field value may hold (RFC 9110, 5.5). */
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

const forbidden = new Set([
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

/** Headers that the service sets where a tool does not, by their folded names. */
const describing = new Map(['Accept', 'Content-Type', 'User-Agent'].map((name) => [foldedHeader(name), name]));

/**
 * The name under which a header is sent. What CGI and its descendants read as a header that the service sets is that
 * header: `User_Agent` beside a `User-Agent` would be a second one to them, and none to others.
 */
export function sentHeaderName(name: string): string {
  const folded = foldedHeader(name);
  return folded === name.toLowerCase() ? name : (describing.get(folded) ?? name);
}

/** The value of a header by its folded name. */
export function headerOf(headers: { readonly [name: string]: string }, folded: string): string | undefined {
  return Object.entries(headers).find(([name]) => foldedHeader(name) === folded)?.[1];
}

export function isDescribingHeader(name: string): boolean {
  return describing.has(foldedHeader(name));
}

export function isHeaderName(name: string): boolean {
  return tokenPattern.test(name);
}

export function isHeaderValue(value: string): boolean {
  return valuePattern.test(value) && value === value.trim();
}

/** Why a header of this name cannot be set, or undefined when it can. */
export function headerNameProblem(name: string): string | undefined {
  if (!isHeaderName(name)) return `found ${JSON.stringify(name)}; allowed: letters, digits and !#$%&'*+-.^_\`|~`;
  const folded = foldedHeader(name);
  if (folded === 'cookie')
    return 'cookies are joined from the credential of type Cookie and from arguments with "in": "cookie"; use these instead';
  if (forbidden.has(folded) || forbiddenPrefixes.some((prefix) => folded.startsWith(prefix))) {
    return 'this header is set by the service or by HTTP itself; leave it out';
  }
  return undefined;
}

/** Headers of a client that hold its credentials, name its address, or let it choose another request than the tool makes. */
const ofClient =
  /authori[sz]|authenticat|(?:^|-)auth(?:-|$)|(?:api|access)-?key|token|secret|passw|credential|cookie|signature|jwt|(?:^|-)ip$|^content-|^accept$|^user-agent$|^range$|^if-|method|original-url|rewrite-url/;

/** Why a header of the client cannot be passed on, or undefined when it can. */
export function forwardedNameProblem(name: string): string | undefined {
  if (!ofClient.test(foldedHeader(name))) return headerNameProblem(name);
  return 'this header is never passed on: it holds a credential or an address, or decides about the request itself; leave it out';
}

/** The media type of a Content-Type header in lower case, without its parameters; empty where there is none. */
export function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined || contentType === 'application/json') return contentType ?? '';
  return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}

/** A media type with or without parameters (RFC 9110, 8.3.1), of a length that servers take. */
export const mediaTypePattern =
  /^(?=.{1,200}$)[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(?:[ \t]?;[ \t]?[\w!#$&^.+-]{1,50}=(?:[\w!#$&^.+-]{1,100}|"[ !#-[\]-~]{0,100}"))*$/;

/** The media types of a constant that allows several, separated by commas; one may be a range such as `image/*`. */
export function mediaTypeChoices(text: string): { types: string[]; isOne: boolean } | undefined {
  const listed = text.split(/\s*,\s*/);
  const types = listed.filter((type) => mediaTypePattern.test(type));
  const ranges = listed.filter((type) => /^(?:\*|[\w!#$&^.+-]{1,100})\/\*$/.test(type));
  if (types.length + ranges.length < listed.length) return undefined;
  return { types, isOne: listed.length === 1 && ranges.length === 0 };
}

/** Media types of answers that are named in records; the rest of them is a text that an upstream chose. */
const known: ReadonlySet<string> = new Set([
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

/** The media type of a Content-Type if it is a common one, otherwise a description that holds nothing of it. */
export function knownMediaType(contentType: string | undefined): string {
  const type = mediaTypeOf(contentType);
  if (type === '') return 'no media type';
  return known.has(type) ? type : 'another media type';
}

/** Methods that are in wide use (RFC 9110, 4918, 5323, 3253, and the QUERY draft). */
export const methods = [
  ...(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const),
  ...(['QUERY', 'PROPFIND', 'REPORT', 'SEARCH', 'COPY', 'MOVE'] as const),
];

/** A tool may have any method that is a token (RFC 9110, 9.1) except those that are about the connection. */
export const methodPattern = /^(?!(?:CONNECT|TRACE)$)[!#$%&'*+\-.^_`|~0-9A-Z]+$/;
export const maxMethodLength = 40;

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY', 'PROPFIND', 'REPORT', 'SEARCH']);
const bodilessMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'COPY', 'MOVE']);

/** Whether a request of this method only reads (RFC 9110, 9.2.1). */
export function isSafeMethod(method: string): boolean {
  return safeMethods.has(method);
}

/** Returns true if requests of this method have a body only where the tool says so. */
export function hasNoUsualBody(method: string): boolean {
  return bodilessMethods.has(method);
}

/** Returns true if a request of this method can remove or replace data. */
export function isDestructiveMethod(method: string): boolean {
  return method === 'DELETE' || method === 'COPY' || method === 'MOVE';
}
