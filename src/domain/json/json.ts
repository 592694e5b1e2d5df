import { AppError } from '../../errors.ts';
import { type MaybePromise, nextTurn } from '../work/next-turn.ts';
import { bodyLimits, shortLimits } from './body-limits.ts';
import { closingQuote, hasEscapedName, isName, parseNative, readJson, readJsonInTurns } from './json-reader.ts';
import { exceedsLimits, type JsonScan } from './json-scan.ts';

/**
 * JSON that keeps what a plain parse and write would change: the digits of numbers (`9007199254740993`, `1.10`).
 */

declare global {
  /** JSON.parse source text access (ECMAScript 2026), which TypeScript's library does not declare yet. */
  interface JSON {
    rawJSON(text: string): { rawJSON: string };
    isRawJSON(value: unknown): boolean;
  }
}

/**
 * Number literals that JavaScript may not write back as they were: long, tiny, fractional ending in 0, with an exponent,
 * or −0. One stands at the beginning or behind a bracket, colon, comma or white space, so `"2.0"` is none.
 */
const fragileNumber = /(?:^|[[:,\s])(?:-?(?:(?:\d\.?){16}|0\.0{6}|\d+\.\d*0(?!\d)|[\d.]+[eE])|-0(?![.\d]))/;

/** Numbers that JavaScript writes back as they were: short ones that neither end in a fraction's 0 nor are −0. */
const sturdyNumber = /^(?:0|-?[1-9]\d{0,14}|-?(?=.{1,16}$)(?:0|[1-9]\d*)\.(?!0{6})\d*[1-9])$/;

/**
 * What a number in JSON text becomes when its digits are kept (`1.10`, `9007199254740993`): a `JSON.rawJSON` object, where
 * an ordinary number would be written in another way.
 */
export function numberWithDigits(source: string): unknown {
  if (sturdyNumber.test(source)) return Number(source);
  const value = Number(source);
  return String(value) === source ? value : JSON.rawJSON(source);
}

const jsonString = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Whether certainly every number of a JSON text stays as it is written when JavaScript parses it and writes it again. */
export function keepsNumbers(text: string): boolean {
  return !fragileNumber.test(text) || !fragileNumber.test(text.replaceAll(jsonString, '""'));
}

/** A parsed value in which a number that would lose digits is a `JSON.rawJSON` object. @throws SyntaxError */
export function parseJson(text: string): unknown {
  if (!fragileNumber.test(text)) return JSON.parse(text);
  try {
    // A reviver of JSON.parse does the same in five times as long.
    return readJson(text, numberWithDigits);
  } catch (error) {
    // The engine's own error says where a text is not JSON.
    parseNative(text);
    throw error;
  }
}

/**
 * The same in turns of the event loop that are not shared with the work before and after. Texts that only our own reader
 * reads take several of them.
 * @throws SyntaxError
 */
export function parseJsonInTurns(text: string): Promise<unknown> {
  return inTurns(async () => {
    const isOurs = fragileNumber.test(text) || hasEscapedName(text);
    await nextTurn();
    return isOurs ? readJsonInTurns(text, numberWithDigits) : parseNative(text);
  });
}

/** A longer text, in characters, is read in turns of its own. */
const longText = 200_000;

/** The same for a text that this service has written, such as a stored configuration: a long one in several turns. @throws SyntaxError */
export async function parseStored(text: string): Promise<unknown> {
  return text.length > longText ? parseJsonInTurns(text) : parseJson(text);
}

async function inTurns(parse: () => Promise<unknown>): Promise<unknown> {
  await nextTurn();
  const value = await parse();
  await nextTurn();
  return value;
}

/** Whether a parsed value is a number whose digits are kept. */
export function isRawNumber(value: unknown): value is { rawJSON: string } {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value);
}

/** Numbers whose digits were kept become ordinary ones, which is enough to check them. Without any, the same value. */
export function plainNumbers(value: unknown): unknown {
  return hasRawNumber(value) ? withPlainNumbers(value) : value;
}

function hasRawNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasRawNumber);
  if (JSON.isRawJSON(value)) return true;
  for (const name in value) if (hasRawNumber((value as { [name: string]: unknown })[name])) return true;
  return false;
}

function withPlainNumbers(value: unknown): unknown {
  if (isRawNumber(value)) return Number(value.rawJSON);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withPlainNumbers);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withPlainNumbers(inner)]));
}

/** Depth of a value's nesting, counted up to `limit`; safe on values that would overflow a recursive walk. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= limit; depth++) {
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item === 'object' && item !== null) for (const inner of Object.values(item)) next.push(inner);
    }
    if (next.length === 0) return false;
    level = next;
  }
  return true;
}

/** Whether a text or a name in a value holds the character U+0000. */
export function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsNul);
  for (const name in value) {
    if (name.includes('\0') || holdsNul((value as { [name: string]: unknown })[name])) return true;
  }
  return false;
}

/** Whether a value holds more values, or more characters in its texts and names, than the limit. Stops there. */
export function isLargerThan(value: unknown, most: { values: number; characters: number }): boolean {
  let { values, characters } = most;
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

/** Parses a body that was scanned, a long one in several turns. @throws AppError tooLarge in its promise */
export function parseScanned(body: Buffer, scan: JsonScan): MaybePromise<unknown> {
  const text = body.toString('utf8');
  if (!exceedsLimits(body.length, scan, shortLimits)) return parseJson(text);
  return exceedsLimits(body.length, scan, bodyLimits) ? parseLongJson(text) : parseJsonInTurns(text);
}

/**
 * Parses the text of a long body, which must be JSON.
 * A name that is used again costs next to nothing, so only different names count for the limit that other bodies have.
 * @throws AppError tooLarge
 */
export async function parseLongJson(text: string): Promise<unknown> {
  await nextTurn();
  const names = await countNames(text, bodyLimits.names);
  if (names > bodyLimits.names)
    throw new AppError('tooLarge', `the body holds more than ${bodyLimits.names} different names; send less at once`);
  return parseJsonInTurns(text);
}

/** Strings that are looked at in one turn of the event loop, some milliseconds. */
const stringsOfTurn = 20_000;

/** Number of different names in JSON text, as they are written; stops above `most`. */
async function countNames(text: string, most: number): Promise<number> {
  const names = new Set<string>();
  let strings = 0;
  for (let from = text.indexOf('"'); from >= 0 && names.size <= most; strings++) {
    const end = closingQuote(text, from + 1);
    if (isName(text, end + 1)) names.add(text.slice(from + 1, end));
    from = text.indexOf('"', end + 1);
    if (strings % stringsOfTurn === stringsOfTurn - 1) await nextTurn();
  }
  return names.size;
}
