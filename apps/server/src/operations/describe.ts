import { isDeepStrictEqual } from 'node:util';
import { fieldSchema } from '@toolhost/tool-config/input-schema';
import { serverConfigSchema } from '@toolhost/tool-config/server-config';
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

/** Returns the published schema of a configuration file, for completion in editors. */
export function serverConfigJsonSchema(id: string): JsonObject {
  const { $defs, ...field } = describeAsJsonSchema(fieldSchema, 'input');
  const schema = z.toJSONSchema(serverConfigSchema, { io: 'input' }) as unknown as JsonObject & {
    properties: { tools: { items: { properties: { input_schema: JsonObject } } } };
  };
  const tool = schema.properties.tools.items.properties;
  tool.input_schema = {
    description: tool.input_schema.description,
    anyOf: [
      { type: 'object', properties: { type: { const: 'object' } }, required: ['type'] },
      { type: 'object', additionalProperties: field },
    ],
    default: {},
  };
  return { ...schema, $id: id, title: 'Toolhost server configuration', $defs };
}

/** Allows `$schema` in a published schema for files. */
export function allowSchemaField(schema: JsonObject): JsonObject {
  const $schema = { type: 'string', description: 'URL of this schema, for editors. It is not stored.' };
  return { ...schema, properties: { $schema, ...Object(schema.properties) } };
}
