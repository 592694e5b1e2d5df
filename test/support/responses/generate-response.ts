/** Returns a random integer below a bound. */
export type RandomInt = (bound: number) => number;

/** A valid response, with the status and body that its caller must receive. */
export type GeneratedResponse = {
  method: 'GET' | 'HEAD' | 'POST';
  status: number;
  /** One character for each byte. */
  body: string;
  /** One character for each byte. */
  bytes: string;
  /** True if the end of the connection is the end of the body. */
  endsWithConnection: boolean;
};

export const pick = <Item>(randomInt: RandomInt, items: readonly Item[]): Item =>
  items[randomInt(items.length)] as Item;

const methods = [...Array<'GET'>(12).fill('GET'), 'POST', 'POST', 'HEAD'] as const;
const framings = [...Array<'length'>(8).fill('length'), ...Array<'chunked'>(6).fill('chunked'), 'connection'] as const;
const statuses = ['200', '200', '200', '200', '200', '201', '206', '301', '400', '404', '500', '503', '204', '304'];
const reasons = [' OK', ' OK', ' OK', ' ', '', ' Not Found', ' a  b', ' caf\xc3\xa9'];
const headerLines = [
  'content-type: application/json',
  'Content-Type: text/plain; charset="utf-8"',
  'date: Mon, 01 Jan 2024 00:00:00 GMT',
  'set-cookie: a=1; Path=/',
  'Set-Cookie: b=2',
  'x-empty:',
  'x-spaced:  \t a b \t',
  'x-latin: caf\xe9',
  'etag: "a:b,c"',
  'cache-control: no-cache,no-store',
  'connection: keep-alive',
  'Keep-Alive: timeout=5, max=100',
  'keep-alive: timeout=1',
  'connection: close',
  '__proto__: 1',
  'constructor: 1',
  'server: nginx/1.27',
];
const interimResponses = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 102 Processing\r\nx-a: 1\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n',
];
const chunkExtensions = [';a', ';a=1', ';a="b;c"'];
const trailers = ['x-trailer: 1\r\n', 'x-a:\r\nx-b: c d\r\n'];

/** Generates a valid response that contains `token` in its head and body. */
export function generateResponse(randomInt: RandomInt, token: string): GeneratedResponse {
  const method = pick(randomInt, methods);
  const status = pick(randomInt, statuses);
  const version = randomInt(30) === 0 ? 'HTTP/1.0' : 'HTTP/1.1';
  const interim = randomInt(10) === 0 ? repeat(1 + randomInt(3), () => pick(randomInt, interimResponses)) : '';
  const more = repeat(randomInt(4), () => `${pick(randomInt, headerLines)}\r\n`);
  const head = `${interim}${version} ${status}${pick(randomInt, reasons)}\r\n${more}x-token: ${token}\r\n`;
  const allowsBody = method !== 'HEAD' && status !== '204' && status !== '304';
  const body = allowsBody ? generateBody(randomInt, token) : '';
  const framing = pick(randomInt, framings);
  const response = { method, status: Number(status), body, endsWithConnection: framing === 'connection' && allowsBody };
  if (framing === 'connection' || (!allowsBody && method !== 'HEAD'))
    return { ...response, bytes: `${head}\r\n${body}` };
  if (framing === 'length') return { ...response, bytes: `${head}content-length: ${body.length}\r\n\r\n${body}` };
  const chunks = allowsBody ? formatChunks(randomInt, body) : '';
  return { ...response, bytes: `${head}transfer-encoding: chunked\r\n\r\n${chunks}` };
}

function generateBody(randomInt: RandomInt, token: string): string {
  const length = randomInt(200) === 0 ? 100_000 : randomInt(20) === 0 ? 8000 : randomInt(400);
  const lineBreak = pick(randomInt, [' ', '\r\n', '\r\n\r\n', '0\r\n\r\n', '\xff\0']);
  return `${token}${lineBreak}`.repeat(Math.ceil(length / token.length)).slice(0, length);
}

function formatChunks(randomInt: RandomInt, body: string): string {
  let text = '';
  // Longer bodies would exceed the limit of tiny chunks.
  const maxChunkBytes = body.length > 1000 ? 70_000 : pick(randomInt, [4, 100, 1000]);
  for (let at = 0; at < body.length; ) {
    const chunk = body.slice(at, at + 1 + randomInt(maxChunkBytes));
    const extension = randomInt(6) === 0 ? pick(randomInt, chunkExtensions) : '';
    const size = chunk.length.toString(16).padStart(randomInt(3), '0');
    text += `${randomInt(2) === 0 ? size : size.toUpperCase()}${extension}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  return `${text}0\r\n${randomInt(4) === 0 ? pick(randomInt, trailers) : ''}\r\n`;
}

function repeat(count: number, create: () => string): string {
  return Array.from({ length: count }, create).join('');
}

/** Splits bytes into pieces of random sizes. */
export function splitRandomly(randomInt: RandomInt, bytes: string): Buffer[] {
  const all = Buffer.from(bytes, 'latin1');
  if (randomInt(3) > 0) return all.length > 0 ? [all] : [];
  const pieces: Buffer[] = [];
  const maxPieceBytes = Math.max(pick(randomInt, [1, 5, 60, 2000]), Math.ceil(all.length / 10));
  for (let at = 0; at < all.length; ) {
    const end = at + 1 + randomInt(maxPieceBytes);
    pieces.push(all.subarray(at, end));
    at = end;
  }
  return pieces;
}
