import type { Problem } from '../errors.ts';
import { didYouMean, shown } from './problems.ts';

/** A JSON Schema document (2020-12). */
export type JsonSchema = { [keyword: string]: unknown };

export const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords whose value is one schema, a list of schemas, or a map of schemas. */
const single = ['items', 'not', 'if', 'then', 'else', 'additionalProperties', 'contains', 'propertyNames'];
const lists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const maps = ['properties', '$defs', 'dependentSchemas'];

/**
 * What a stranger's schema may use. `pattern` and `patternProperties` are missing because a regular expression can
 * take exponential time, `$id` and `$dynamicRef` because they redirect references.
 */
const allowed = [
  '$schema',
  '$comment',
  '$anchor',
  '$defs',
  '$ref',
  'title',
  'description',
  'type',
  'enum',
  'const',
  'default',
  'examples',
  'format',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minContains',
  'maxContains',
  'minProperties',
  'maxProperties',
  'required',
  'dependentRequired',
  'deprecated',
  'readOnly',
  'writeOnly',
  'in',
  'x-mcp-header',
  ...single,
  ...lists,
  ...maps,
]; // prettier-ignore

const maxSchemas = 2000;
const types = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);

/** Everything that makes a tool's JSON Schema unusable or unsafe: `root` must describe an object. */
export function jsonSchemaProblems(root: JsonSchema): Problem[] {
  const problems: Problem[] = [];
  if (root.type !== 'object') problems.push({ path: 'type', message: `found ${shown(root.type)}; allowed: "object"` });
  if (root.$schema !== undefined && root.$schema !== dialect) {
    problems.push({
      path: '$schema',
      message: `unknown dialect ${shown(root.$schema)}; allowed: "${dialect}", or leave it out`,
    });
  }
  walk(root, '', (schema, path) => problems.push(...keywordProblems(schema, path)));
  if (problems.length > 0) return problems;
  return [...referenceProblems(root), ...headerAnnotationProblems(root)];
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schemas directly below one, with their paths. */
function below(schema: JsonSchema, path: string): [keyword: string, schema: JsonSchema, path: string][] {
  const at = (rest: string) => (path ? `${path}.${rest}` : rest);
  const found: [string, JsonSchema, string][] = [];
  for (const keyword of single) {
    const value = schema[keyword];
    if (isSchema(value)) found.push([keyword, value, at(keyword)]);
  }
  for (const keyword of lists) {
    const value = schema[keyword];
    if (Array.isArray(value)) {
      value.forEach((item, i) => isSchema(item) && found.push([keyword, item, at(`${keyword}[${i}]`)]));
    }
  }
  for (const keyword of maps) {
    const value = schema[keyword];
    if (isSchema(value)) {
      for (const [name, item] of Object.entries(value)) {
        if (isSchema(item)) found.push([keyword, item, at(`${keyword}.${name}`)]);
      }
    }
  }
  return found;
}

function walk(schema: JsonSchema, path: string, visit: (schema: JsonSchema, path: string) => void): void {
  visit(schema, path);
  for (const [, inner, innerPath] of below(schema, path)) walk(inner, innerPath, visit);
}

function keywordProblems(schema: JsonSchema, path: string): Problem[] {
  const at = (keyword: string) => (path ? `${path}.${keyword}` : keyword);
  const problems: Problem[] = Object.keys(schema)
    .filter((keyword) => !allowed.includes(keyword))
    .map((keyword) => ({ path: at(keyword), message: `this keyword is not supported${didYouMean(keyword, allowed)}` }));
  for (const type of [schema.type].flat()) {
    if (type !== undefined && !types.has(type as string)) {
      problems.push({ path: at('type'), message: `found ${shown(type)}; allowed: ${[...types].join(', ')}` });
    }
  }
  if (schema.required !== undefined && !isStrings(schema.required)) {
    problems.push({ path: at('required'), message: 'allowed: an array of property names' });
  }
  if (schema.enum !== undefined && !Array.isArray(schema.enum)) {
    problems.push({ path: at('enum'), message: `found ${shown(schema.enum)}; allowed: an array of values` });
  }
  for (const keyword of maps) {
    if (schema[keyword] !== undefined && !isSchema(schema[keyword])) {
      problems.push({ path: at(keyword), message: `found ${shown(schema[keyword])}; allowed: an object of schemas` });
    }
  }
  const ref = schema.$ref;
  if (ref !== undefined && (typeof ref !== 'string' || !ref.startsWith('#'))) {
    problems.push({ path: at('$ref'), message: 'only references into this schema are followed; allowed: "#/$defs/…"' });
  }
  return problems;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function target(root: JsonSchema, ref: string): JsonSchema | undefined {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) {
    let found: JsonSchema | undefined;
    walk(root, '', (schema) => {
      if (schema.$anchor === ref.slice(1)) found = schema;
    });
    return found;
  }
  let value: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonSchema)[key];
  }
  return isSchema(value) ? value : undefined;
}

/** References must lead somewhere, never in a circle, and the schema they unfold to must stay small. */
function referenceProblems(root: JsonSchema): Problem[] {
  const sizes = new Map<JsonSchema, number>();
  const open = new Set<JsonSchema>();
  const problems: Problem[] = [];
  const unfold = (schema: JsonSchema, path: string): number => {
    const known = sizes.get(schema);
    if (known !== undefined) return known;
    if (open.has(schema)) {
      problems.push({ path, message: 'this reference leads back to itself; recursive schemas are not supported' });
      return 1;
    }
    open.add(schema);
    let size = 1;
    if (typeof schema.$ref === 'string') {
      const next = target(root, schema.$ref);
      if (next) size += unfold(next, path);
      else
        problems.push({
          path: path ? `${path}.$ref` : '$ref',
          message: `found ${shown(schema.$ref)}; nothing is there`,
        });
    }
    for (const [, inner, innerPath] of below(schema, path)) size += unfold(inner, innerPath);
    open.delete(schema);
    sizes.set(schema, size);
    return size;
  };
  if (unfold(root, '') > maxSchemas) problems.push({ path: '', message: `unfolds to more than ${maxSchemas} schemas` });
  return problems;
}

/**
 * `x-mcp-header` (MCP 2026-07-28, tools): an RFC 9110 token, unique in the schema without regard to case, on a string,
 * integer or boolean that is reached through `properties` alone. One violation makes clients drop the whole tool.
 */
export function headerAnnotationProblems(root: JsonSchema): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const visit = (schema: JsonSchema, path: string, reachable: boolean): void => {
    const name = schema['x-mcp-header'];
    if (name !== undefined) {
      const fault = annotationFault(name, schema, reachable, seen);
      if (fault) problems.push({ path: path ? `${path}.x-mcp-header` : 'x-mcp-header', message: fault });
    }
    for (const [keyword, inner, innerPath] of below(schema, path)) {
      visit(inner, innerPath, reachable && keyword === 'properties');
    }
  };
  visit(root, '', true);
  return problems;
}

function annotationFault(name: unknown, schema: JsonSchema, reachable: boolean, seen: Set<string>): string | undefined {
  if (typeof name !== 'string' || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/.test(name)) {
    return `found ${shown(name)}; allowed: a header name of letters, digits and -`;
  }
  if (seen.has(name.toLowerCase())) return `${shown(name)} is used twice in this schema`;
  seen.add(name.toLowerCase());
  if (!['string', 'integer', 'boolean'].includes(schema.type as string)) {
    return `found on type ${shown(schema.type)}; allowed: string, integer, boolean`;
  }
  return reachable ? undefined : 'only allowed on properties, not inside items, combinations or definitions';
}
