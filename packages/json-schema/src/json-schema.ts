/** A JSON Schema document (2020-12). */
export type JsonSchema = { [keyword: string]: unknown };

export const schemaDialect = 'https://json-schema.org/draft/2020-12/schema';

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
export type SchemaNode = {
  schema: JsonSchema;
  parent: SchemaNode | undefined;
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
  nodes: readonly SchemaNode[];
  /** The schemas of the document, as opposed to values that only look like schemas. */
  nodesBySchema: ReadonlyMap<JsonSchema, SchemaNode>;
  anchors: ReadonlyMap<string, JsonSchema>;
};

/** Maximum schemas in a document, including those that references repeat. */
export const maxSchemas = 2000;

const keywordShapes: ReadonlyMap<string, string> = new Map(
  Object.entries(schemaKeywords).flatMap(([shape, keywords]) => keywords.map((keyword) => [keyword, shape])),
);

/** Walks a document once. Stops and returns undefined if it has more than `maxSchemas`. */
export function indexSchema(root: JsonSchema): SchemaIndex | undefined {
  const nodes: SchemaNode[] = [
    { schema: root, parent: undefined, keyword: '', name: undefined, isPlainProperty: true },
  ];
  const nodesBySchema = new Map<JsonSchema, SchemaNode>();
  const anchors = new Map<string, JsonSchema>();
  // `nodes` grows during the iteration.
  for (const node of nodes) {
    const { schema } = node;
    nodesBySchema.set(schema, node);
    if (typeof schema.$anchor === 'string' && !anchors.has(schema.$anchor)) anchors.set(schema.$anchor, schema);
    if (!addChildren(node, nodes)) return undefined;
  }
  return { root, nodes, nodesBySchema, anchors };
}

/** Adds the schemas directly inside `parent`. Returns false if there are too many. */
function addChildren(parent: SchemaNode, nodes: SchemaNode[]): boolean {
  const add = (keyword: string, name: string | number | undefined, schema: unknown): boolean => {
    if (!isSchemaObject(schema)) return true;
    if (nodes.length >= maxSchemas) return false;
    const isPlainProperty = parent.isPlainProperty && keyword === 'properties';
    nodes.push({ schema, parent, keyword, name, isPlainProperty });
    return true;
  };
  for (const keyword of Object.keys(parent.schema)) {
    const value = parent.schema[keyword];
    const shape = keywordShapes.get(keyword);
    if (shape === 'one' && !add(keyword, undefined, value)) return false;
    if (shape === 'list' && Array.isArray(value) && !value.every((item, i) => add(keyword, i, item))) return false;
    if (shape !== 'map' || !isSchemaObject(value)) continue;
    for (const name of Object.keys(value)) if (!add(keyword, name, value[name])) return false;
  }
  return true;
}

/** Returns the path of a schema in its document, such as `properties.tags.items`; empty at the root. */
export function getSchemaPath(node: SchemaNode): string {
  const steps: string[] = [];
  for (let current: SchemaNode | undefined = node; current?.parent; current = current.parent) {
    if (typeof current.name === 'number') steps.push(`${current.keyword}[${current.name}]`);
    else steps.push(current.name === undefined ? current.keyword : `${current.keyword}.${current.name}`);
  }
  return steps.reverse().join('.');
}

/** Resolves a `$ref` within the document. The target may be of any type; undefined if there is none. */
export function resolveReference({ root, anchors }: Pick<SchemaIndex, 'root' | 'anchors'>, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return anchors.get(ref.slice(1));
  let value: unknown = root;
  for (const token of ref.slice(2).split('/')) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonSchema)[key];
  }
  return value;
}

/** Returns every property name that a schema declares. Other names in a value were chosen by its sender. */
export function getDeclaredNames(root: JsonSchema): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { schema, keyword, name } of indexSchema(root)?.nodes ?? []) {
    if (keyword === 'properties' && typeof name === 'string') names.add(name);
    if (Array.isArray(schema.required)) for (const required of schema.required) names.add(String(required));
  }
  return names;
}
