import { isUtf8 } from 'node:buffer';
import { parseJson } from '../../domain/json/json.ts';
import { isRequestId, type RequestId } from './json-rpc.ts';

/** The parts of a message that can be read without parsing it. */
export type MessageStart = { id?: RequestId; method?: string };

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
const openObject = 0x7b;
const closeObject = 0x7d;
const openArray = 0x5b;
const closeArray = 0x5d;

/** How the reading of a message ended; members read before a cut count. */
type Ending = 'complete' | 'cut' | 'malformed';
/** Position after something that is cut off. */
const cutOff = -1;

/**
 * The id and the method of a JSON-RPC message from its first bytes, for the answer to a request that is refused before
 * it is parsed. `id` and `method` are found even when other members come first; of a name that occurs twice the last
 * one counts, as in a parser. Anything that is cut off, or part of invalid JSON, is left out.
 */
export function readMessageStart(bytes: Buffer, isWhole: boolean): MessageStart {
  const found: MessageStart = {};
  const ending = readMembers(bytes, found);
  return ending === 'complete' || (ending === 'cut' && !isWhole) ? found : {};
}

function readMembers(bytes: Buffer, found: MessageStart): Ending {
  const wrongAt = (at: number) => (at < bytes.length ? 'malformed' : 'cut');
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== openObject) return wrongAt(at);
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === closeObject) return endAt(bytes, at + 1);
  for (;;) {
    if (bytes[at] !== quote) return wrongAt(at);
    const nameEnd = skipString(bytes, at);
    if (nameEnd === cutOff) return 'cut';
    const name = scalarOf(bytes, at, nameEnd);
    at = skipSpace(bytes, nameEnd);
    if (name === undefined || bytes[at] !== colon) return name === undefined ? 'malformed' : wrongAt(at);
    at = skipSpace(bytes, at + 1);
    const end = skipValue(bytes, at);
    if (end === cutOff) return 'cut';
    if (end === at) return 'malformed';
    if (name === 'id' || name === 'method') take(name, scalarOf(bytes, at, end), found);
    at = skipSpace(bytes, end);
    if (bytes[at] === closeObject) return endAt(bytes, at + 1);
    if (bytes[at] !== comma) return wrongAt(at);
    at = skipSpace(bytes, at + 1);
  }
}

/** Only white space may follow a message. */
function endAt(bytes: Buffer, at: number): Ending {
  return skipSpace(bytes, at) === bytes.length ? 'complete' : 'malformed';
}

function take(name: 'id' | 'method', value: unknown, found: MessageStart): void {
  delete found[name];
  if (name === 'id' && isRequestId(value)) found.id = value;
  if (name === 'method' && typeof value === 'string') found.method = value;
}

/** A string or a number between two positions, with its digits; undefined for anything else. */
function scalarOf(bytes: Buffer, from: number, to: number): unknown {
  const part = bytes.subarray(from, to);
  if (part[0] === openObject || part[0] === openArray || !isUtf8(part)) return undefined;
  try {
    return parseJson(part.toString('utf8'));
  } catch {
    // The request is refused for another reason; invalid JSON has no id.
    return undefined;
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

/** The position after a string that begins at `from`. */
function skipString(bytes: Buffer, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    if (bytes[at] === backslash) at++;
    else if (bytes[at] === quote) return at + 1;
  }
  return cutOff;
}

/** The position after a value; nested values are not checked. */
function skipValue(bytes: Buffer, from: number): number {
  const first = bytes[from];
  if (first === quote) return skipString(bytes, from);
  if (first === openObject || first === openArray) return skipNested(bytes, from);
  for (let at = from; at < bytes.length; at++) if (isDelimiter(bytes[at] as number)) return at;
  return cutOff;
}

function isDelimiter(byte: number): boolean {
  return byte === comma || byte === closeObject || byte === closeArray || byte <= 0x20;
}

function skipNested(bytes: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      at = skipString(bytes, at) - 1;
      if (at < from) return cutOff;
    } else if (byte === openObject || byte === openArray) depth++;
    else if ((byte === closeObject || byte === closeArray) && --depth === 0) return at + 1;
  }
  return cutOff;
}
