/** A JSON Schema document (2020-12). */
export type JsonSchema = { [keyword: string]: unknown };

export const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords whose value is one schema, a list of schemas, or a map of schemas. */
export const singleSchemas: readonly string[] = [
  'items',
  'not',
  'if',
  'then',
  'else',
  'additionalProperties',
  'contains',
  'propertyNames',
];
export const schemaLists: readonly string[] = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
export const schemaMaps: readonly string[] = ['properties', '$defs', 'dependentSchemas'];

/** Whether a value is a schema that can say something; `true` and `false` are schemas too, but have nothing inside. */
export function isSchemaObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
