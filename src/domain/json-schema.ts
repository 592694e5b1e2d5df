/** A JSON Schema document (2020-12). */
export type JsonSchema = { [keyword: string]: unknown };

export const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords whose value is one schema, a list of schemas, or a map of schemas. */
export const singleSchemas = [
  'items',
  'not',
  'if',
  'then',
  'else',
  'additionalProperties',
  'contains',
  'propertyNames',
];
export const schemaLists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
export const schemaMaps = ['properties', '$defs', 'dependentSchemas'];

/** Whether a value is a schema that can say something; `true` and `false` are schemas too, but have nothing inside. */
export function isSchemaObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schemas directly below one, with their paths. */
export function schemasBelow(schema: JsonSchema, path: string): [keyword: string, schema: JsonSchema, path: string][] {
  const at = (rest: string) => (path ? `${path}.${rest}` : rest);
  const found: [string, unknown, string][] = singleSchemas.map((keyword) => [keyword, schema[keyword], at(keyword)]);
  for (const keyword of schemaLists) {
    const list = schema[keyword];
    if (Array.isArray(list))
      for (const [i, item] of list.entries()) found.push([keyword, item, at(`${keyword}[${i}]`)]);
  }
  for (const keyword of schemaMaps) {
    const map = schema[keyword];
    if (!isSchemaObject(map)) continue;
    for (const [name, item] of Object.entries(map)) found.push([keyword, item, at(`${keyword}.${name}`)]);
  }
  return found.filter((entry): entry is [string, JsonSchema, string] => isSchemaObject(entry[1]));
}

/** Visits a schema and every one inside it. */
export function walkSchema(schema: JsonSchema, path: string, visit: (schema: JsonSchema, path: string) => void): void {
  visit(schema, path);
  for (const [, inner, innerPath] of schemasBelow(schema, path)) walkSchema(inner, innerPath, visit);
}

/** What a `$ref` into the same document leads to, whatever it is; undefined when nothing is there. */
export function resolveReference(root: JsonSchema, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) {
    let found: JsonSchema | undefined;
    walkSchema(root, '', (schema) => {
      if (schema.$anchor === ref.slice(1)) found ??= schema;
    });
    return found;
  }
  let value: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonSchema)[key];
  }
  return value;
}
