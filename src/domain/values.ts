import { ToolFailure } from '../errors.ts';
import { isRawNumber } from './json.ts';

/** How arguments are written as text. */
export type ArrayFormat = 'repeat' | 'comma' | 'brackets';

/**
 * An argument as one text: scalars as they are, arrays joined by commas, objects as JSON; absent for null.
 * @throws ToolFailure invalid_arguments on a lone surrogate, which no URL or header can carry
 */
export function valueText(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = Array.isArray(value)
    ? value.flatMap((item) => valueText(name, item) ?? []).join(',')
    : scalarText(value);
  if (!text.isWellFormed()) throw new ToolFailure('invalid_arguments', `${name}: is not well-formed Unicode text`);
  return text;
}

function scalarText(value: unknown): string {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The pairs that an argument becomes in a query or form. */
export function arrayPairs(name: string, value: unknown, format: ArrayFormat): [name: string, text: string][] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value) || format === 'comma') return [[name, valueText(name, value) ?? '']];
  const key = format === 'brackets' ? `${name}[]` : name;
  return value.flatMap((item): [string, string][] => {
    const text = valueText(name, item);
    return text === undefined ? [] : [[key, text]];
  });
}
