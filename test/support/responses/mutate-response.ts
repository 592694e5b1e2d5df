import { pick, type RandomInt } from './generate-response.ts';

/** Bytes that mean something to a reader of HTTP. */
const specialBytes = [
  '\0',
  '\r',
  '\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '1',
  '9',
  'f',
  'x',
  '-',
  '+',
  '"',
  '\\',
  '\x7f',
  '\xff',
];
/** Header lines that change how a response is read. */
const specialLines = [
  'content-length: 0',
  'content-length: 5',
  'Content-Length: 007',
  'transfer-encoding: chunked',
  'transfer-encoding: gzip, chunked',
  'transfer-encoding: identity',
  'Transfer-Encoding: chunked, identity',
  'connection: close',
  'connection: upgrade\r\nupgrade: websocket',
  ' folded',
  'x-a : 1',
  ': 1',
  'x-a',
];
const specialBeginnings = ['\r\n', 'HTTP/1.1 101 S\r\n\r\n', 'HTTP/1.1 100 C\r\n\r\n', 'HTTP/1.1 204 N\r\n\r\n', ' '];

type Mutation = (bytes: string, at: number, randomInt: RandomInt) => string;

const mutations: readonly Mutation[] = [
  (bytes, at, randomInt) => bytes.slice(0, at) + pick(randomInt, specialBytes) + bytes.slice(at + 1),
  (bytes, at, randomInt) => bytes.slice(0, at) + pick(randomInt, specialBytes) + bytes.slice(at),
  (bytes, at, randomInt) => bytes.slice(0, at) + String.fromCharCode(randomInt(256)) + bytes.slice(at + 1),
  (bytes, at, randomInt) => bytes.slice(0, at) + bytes.slice(at + 1 + randomInt(4)),
  (bytes, at) => bytes.slice(0, at),
  (bytes, at, randomInt) => bytes.slice(0, at) + bytes.slice(randomInt(bytes.length + 1)),
  (bytes, at, randomInt) => insertLine(bytes, at, pick(randomInt, specialLines)),
  (bytes, at) => insertLine(bytes, at, findLine(bytes, at)),
  (bytes, at) => bytes.slice(0, at) + bytes.slice(at).replace('\r\n', '\n'),
  (bytes, at) => bytes.slice(0, at) + bytes.slice(at).replace(/\d+/, (digits) => String(Number(digits) + 1)),
  (bytes, _at, randomInt) => pick(randomInt, specialBeginnings) + bytes,
  (bytes) => bytes + bytes,
  (bytes, _at, randomInt) => bytes + pick(randomInt, specialBytes),
];

/** Changes a response in one to three places, most of them in its head. */
export function mutateResponse(randomInt: RandomInt, bytes: string): string {
  let mutated = bytes;
  for (let count = 1 + randomInt(3); count > 0; count--) {
    const headEnd = mutated.indexOf('\r\n\r\n') + 5;
    const at = randomInt((randomInt(3) > 0 && headEnd > 5 ? headEnd : mutated.length) + 1);
    mutated = pick(randomInt, mutations)(mutated, at, randomInt);
  }
  return mutated;
}

/** Inserts a line after the line at `at`. */
function insertLine(bytes: string, at: number, line: string): string {
  const next = bytes.indexOf('\r\n', at);
  return next < 0 ? bytes : `${bytes.slice(0, next + 2)}${line}\r\n${bytes.slice(next + 2)}`;
}

function findLine(bytes: string, at: number): string {
  const start = bytes.lastIndexOf('\r\n', at) + 2;
  return bytes.slice(start, bytes.indexOf('\r\n', start));
}
