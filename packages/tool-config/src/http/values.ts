import { recordableFailure, ToolFailure } from '@toolhost/errors/errors';
import { isRawNumber } from '@toolhost/json/json';

/** Returns an argument. Ignores inherited properties, because an argument may be named `toString`. */
export function getArgument(args: { readonly [name: string]: unknown }, name: string): unknown {
  return Object.hasOwn(args, name) ? args[name] : undefined;
}

/** Formats of arrays in queries and forms. */
export type ArrayFormat = 'repeat' | 'comma' | 'brackets';

/**
 * A text, or several that are joined by commas. In a URL or a form, only commas within the texts are percent-encoded.
 */
export type WireText = string | readonly string[];

/** Maximum number of characters of a request's path and query. Most servers accept at most a quarter of it. */
export const maxRequestTargetLength = 65_536;
/** Maximum number of characters of a header with the value of an argument. */
export const maxHeaderLength = 16_384;
/** Maximum number of pairs in a query or a form. */
export const maxParameters = 10_000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
const controlCharacters = /[\u0000-\u001f\u007f]/;

export function hasControlCharacter(text: string): boolean {
  return controlCharacters.test(text);
}

/** Refuses an argument whose text is too long for its location. @throws ToolFailure invalid_arguments */
export function checkLength(name: string, length: number, maxLength: number, location: string): void {
  if (length <= maxLength) return;
  const lengthProblem = `has ${length} characters; allowed in ${location}: ${maxLength}`;
  const message = `${name}: ${lengthProblem}; send less, or use a tool that sends it in the body`;
  const recordMessage = `${name}: has too many characters; allowed in ${location}: ${maxLength}`;
  throw new ToolFailure('invalid_arguments', message, [{ path: name, message: lengthProblem }], recordMessage);
}

/**
 * Formats an argument as one text: scalars as they are, arrays joined by commas, objects as JSON; undefined for null.
 * @throws ToolFailure invalid_arguments on a lone surrogate, which cannot be sent in a URL or header
 */
export function formatValue(name: string, value: unknown): string | undefined {
  const text = toWireText(name, value);
  return typeof text === 'object' ? text.join(',') : text;
}

/**
 * Formats an argument as text, with the entries of an array, including those of nested arrays, as separate texts.
 * @throws ToolFailure invalid_arguments on a lone surrogate
 */
export function toWireText(name: string, value: unknown): WireText | undefined {
  if (value === undefined || value === null) return undefined;
  const text = Array.isArray(value) ? formatItems(value) : formatScalar(value);
  if (typeof text === 'string' ? text.isWellFormed() : text.every((part) => part.isWellFormed())) return text;
  throw recordableFailure('invalid_arguments', `${name}: is not well-formed Unicode text`);
}

function formatItems(items: readonly unknown[]): string[] {
  const flatItems: unknown[] = items.flat(Number.POSITIVE_INFINITY);
  return flatItems.filter((item) => item !== undefined && item !== null).map(formatScalar);
}

function formatScalar(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Returns the number of characters, without the commas between texts. */
export function getTextLength(text: WireText): number {
  return typeof text === 'string' ? text.length : text.reduce((sum, part) => sum + part.length, 0);
}

/** Percent-encodes a text for a URL or a form. */
export function encodeText(text: WireText): string {
  return typeof text === 'string' ? percentEncode(text) : text.map(percentEncode).join(',');
}

const encodedReservedPattern = /%(?:21|24|27|28|29|2A|2C|2F|3A|3B|3F|40)/g;

/**
 * Encodes a query value but keeps the reserved characters that end nothing in a query (RFC 3986, 2.2): all but `&`,
 * `=`, `+`, `#`, and brackets.
 */
export function encodeReserved(text: WireText): string {
  return encodeText(text).replaceAll(encodedReservedPattern, decodeURIComponent);
}

/**
 * Percent-encodes characters that a cookie cannot contain (RFC 6265, 4.1.1), and `%`, so that the value can be decoded.
 */
export function encodeCookie(text: WireText): string {
  const encodePart = (part: string) =>
    part.replaceAll(/[^\x21\x23\x24\x26-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+/gu, percentEncode);
  return typeof text === 'string' ? encodePart(text) : text.map(encodePart).join(',');
}

const unreservedPattern = /^[A-Za-z0-9._~-]*$/;
const unencodedByBuiltin = /[!'()*]/;
/** Length from which encoding byte by byte is faster than encodeURIComponent. */
const longTextLength = 1000;

/** Percent-encodes everything but the unreserved characters of RFC 3986, 2.3. The text must be well-formed. */
export function percentEncode(text: string): string {
  if (unreservedPattern.test(text)) return text;
  if (text.length >= longTextLength || unencodedByBuiltin.test(text)) return encodeBytes(text);
  return encodeURIComponent(text);
}

const hexDigits = Buffer.from('0123456789ABCDEF');
const isUnreserved = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && unreservedPattern.test(String.fromCharCode(byte)) ? 1 : 0,
);

function encodeBytes(text: string): string {
  const bytes = Buffer.from(text);
  const encoded = Buffer.allocUnsafe(3 * bytes.length);
  let length = 0;
  for (const byte of bytes) {
    if (isUnreserved[byte]) encoded[length++] = byte;
    else {
      encoded[length++] = 0x25;
      encoded[length++] = hexDigits[byte >> 4] as number;
      encoded[length++] = hexDigits[byte & 0xf] as number;
    }
  }
  return encoded.toString('latin1', 0, length);
}

const percent = 0x25;
/** Value of each byte as a hexadecimal digit; 16 for other bytes. */
const hexValues = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? 16 : value;
});

/** Returns the bytes of a text in which `%` and two hexadecimal digits stand for a byte. */
export function percentDecode(text: string): Buffer {
  const bytes = Buffer.from(text);
  let length = bytes.indexOf(percent);
  if (length < 0) return bytes;
  // Decoded text is never longer than its encoded form, so it is written over the input.
  for (let index = length; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    const high = byte === percent ? (hexValues[bytes[index + 1] ?? 0] as number) : 16;
    const low = high < 16 ? (hexValues[bytes[index + 2] ?? 0] as number) : 16;
    bytes[length++] = low < 16 ? (high << 4) | low : byte;
    if (low < 16) index += 2;
  }
  return bytes.subarray(0, length);
}

/**
 * Escapes a name as `multipart/form-data` writes it between quotes (HTML, "multipart/form-data encoding algorithm").
 */
export function escapeMultipartName(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

/**
 * Maximum number of form fields. OAuth forms have about ten; a hundred thousand short ones would take long to parse.
 */
const maxFormFields = 500;

/**
 * Parses the fields of a form (WHATWG URL, application/x-www-form-urlencoded). Undefined for a form with more than 500
 * fields.
 */
export function parseFormFields(text: string): URLSearchParams | undefined {
  let fields = 1;
  for (let index = text.indexOf('&'); index >= 0; index = text.indexOf('&', index + 1))
    if (++fields > maxFormFields) return undefined;
  return new URLSearchParams(text);
}
