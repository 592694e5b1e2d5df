import { isRawNumber } from '../../domain/json/json.ts';

/** Reading of values whose form nobody checked: what does not have the expected form counts as absent. */

export type JsonFields = { readonly [name: string]: unknown };

export function isFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** An own field; a document may have fields named like inherited ones. */
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
