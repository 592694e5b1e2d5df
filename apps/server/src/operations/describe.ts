import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Operation } from './operation.ts';
import { schemaNames } from './schema-names.ts';

type JsonObject = { [key: string]: unknown };

/** Converts a zod declaration to JSON Schema 2020-12, without `$schema` so that it can be embedded in a document. */
export function describeAsJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
  const { $schema: _, ...jsonSchema } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject;
  return jsonSchema;
}

export function toOutputSchema(op: Operation): JsonObject {
  return describeAsJsonSchema(op.output, 'output');
}

/**
 * Converts a schema for the OpenAPI document, and adds the named schemas that it references to `components`.
 * @throws Error if two different schemas have the same name
 */
export function toComponentSchema(schema: z.ZodType, io: 'input' | 'output', components: JsonObject): JsonObject {
  const generated = z.toJSONSchema(schema, { io, unrepresentable: 'any', metadata: schemaNames, override: boundTuple });
  const text = JSON.stringify(generated).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $schema: _, $defs = {}, ...componentSchema } = JSON.parse(text) as JsonObject & { $defs?: JsonObject };
  for (const [id, definition] of Object.entries($defs)) {
    if (!isDeepStrictEqual(components[id] ?? definition, definition))
      throw new Error(`Two schemas have the name ${id}. Give one of them another name.`);
    components[id] = definition;
  }
  return componentSchema;
}

/** Bounds a tuple by its length, because client generators do not understand `false` as a schema. */
function boundTuple({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.items !== false || !jsonSchema.prefixItems) return;
  delete jsonSchema.items;
  jsonSchema.maxItems = jsonSchema.prefixItems.length;
}
