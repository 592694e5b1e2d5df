import { ToolFailure } from '../../errors.ts';
import { isRawNumber } from '../json/json.ts';

/** Formats of arguments as text. */
export type ArrayFormat = 'repeat' | 'comma' | 'brackets';

/** Longest path and query of a request; most servers take no more than a quarter of it. */
export const mostUrlLength = 65_536;
/** Longest header that an argument may become. */
export const mostHeaderLength = 16_384;
/** Most pairs in a query or a form. */
export const mostPairs = 20_000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacters = /[\u0000-\u001f\u007f]/;

export function hasControlCharacter(text: string): boolean {
  return controlCharacters.test(text);
}

/** Refuses an argument whose text is too long for its location. @throws ToolFailure invalid_arguments */
export function refuseLonger(name: string, length: number, most: number, where: string): void {
  if (length <= most) return;
  const what = `has ${length} characters; allowed in ${where}: ${most}`;
  throw new ToolFailure('invalid_arguments', `${name}: ${what}; send less, or use a tool that takes it in a body`, [
    { path: name, message: what },
  ]);
}

/**
 * An argument as one text: scalars as they are, arrays joined by commas, objects as JSON; absent for null.
 * @throws ToolFailure invalid_arguments on a lone surrogate, which no URL or header can carry
 */
export function valueText(name: string, value: unknown): string | undefined {
  const text = textOf(value);
  if (text !== undefined && !text.isWellFormed())
    throw new ToolFailure('invalid_arguments', `${name}: is not well-formed Unicode text`);
  return text;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return scalarText(value);
  const texts: string[] = [];
  for (const item of value) {
    const text = textOf(item);
    if (text !== undefined) texts.push(text);
  }
  return texts.join(',');
}

function scalarText(value: unknown): string {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The pairs that an argument becomes in a query or form. @throws ToolFailure invalid_arguments when there are too many */
export function arrayPairs(name: string, value: unknown, format: ArrayFormat): [name: string, text: string][] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value) || format === 'comma') return [[name, valueText(name, value) ?? '']];
  if (value.length > mostPairs) {
    const what = `found ${value.length} entries; allowed in a query or a form: at most ${mostPairs}`;
    throw new ToolFailure('invalid_arguments', `${name}: ${what}`, [{ path: name, message: what }]);
  }
  const key = format === 'brackets' ? `${name}[]` : name;
  const pairs: [string, string][] = [];
  for (const item of value) {
    const text = valueText(name, item);
    if (text !== undefined) pairs.push([key, text]);
  }
  return pairs;
}
