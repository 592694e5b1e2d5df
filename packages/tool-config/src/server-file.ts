import { type LimitField, limitFieldNames, limitFields } from '@toolhost/limits/call-limits';
import { z } from 'zod';
import { fieldSchema } from './input-schema.ts';
import { serverConfigSchema } from './server-config.ts';

/** Reference to the value of a secret. A server file never contains the value itself. */
const secretReference = z
  .union([
    z.literal('stored').describe('The value is already stored by Toolhost and stays as it is.'),
    z.strictObject({
      env: z
        .string()
        .regex(/^[A-Za-z_]\w*$/)
        .describe('Environment variable that contains the value.'),
    }),
    z.strictObject({
      file: z.string().min(1).describe('File that contains the value, relative to the folder of this file.'),
    }),
  ])
  .describe('Source of the value: { env: NAME }, { file: PATH }, or stored.');
export type SecretReference = z.infer<typeof secretReference>;

/** NAME of `{{NAME}}`, or the path of a sealed field, such as oauth.client_secret. */
const referenceName = /^[A-Za-z_]\w{0,63}$|^(oauth|(authentication|credentials\.[\w-]+)(\[\d\])?)\.\w+$/;

const limit = (field: LimitField) =>
  z.int().min(1).max(limitFields[field].max).optional().describe(`${limitFields[field].label}.`);

/** Sections that a server file may have in addition to the configuration fields. */
export const fileSections = {
  secrets: z
    .record(z.string().regex(referenceName), secretReference)
    .optional()
    .describe('Sources of secrets, by the NAME of {{NAME}} or by the path of a field, such as oauth.client_secret.'),
  limits: z
    .strictObject(Object.fromEntries(limitFieldNames.map((field) => [field, limit(field)])))
    .optional()
    .describe('Call limits of the server. Absent limits have their defaults.'),
};

type JsonObject = { [key: string]: unknown };

/** Creates the published schema of a configuration, for completion in editors. */
export function createConfigJsonSchema(id: string): JsonObject {
  const { $schema: _, $defs, ...field } = z.toJSONSchema(fieldSchema, { io: 'input', unrepresentable: 'any' });
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

/** Creates the published schema of a file for `toolhost apply`: a configuration with additional sections. */
export function createFileJsonSchema(id: string): JsonObject {
  const { properties: sections } = z.toJSONSchema(z.object(fileSections), { io: 'input' });
  const { properties, ...schema } = createConfigJsonSchema(id);
  return { ...schema, title: 'Toolhost server file', properties: { ...Object(properties), ...sections } };
}

/** Allows `$schema` in a published schema for files. */
export function allowSchemaField(schema: JsonObject): JsonObject {
  const $schema = { type: 'string', description: 'URL of this schema, for editors. It is not stored.' };
  return { ...schema, properties: { $schema, ...Object(schema.properties) } };
}
