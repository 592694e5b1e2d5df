import { isUtf8 } from 'node:buffer';
import { Redactor } from '@toolhost/credentials/redactor';
import type { ProtocolGeneration } from '@toolhost/mcp-protocol/mcp';
import { getLiteralAddress } from '@toolhost/safe-http/address';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { normalizeText } from '@toolhost/tool-config/normalized-text';
import type { ResponseRules } from './response-rules.ts';

/** A response header that the agent gets. `value` is undefined if it is too long to be passed on. */
export type DisplayedHeader = { name: string; value: string | undefined; length: number };

/**
 * The data from a response's headers that its result needs. It is plain data, because it is also transferred to
 * threads.
 */
export type ResponseHead = {
  contentType: string;
  /** Display-safe name of the file in the body. */
  fileName: string | undefined;
  displayedHeaders: readonly DisplayedHeader[];
  /** Credentials of the call, which failures must not show. */
  sensitive: readonly string[];
  /** Protocol generation of the client that gets the result. */
  generation: ProtocolGeneration;
};

/**
 * Maximum length of a header value that is passed on, in characters. A truncated link is useless, so longer values are
 * omitted.
 */
const maxValueLength = 4096;
const noHeaders: readonly DisplayedHeader[] = [];

/** Common media types. They contain no value that an upstream could have echoed. */
const commonType =
  /^(?:application\/(?:problem\+)?json|(?:application|text)\/(?:xml|html|plain|csv|pdf)|image\/\w{3,4})(?:; ?charset=utf-8)?$/i;

export function getResponseContentType(headers: UpstreamResponse['headers']): string {
  // The last of several lines counts (WHATWG Fetch, 2.2.2).
  return String([headers['content-type']].flat().at(-1) ?? '');
}

/**
 * Returns the header data of a successful response. `sensitive` lists the credentials of the call, which the upstream
 * may have echoed.
 */
export function getResponseHead(
  { headers }: UpstreamResponse,
  responseRules: ResponseRules,
  { sensitive, generation }: Pick<ResponseHead, 'sensitive' | 'generation'>,
): ResponseHead {
  const disposition = headers['content-disposition'];
  const contentType = getResponseContentType(headers);
  if (disposition === undefined && responseRules.headers.length === 0 && commonType.test(contentType))
    return { contentType, fileName: undefined, displayedHeaders: noHeaders, sensitive, generation };
  const redactor = new Redactor(sensitive);
  return {
    // Messages and files contain the media type, so it is dropped if it contains a credential.
    contentType: redactor.text(contentType) === contentType ? contentType : '',
    fileName:
      disposition === undefined ? undefined : parseFileName(String(disposition).slice(0, maxValueLength), redactor),
    displayedHeaders: getDisplayedHeaders(headers, responseRules, redactor),
    sensitive,
    generation,
  };
}

/**
 * Returns the headers that `response_headers` lists and the response has, without credentials, in configuration order.
 */
export function getDisplayedHeaders(
  headers: UpstreamResponse['headers'],
  responseRules: ResponseRules,
  redactor: Redactor,
): readonly DisplayedHeader[] {
  return responseRules.headers.flatMap((name): DisplayedHeader[] => {
    const key = name.toLowerCase();
    const lines = Object.hasOwn(headers, key) ? headers[key] : undefined;
    if (lines === undefined) return [];
    // Several lines of one name form one list (RFC 9110, 5.3).
    const line = Array.isArray(lines) ? lines.join(', ') : lines;
    const value = line.length > maxValueLength ? undefined : redactor.text(decodeHeaderText(line));
    return [{ name, value, length: line.length }];
  });
}

/** Decodes a header value. Bytes beyond ASCII arrive as Latin-1, although most upstreams mean UTF-8. */
export function decodeHeaderText(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

/** Formats headers as lines of text. */
export function formatHeaderLines(displayed: readonly DisplayedHeader[]): string {
  return displayed.map(({ name, value, length }) => `${name}: ${value ?? formatOmittedValue(length)}`).join('\n');
}

function formatOmittedValue(length: number): string {
  return `(omitted: ${length} characters; allowed: at most ${maxValueLength})`;
}

/** Formats headers as JSON text of an object, with names as configured. */
export function formatHeadersJson(displayed: readonly DisplayedHeader[]): string {
  return JSON.stringify(
    Object.fromEntries(displayed.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]]))),
  );
}

