/** A JSON Schema document (2020-12). */
export type JsonSchema = { [keyword: string]: unknown };

export const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords whose value is one schema, a list of schemas, or a map of schemas. */
export const schemaKeywords = {
  one: ['items', 'not', 'if', 'then', 'else', 'additionalProperties', 'contains', 'propertyNames'],
  list: ['allOf', 'anyOf', 'oneOf', 'prefixItems'],
  map: ['properties', '$defs', 'dependentSchemas'],
} as const;

/** Returns true for a schema with keywords. `true` and `false` are schemas too, but have no content. */
export function isSchemaObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A schema in a document, and its position in the parent schema. */
export type SchemaPart = {
  schema: JsonSchema;
  parent: SchemaPart | undefined;
  /** Keyword of the parent that contains it; empty at the root. */
  keyword: string;
  /** Name or index, if the keyword contains several schemas. */
  name: string | number | undefined;
  /** True if it is reachable through `properties` only. */
  isPlainProperty: boolean;
};

/** All schemas of a document. Each parent comes before its children. */
export type SchemaIndex = {
  root: JsonSchema;
  parts: readonly SchemaPart[];
  /** The schemas of the document, as opposed to values that only look like schemas. */
  partOf: ReadonlyMap<JsonSchema, SchemaPart>;
  anchors: ReadonlyMap<string, JsonSchema>;
};

/** Maximum schemas in a document, including those that references repeat. */
export const mostSchemas = 2000;

const holdings: ReadonlyMap<string, string> = new Map(
  Object.entries(schemaKeywords).flatMap(([holding, keywords]) => keywords.map((keyword) => [keyword, holding])),
);

/** Walks a document once. Stops and returns undefined if it has more than `mostSchemas`. */
export function indexSchema(root: JsonSchema): SchemaIndex | undefined {
  const parts: SchemaPart[] = [
    { schema: root, parent: undefined, keyword: '', name: undefined, isPlainProperty: true },
  ];
  const partOf = new Map<JsonSchema, SchemaPart>();
  const anchors = new Map<string, JsonSchema>();
  // The array grows during the iteration.
  for (const part of parts) {
    const { schema } = part;
    partOf.set(schema, part);
    if (typeof schema.$anchor === 'string' && !anchors.has(schema.$anchor)) anchors.set(schema.$anchor, schema);
    if (!addInner(part, parts)) return undefined;
  }
  return { root, parts, partOf, anchors };
}

/** Adds the schemas directly inside `parent`. Returns false if there are too many. */
function addInner(parent: SchemaPart, parts: SchemaPart[]): boolean {
  const add = (keyword: string, name: string | number | undefined, schema: unknown): boolean => {
    if (!isSchemaObject(schema)) return true;
    if (parts.length >= mostSchemas) return false;
    const isPlainProperty = parent.isPlainProperty && keyword === 'properties';
    parts.push({ schema, parent, keyword, name, isPlainProperty });
    return true;
  };
  for (const keyword of Object.keys(parent.schema)) {
    const held = parent.schema[keyword];
    const holding = holdings.get(keyword);
    if (holding === 'one' && !add(keyword, undefined, held)) return false;
    if (holding === 'list' && Array.isArray(held) && !held.every((item, i) => add(keyword, i, item))) return false;
    if (holding !== 'map' || !isSchemaObject(held)) continue;
    for (const name of Object.keys(held)) if (!add(keyword, name, held[name])) return false;
  }
  return true;
}

/** Returns the path of a schema in its document, such as `properties.tags.items`; empty at the root. */
export function pathOf(part: SchemaPart): string {
  const steps: string[] = [];
  for (let at: SchemaPart | undefined = part; at?.parent; at = at.parent) {
    if (typeof at.name === 'number') steps.push(`${at.keyword}[${at.name}]`);
    else steps.push(at.name === undefined ? at.keyword : `${at.keyword}.${at.name}`);
  }
  return steps.reverse().join('.');
}

/** Resolves a `$ref` within the document. The target may be of any type; undefined if there is none. */
export function resolveReference({ root, anchors }: Pick<SchemaIndex, 'root' | 'anchors'>, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return anchors.get(ref.slice(1));
  let value: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonSchema)[key];
  }
  return value;
}

/** Returns every property name that a schema declares. Other names in a value were chosen by its sender. */
export function declaredNames(root: JsonSchema): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { schema, keyword, name } of indexSchema(root)?.parts ?? []) {
    if (keyword === 'properties' && typeof name === 'string') names.add(name);
    if (Array.isArray(schema.required)) for (const required of schema.required) names.add(String(required));
  }
  return names;
}
