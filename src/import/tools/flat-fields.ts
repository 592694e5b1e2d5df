import type { JsonSchema } from '../../domain/schema/json-schema.ts';

export type Definition = { name: string; required: boolean; definition: JsonSchema };

const nested = new Set([
  'type',
  'description',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'format',
  'pattern',
  'required',
  'items',
  'properties',
]);
const ofArgument = new Set([
  'in',
  'wire_name',
  'style',
  'value',
  'allow_slashes',
  'content',
  'file_name',
  'media_type',
]);

/** Definitions as a flat map, which people read more easily than a JSON Schema; undefined when some need one. */
export function flatFields(definitions: readonly Definition[]): { [name: string]: JsonSchema } | undefined {
  if (!definitions.every(({ definition }) => isFlat(definition, true))) return undefined;
  return Object.fromEntries(
    definitions.map(({ name, required, definition }) => [
      name,
      required ? definition : { ...definition, optional: true },
    ]),
  );
}

function isFlat(schema: JsonSchema, isArgument: boolean): boolean {
  if (typeof schema.type !== 'string' || schema.type === 'null') return false;
  for (const keyword of Object.keys(schema))
    if (!nested.has(keyword) && !(isArgument && ofArgument.has(keyword))) return false;
  const { items, properties, required } = schema;
  if (Array.isArray(required) && required.length > 100) return false;
  const inner = [...(items === undefined ? [] : [items]), ...Object.values((properties ?? {}) as JsonSchema)];
  return inner.every((part) => isFlat(part as JsonSchema, false));
}
