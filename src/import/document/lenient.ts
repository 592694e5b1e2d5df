import { isRawNumber } from '../../domain/json/json.ts';

/** Accessors for unvalidated values. A value of an unexpected type counts as absent. */

export type JsonFields = { readonly [name: string]: unknown };

export function isFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Returns an own field. A document may have fields named like inherited properties. */
export function field(value: unknown, name: string): unknown {
  return isFields(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function entriesOf(value: unknown): [string, unknown][] {
  return isFields(value) ? Object.entries(value) : [];
}

export function asTexts(value: unknown): string[] {
  return listOf(value)
    .map(asText)
    .filter((text) => text !== '');
}
