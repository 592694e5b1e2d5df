import { plainFailure, ToolFailure } from '../../errors.ts';
import { isRawNumber } from '../json/json.ts';
import { encode } from './percent-encoding.ts';

/** Formats of arguments as text. */
export type ArrayFormat = 'repeat' | 'comma' | 'brackets';

/** A text, or several that commas join. In a URL or a form only the commas inside them are percent-encoded. */
export type WireText = string | readonly string[];

/** Longest path and query of a request; most servers take no more than a quarter of it. */
export const mostUrlLength = 65_536;
/** Longest header that an argument may become. */
export const mostHeaderLength = 16_384;
/** Most pairs in a query or a form. */
export const mostPairs = 10_000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacters = /[\u0000-\u001f\u007f]/;

export function hasControlCharacter(text: string): boolean {
  return controlCharacters.test(text);
}

/** Refuses an argument whose text is too long for its location. @throws ToolFailure invalid_arguments */
export function refuseLonger(name: string, length: number, most: number, where: string): void {
  if (length <= most) return;
  const what = `has ${length} characters; allowed in ${where}: ${most}`;
  const message = `${name}: ${what}; send less, or use a tool that takes it in a body`;
  const reason = `${name}: has too many characters; allowed in ${where}: ${most}`;
  throw new ToolFailure('invalid_arguments', message, [{ path: name, message: what }], reason);
}

/**
 * An argument as one text: scalars as they are, arrays joined by commas, objects as JSON; absent for null.
 * @throws ToolFailure invalid_arguments on a lone surrogate, which no URL or header can carry
 */
export function valueText(name: string, value: unknown): string | undefined {
  const text = wireText(name, value);
  return typeof text === 'object' ? text.join(',') : text;
}

/** The same with the entries of an array apart. @throws ToolFailure invalid_arguments */
export function wireText(name: string, value: unknown): WireText | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return wellFormed(name, typeof value === 'string' ? value : scalarText(value));
  const texts: string[] = [];
  addTexts(texts, value);
  for (const text of texts) wellFormed(name, text);
  return texts;
}

function wellFormed(name: string, text: string): string {
  if (text.isWellFormed()) return text;
  throw plainFailure('invalid_arguments', `${name}: is not well-formed Unicode text`);
}

/** The texts of the entries of an array, and of arrays inside it. */
function addTexts(texts: string[], items: readonly unknown[]): void {
  for (const item of items) {
    if (item === undefined || item === null) continue;
    if (Array.isArray(item)) addTexts(texts, item);
    else texts.push(typeof item === 'string' ? item : scalarText(item));
  }
}

function scalarText(value: unknown): string {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Number of characters, without the commas between texts. */
export function lengthOf(text: WireText): number {
  return typeof text === 'string' ? text.length : text.reduce((sum, one) => sum + one.length, 0);
}

/** Percent-encoded for a URL or a form. */
export function encodeText(text: WireText): string {
  return typeof text === 'string' ? encode(text) : text.map(encode).join(',');
}
