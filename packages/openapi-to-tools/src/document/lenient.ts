import { isRawNumber } from '@toolhost/json/json';

/** Accessors for unvalidated values. A value of an unexpected type counts as absent. */

export type JsonFields = { readonly [name: string]: unknown };

export function isFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Returns an own field. A document may have fields named like inherited properties. */
export function getField(value: unknown, name: string): unknown {
  return isFields(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function toEntries(value: unknown): [string, unknown][] {
  return isFields(value) ? Object.entries(value) : [];
}

export function toTexts(value: unknown): string[] {
  return toList(value)
    .map(toText)
    .filter((text) => text !== '');
}
