import { AppError } from '@toolhost/errors/errors';
import { type MaybePromise, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { bodyLimits, eventLoopLimits } from './body-limits.ts';
import {
  findClosingQuote,
  hasEscapedName,
  isMemberName,
  parseNative,
  readJson,
  readJsonInChunks,
} from './json-reader.ts';
import { exceedsLimits, type JsonScan } from './json-scan.ts';

/**
 * JSON that preserves what plain parsing and writing would change: the digits of numbers (`9007199254740993`, `1.10`).
 */

declare global {
  /** JSON.parse source text access (ECMAScript 2026), which TypeScript's library does not declare yet. */
  interface JSON {
    rawJSON(text: string): { rawJSON: string };
    isRawJSON(value: unknown): boolean;
  }
}

/**
 * Matches number literals that JavaScript may write differently: long, tiny, fractional with a trailing 0, with an
 * exponent, or −0. A match follows the beginning, a bracket, a colon, a comma, or white space, so `"2.0"` does not
 * match.
 */
const fragileNumberPattern = /(?:^|[[:,\s])(?:-?(?:(?:\d\.?){16}|0\.0{6}|\d+\.\d*0(?!\d)|[\d.]+[eE])|-0(?![.\d]))/;

/** Matches numbers that JavaScript writes back unchanged: short ones without a trailing fractional 0, and not −0. */
const stableNumberPattern = /^(?:0|-?[1-9]\d{0,14}|-?(?=.{1,16}$)(?:0|[1-9]\d*)\.(?!0{6})\d*[1-9])$/;

/**
 * Converts the source of a JSON number and preserves its digits (`1.10`, `9007199254740993`): returns a `JSON.rawJSON`
 * object if an ordinary number would be written differently.
 */
export function toExactNumber(source: string): unknown {
  if (stableNumberPattern.test(source)) return Number(source);
  const value = Number(source);
  return String(value) === source ? value : JSON.rawJSON(source);
}

const jsonStringPattern = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Returns true if every number in JSON text certainly stays as written when JavaScript parses and writes it. */
export function preservesNumbers(text: string): boolean {
  return !fragileNumberPattern.test(text) || !fragileNumberPattern.test(text.replaceAll(jsonStringPattern, '""'));
}

/** Parses JSON. A number that would lose digits becomes a `JSON.rawJSON` object. @throws SyntaxError */
export function parseJson(text: string): unknown {
  if (!fragileNumberPattern.test(text)) return JSON.parse(text);
  try {
    // A reviver of JSON.parse does the same but takes five times as long.
    return readJson(text, toExactNumber);
  } catch (error) {
    // The engine's own error reports where the text is not JSON.
    parseNative(text);
    throw error;
  }
}

/**
 * Parses JSON in event loop iterations of its own, separate from the work before and after. Texts that need Toolhost's
 * own parser are read in several chunks.
 * @throws SyntaxError
 */
export function parseJsonInChunks(text: string): Promise<unknown> {
  return yieldAround(async () => {
    const needsOwnReader = fragileNumberPattern.test(text) || hasEscapedName(text);
    await yieldToEventLoop();
    return needsOwnReader ? readJsonInChunks(text, toExactNumber) : parseNative(text);
  });
}

/** Length, in characters, from which a text is parsed in its own event loop iterations. */
const longTextLength = 200_000;

/**
 * Parses a text that Toolhost has written, such as a stored configuration. A long one is parsed in chunks.
 * @throws SyntaxError
 */
export async function parseStoredJson(text: string): Promise<unknown> {
  return text.length > longTextLength ? parseJsonInChunks(text) : parseJson(text);
}

async function yieldAround(parse: () => Promise<unknown>): Promise<unknown> {
  await yieldToEventLoop();
  const value = await parse();
  await yieldToEventLoop();
  return value;
}

/** Returns true if a parsed value is a number with preserved digits. */
export function isRawNumber(value: unknown): value is { rawJSON: string } {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value);
}

/**
 * Converts numbers with preserved digits to ordinary numbers, which is enough for checks. Returns the value itself if
 * there are none.
 */
export function toPlainNumbers(value: unknown): unknown {
  return hasRawNumber(value) ? convertNumbers(value) : value;
}

function hasRawNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasRawNumber);
  if (JSON.isRawJSON(value)) return true;
  for (const name in value) if (hasRawNumber((value as { [name: string]: unknown })[name])) return true;
  return false;
}

function convertNumbers(value: unknown): unknown {
  if (isRawNumber(value)) return Number(value.rawJSON);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(convertNumbers);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, convertNumbers(inner)]));
}

/** Returns true if a value is nested deeper than `limit`. Safe for values that would overflow a recursive walk. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= limit; depth++) {
    const nextLevel: unknown[] = [];
    for (const item of level) {
      if (typeof item === 'object' && item !== null) for (const inner of Object.values(item)) nextLevel.push(inner);
    }
    if (nextLevel.length === 0) return false;
    level = nextLevel;
  }
  return true;
}

/** Returns true if a text or a name in a value contains the character U+0000. */
export function containsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(containsNul);
  for (const name in value) {
    if (name.includes('\0') || containsNul((value as { [name: string]: unknown })[name])) return true;
  }
  return false;
}

/**
 * Returns true if a value contains more values, or more characters in its texts and names, than the limit. Stops there.
 */
export function isLargerThan(value: unknown, limits: { values: number; characters: number }): boolean {
  let { values, characters } = limits;
  const count = (inner: unknown): boolean => {
    if (typeof inner === 'string') characters -= inner.length;
    if (--values < 0 || characters < 0) return true;
    if (typeof inner !== 'object' || inner === null) return false;
    if (Array.isArray(inner)) return inner.some(count);
    for (const name in inner) {
      characters -= name.length;
      if (count((inner as { [name: string]: unknown })[name])) return true;
    }
    return false;
  };
  return count(value);
}

/** Parses a scanned body, a long one in chunks. @throws AppError tooLarge in its promise */
export function parseScannedBody(body: Buffer, scan: JsonScan): MaybePromise<unknown> {
  const text = body.toString('utf8');
  if (!exceedsLimits(body.length, scan, eventLoopLimits)) return parseJson(text);
  return exceedsLimits(body.length, scan, bodyLimits) ? parseLongJson(text) : parseJsonInChunks(text);
}

/**
 * Parses the text of a long body, which must be JSON. A repeated name costs almost nothing, so only distinct names
 * count toward the limit of other bodies.
 * @throws AppError tooLarge
 */
export async function parseLongJson(text: string): Promise<unknown> {
  await yieldToEventLoop();
  const names = await countNames(text, bodyLimits.names);
  if (names > bodyLimits.names)
    throw new AppError('tooLarge', `the body has more than ${bodyLimits.names} different names; split the request`);
  return parseJsonInChunks(text);
}

/** Number of strings that are checked before yielding to the event loop, some milliseconds of work. */
const stringsPerChunk = 20_000;

/** Counts the distinct names in JSON text, as written. Stops above `maxNames`. */
async function countNames(text: string, maxNames: number): Promise<number> {
  const names = new Set<string>();
  let strings = 0;
  for (let from = text.indexOf('"'); from >= 0 && names.size <= maxNames; strings++) {
    const quoteEnd = findClosingQuote(text, from + 1);
    if (isMemberName(text, quoteEnd + 1)) names.add(text.slice(from + 1, quoteEnd));
    from = text.indexOf('"', quoteEnd + 1);
    if (strings % stringsPerChunk === stringsPerChunk - 1) await yieldToEventLoop();
  }
  return names.size;
}
