import { z } from 'zod';
import { fieldSchema } from '../domain/config/input-schema.ts';
import { serverConfigSchema } from '../domain/config/server-config.ts';
import type { Operation } from './operation.ts';

type JsonObject = { [key: string]: unknown };

/** Converts a zod declaration to JSON Schema 2020-12, without `$schema` so that it can be embedded in a document. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject;
  return rest;
}

export function inputSchemaOf(op: Operation): JsonObject {
  return jsonSchemaOf(op.input, 'input');
}

export function outputSchemaOf(op: Operation): JsonObject {
  return jsonSchemaOf(op.output, 'output');
}

/** The published schema of a configuration file, for completion in editors. */
export function serverConfigJsonSchema(id: string): JsonObject {
  const { $defs, ...field } = jsonSchemaOf(fieldSchema, 'input');
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
