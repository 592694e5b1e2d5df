import { isUtf8 } from 'node:buffer';

/** Media types of JSON, whose content is read and passed on as JSON. */
export function isJson(type: string): boolean {
  return type === 'application/json' || type.endsWith('+json') || type === 'text/json';
}

/** Types below `application/`, `image/` and so on that are texts, by the end of their name. */
const textSuffix = /[+](xml|yaml|json-seq|toml|csv|jwt|sql|txt)$/;

const textTypes = new Set(
  [
    [
      'xml',
      'x-xml',
      'xml-dtd',
      'yaml',
      'x-yaml',
      'toml',
      'x-toml',
      'csv',
      'x-csv',
      'json5',
      'hjson',
      'x-json',
      'x-ini',
    ],
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

/** Further types that are texts. */
const others = new Set([
  'audio/x-mpegurl',
  'audio/mpegurl',
  'message/rfc822',
  'message/http',
  'message/delivery-status',
]);

/** Whether a body is a text, by its media type, or because its type names a character set and its bytes are text. */
export function isText(type: string, contentType: string, body: Buffer): boolean {
  if (type.startsWith('text/') || textSuffix.test(type) || textTypes.has(type) || others.has(type)) return true;
  // Some servers name a character set for every file.
  const isNamed = type.startsWith('application/') && charsetOf(contentType) !== undefined;
  return isNamed && isUtf8(body) && !body.includes(0);
}

function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?'?([\w.:-]{1,40})/i.exec(contentType)?.[1];
}

const marks: readonly (readonly [mark: readonly number[], charset: string])[] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
];

/**
 * The text of a body: in the character set of its byte order mark, or that which it declares, or UTF-8. Bytes that are
 * none of these are read as windows-1252, which every browser does, so that no letter is lost.
 */
export function textOfBody(body: Buffer, contentType: string): string {
  const mark = marks.find(([bytes]) => bytes.every((byte, index) => body[index] === byte));
  const charset = mark?.[1] ?? charsetOf(contentType) ?? declaredInside(body);
  const decoder = charset === undefined ? undefined : decoderOf(charset);
  if (decoder) return decoder.decode(body);
  return isUtf8(body) ? body.toString('utf8') : new TextDecoder('windows-1252').decode(body);
}

/** The character set that an XML document names in its first line. */
function declaredInside(body: Buffer): string | undefined {
  return /^<\?xml[^>]{1,150}?encoding=["']([\w.:-]{1,40})["']/.exec(body.toString('latin1', 0, 200))?.[1];
}

/** Undefined for a character set that is not known. */
function decoderOf(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** JSON is UTF-8 (RFC 8259, 8.1). Where an upstream declares and uses another character set, it is translated. */
export function jsonInUtf8(body: Buffer, contentType: string): Buffer {
  const charset = contentType === 'application/json' ? undefined : charsetOf(contentType);
  if (charset === undefined || (isUtf8(body) && !body.includes(0))) return body;
  const decoder = decoderOf(charset);
  return decoder && decoder.encoding !== 'utf-8' ? Buffer.from(decoder.decode(body)) : body;
}
