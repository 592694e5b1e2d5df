import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { asTexts, entriesOf, isFields } from '../document/lenient.ts';
import { joined } from './texts.ts';

/** Most names of left fields that a description has. */
const mostNames = 20;

/** Characters that something takes in a list of tools. */
export function sizeOf(schema: unknown): number {
  return JSON.stringify(schema)?.length ?? 0;
}

/** The names of fields that have no schema of their own any more, as a sentence. */
export function moreFields(names: readonly string[]): string {
  const rest = names.length > mostNames ? ` and ${names.length - mostNames} more` : '';
  return `Also takes ${names.slice(0, mostNames).join(', ')}${rest}.`;
}

/**
 * The fields of an object that stay when about `save` characters have to go: of the optional ones the largest go first.
 * A field that is most of the object is looked into instead, so that a body of one field keeps it.
 */
export function withFewerFields(schema: JsonSchema, save: number): JsonSchema {
  if (isFields(schema.items)) return { ...schema, items: withFewerFields(schema.items, save) };
  const required = new Set(asTexts(schema.required));
  const sizes = entriesOf(schema.properties).map(([name, field]) => ({ name, field, size: sizeOf(field) }));
  const whole = sizes.reduce((sum, { size }) => sum + size, 0);
  const kept = new Map(sizes.map(({ name, field }) => [name, field]));
  let left = save;
  const gone = new Set<string>();
  for (const { name, field, size } of sizes.toSorted((a, b) => b.size - a.size)) {
    if (left <= 0) break;
    if (size > whole / 2 && isFields(field)) {
      const smaller = withFewerFields(field, left);
      kept.set(name, smaller);
      left -= size - sizeOf(smaller);
    } else if (!required.has(name)) {
      kept.delete(name);
      gone.add(name);
      left -= size;
    }
  }
  if (gone.size === 0) return { ...schema, ...(kept.size > 0 && { properties: Object.fromEntries(kept) }) };
  // What is left out may be sent, so the object is open.
  const { additionalProperties: _closed, description = '', ...open } = schema;
  const names = sizes.map(({ name }) => name).filter((name) => gone.has(name));
  return {
    ...open,
    description: joined([String(description), moreFields(names)]),
    properties: Object.fromEntries(kept),
  };
}