/** Maximum length of a file name that is passed on, and of an extension that survives truncation, in characters. */
const maxFileNameLength = 100;
const maxExtensionLength = 12;

/** A header parameter: `; name=value` or `; name="quoted value"` (RFC 9110, 5.6.6). */
const parameter = /\s*;\s*(?:([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"]*)))?/gy;

/**
 * Returns the file name of a Content-Disposition (RFC 6266), as one visible name without a path, or undefined if there
 * is none. `filename*` (RFC 8187) takes precedence over `filename`. `redactor` removes credentials.
 */
export function parseFileName(disposition: string, redactor?: Redactor): string | undefined {
  const parameters = disposition.slice(/^[^;]*/.exec(disposition)?.[0].length);
  const parametersByName = new Map<string, string>();
  for (const [, name, quoted, plain] of parameters.matchAll(parameter)) {
    const value = quoted?.replaceAll(/\\(.)/gs, '$1') ?? plain?.trim();
    if (name !== undefined && value !== undefined) parametersByName.set(name.toLowerCase(), value);
  }
  const extended = toSafeFileName(decodeExtendedValue(parametersByName.get('filename*') ?? ''), redactor);
  return extended ?? toSafeFileName(decodeHeaderText(parametersByName.get('filename') ?? ''), redactor);
}

/** Decodes a value such as `UTF-8''%e2%82%ac.txt`. Returns an empty string for any other form (RFC 8187, 3.2.1). */
function decodeExtendedValue(text: string): string {
  const [, charset = '', value = ''] = /^([\w-]*)'[\w-]*'(.*)$/s.exec(text) ?? [];
  const bytes = Buffer.from(
    value.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  if (charset.toLowerCase() === 'utf-8') return isUtf8(bytes) ? bytes.toString('utf8') : '';
  return charset.toLowerCase() === 'iso-8859-1' ? bytes.toString('latin1') : '';
}

/**
 * Makes a file name safe to show and to save. Removes paths and control, bidirectional, and invisible characters, and
 * limits the length.
 */
function toSafeFileName(text: string, redactor: Redactor | undefined): string | undefined {
  const visible = text.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\ufffd]|\p{Variation_Selector}/gu, '');
  // Redacts before the path is removed, because a credential may contain a slash.
  const redacted = redactor ? redactor.text(visible) : visible;
  const baseName = (redacted.split(/[/\\]/).at(-1) ?? '')
    .replaceAll(/[<>:"|?*]/g, '_')
    .replaceAll(/\s+/gu, ' ')
    .replaceAll(/^[. ]+|(?<![. ])[. ]+$/g, '');
  const name = normalizeText(baseName, 'NFC');
  return name === '' ? undefined : truncateFileName(name);
}

function truncateFileName(name: string): string {
  const letters = [...name];
  if (letters.length <= maxFileNameLength) return name;
  const dot = letters.lastIndexOf('.');
  const extension = dot > 0 && letters.length - dot <= maxExtensionLength ? letters.slice(dot) : [];
  return [...letters.slice(0, maxFileNameLength - extension.length), ...extension].join('');
}

const maxPathLength = 200;
/** Maximum length of a path segment. A longer segment is likely a token. */
const maxSegmentLength = 40;
/** Placeholder for the responding host, which need not be named. */
const sameHostPlaceholder = 'http://same-host.invalid';

/**
 * Returns the target of a redirect for someone who corrects a URL: origin and path of a `Location`, or its path if it
 * is relative. It contains no query, fragment, user name, IP address, or credential, and nothing that looks like a
 * token. Returns undefined if there is no target.
 */
export function formatRedirectTarget(location: string, redactor: Redactor): string | undefined {
  const target = parseTarget(location, redactor);
  if (!target) return undefined;
  const path = formatPath(target, redactor);
  const { origin, hostname } = target;
  if (origin === sameHostPlaceholder) return `${path} on the same host`;
  if (redactor.text(origin) !== origin) return undefined;
  return getLiteralAddress(hostname) === undefined
    ? `${origin}${path}`
    : `${path} on a host that is specified by its IP address`;
}

/** Returns the path of a `Location`, without segments that look like a token, or undefined if there is none. */
export function getLocationPath(location: string, redactor: Redactor): string | undefined {
  const target = parseTarget(location, redactor);
  return target && formatPath(target, redactor);
}

/**
 * Parses a `Location`. Credentials are removed before the URL is parsed, because parsing removes dot segments, and once
 * more afterwards. Tabs and line ends are not part of a URL (WHATWG URL, 4.4), and may separate the parts of a
 * credential.
 */
function parseTarget(location: string, redactor: Redactor): URL | undefined {
  const redacted = redactor.text(location.replaceAll(/[\t\n\r]/g, ''));
  const target = redacted === '' ? undefined : parseUrl(redacted, sameHostPlaceholder);
  return target?.protocol === 'http:' || target?.protocol === 'https:' ? target : undefined;
}

/**
 * Returns the path for display. It is cut only after credentials are removed, because a cut could leave part of one.
 */
function formatPath({ pathname }: URL, redactor: Redactor): string {
  return redactor
    .text(pathname)
    .split('/')
    .map((segment) => (segment.length > maxSegmentLength ? '…' : segment))
    .join('/')
    .slice(0, maxPathLength);
}

/** JSON types of AWS, such as `application/x-amz-json-1.1`. */
const amazonJson = /^application\/x-amz-json-\d\.\d$/;

/** Returns true for JSON media types, whose content is parsed and passed on as JSON. */
export function isJson(type: string): boolean {
  return type === 'application/json' || type.endsWith('+json') || type === 'text/json' || amazonJson.test(type);
}

/** Matches the suffix of text types outside `text/`. */
const textSuffix = /[+](xml|yaml|json-seq|toml|csv|jwt|sql|txt)$/;

/** Text types in `application/`. */
const textTypes = new Set(
  [
    ['xml', 'x-xml', 'xml-dtd', 'yaml', 'x-yaml', 'toml', 'x-toml', 'csv', 'x-csv', 'json5', 'hjson', 'x-json'],
    ['x-ini'],
    ['ndjson', 'x-ndjson', 'jsonl', 'x-jsonl', 'jsonlines', 'x-jsonlines', 'json-lines', 'json-seq', 'stream-json'],
    ['x-json-stream', 'x-json-lines', 'javascript', 'x-javascript', 'ecmascript', 'x-ecmascript', 'typescript'],
    ['x-typescript', 'graphql', 'sql', 'x-sql', 'x-www-form-urlencoded', 'sparql-query', 'sparql-update', 'xquery'],
    ['x-sh', 'x-shellscript', 'x-csh', 'x-perl', 'x-php', 'x-httpd-php', 'x-python', 'x-ruby', 'x-lua', 'x-powershell'],
    ['n-triples', 'n-quads', 'trig', 'x-turtle', 'x-latex', 'x-tex', 'x-bibtex', 'x-troff', 'x-markdown', 'x-patch'],
    ['x-subrip', 'vnd.apple.mpegurl', 'x-mpegurl', 'mpegurl', 'sdp', 'http', 'openmetrics-text', 'x-java-properties'],
    ['jwt', 'jose', 'x-pem-file', 'pem-certificate-chain', 'pgp-keys', 'pgp-signature', 'wkt', 'x-hcl', 'hcl'],
  ]
    .flat()
    .map((name) => `application/${name}`),
);

/** Text types outside `text/` and `application/`. */
const otherTextTypes = new Set([
  'audio/x-mpegurl',
  'audio/mpegurl',
  'message/rfc822',
  'message/http',
  'message/delivery-status',
]);

/**
 * Returns true for text, by its media type or its bytes, because many servers send text with the type of another file.
 */
export function isText(type: string, contentType: string, body: Buffer): boolean {
  if (type.startsWith('text/') || textSuffix.test(type) || textTypes.has(type) || otherTextTypes.has(type)) return true;
  return !type.startsWith('multipart/') && hasTextBytes(body, contentType);
}

/** Number of leading bytes that distinguish text from binary data (WHATWG MIME Sniffing, 5.2). */
const sniffedBytes = 1445;

function hasTextBytes(body: Buffer, contentType: string): boolean {
  const isUnicode = isUtf8(body);
  const start = body.subarray(0, sniffedBytes);
  const decoder = getDeclaredDecoder(body, contentType);
  if (!isUnicode && !decoder) return false;
  const text = decoder ? decoder.decode(start, { stream: true }) : start.toString('latin1');
  return isTextStart(text) && (!isUnicode || decoder !== undefined || !body.includes(0));
}

/**
 * Returns false for characters that text never contains (WHATWG MIME Sniffing, 3), and for a PDF, which may lack them.
 */
function isTextStart(text: string): boolean {
  const isBinary = (character: string) =>
    character === '\ufffd' || (character < ' ' && !'\t\n\f\r\x1b'.includes(character));
  return !text.startsWith('%PDF-') && ![...text].some(isBinary);
}

function getCharset(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?'?([\w.:-]{1,40})/i.exec(contentType)?.[1];
}

const byteOrderMarks: readonly (readonly [mark: readonly number[], charset: string])[] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
];

/**
 * Decodes a body, using the character set of its byte order mark, of its media type, or of the document itself, or else
 * UTF-8. Bytes that fit none of these are decoded as windows-1252, as all browsers do, so that no letter is lost.
 */
export function decodeBodyText(body: Buffer, contentType: string): string {
  return getDecoder(body, contentType)?.decode(body) ?? body.toString('utf8');
}

/**
 * Returns the start of a body that is text by its bytes, for a credential search, or undefined for other bodies. ASCII
 * in UTF-16 is valid UTF-8 in which NULs separate the characters of a credential, so NULs are removed if there are
 * many.
 */
export function getSearchableText(
  { headers, body }: Pick<UpstreamResponse, 'headers' | 'body'>,
  maxBytes: number,
): string | undefined {
  const start = body.subarray(0, maxBytes);
  if (isUtf8(body)) {
    const text = start.toString('utf8');
    const dense = text.replaceAll('\0', '');
    return dense.length < 0.75 * text.length ? dense : text;
  }
  // A character at the cut is dropped. Any other character that cannot be decoded shows that the body is not text.
  const text = getDecoder(body, getResponseContentType(headers))?.decode(start, { stream: true });
  return text !== undefined && isTextStart(text) ? text : undefined;
}

/** Returns the decoder of a body, or undefined for UTF-8. */
function getDecoder(body: Buffer, contentType: string): TextDecoder | undefined {
  return getDeclaredDecoder(body, contentType) ?? (isUtf8(body) ? undefined : new TextDecoder('windows-1252'));
}

/** Returns the declared decoder. Undefined if none is declared, and for UTF-8, which the bytes themselves show. */
function getDeclaredDecoder(body: Buffer, contentType: string): TextDecoder | undefined {
  const mark = byteOrderMarks.find(([bytes]) => bytes.every((byte, index) => body[index] === byte))?.[1];
  if (mark !== undefined) return new TextDecoder(mark);
  return createDecoder(getCharset(contentType)) ?? createDecoder(getDocumentCharset(body));
}

/**
 * Returns the character set that an XML or HTML document declares at its start (WHATWG HTML, 13.2.3.2). A readable
 * declaration of UTF-16 is wrong, because the document is then not in UTF-16.
 */
function getDocumentCharset(body: Buffer): string | undefined {
  if (body[0] !== 0x3c && !/^\s*</.test(body.toString('latin1', 0, 100))) return undefined;
  const start = body.toString('latin1', 0, 1024);
  const declaration =
    /^<\?xml[^>]{1,150}?encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start) ??
    /<meta\s[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(start);
  return /^utf-?16/i.test(declaration?.[1] ?? '') ? undefined : declaration?.[1];
}

/** Returns undefined for UTF-8, which is the default, and for an unknown character set. */
function createDecoder(charset: string | undefined): TextDecoder | undefined {
  if (charset === undefined) return undefined;
  try {
    const decoder = new TextDecoder(charset);
    return decoder.encoding === 'utf-8' ? undefined : decoder;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Converts JSON to UTF-8 (RFC 8259, 8.1) from the character set that the upstream declares or, with `shouldGuess`, from
 * windows-1252.
 */
export function toUtf8Json(body: Buffer, contentType: string, shouldGuess: boolean): Buffer {
  const startsWithAscii = (body[0] as number) < 0x80;
  if (startsWithAscii && contentType === 'application/json' && !shouldGuess) return body;
  if (isUtf8(body) && !body.includes(0)) return body;
  const decoder = shouldGuess ? getDecoder(body, contentType) : getDeclaredDecoder(body, contentType);
  return decoder ? Buffer.from(decoder.decode(body)) : body;
}
