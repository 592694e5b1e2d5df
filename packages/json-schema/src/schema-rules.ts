import type { Problem } from '@toolhost/errors/errors';
import { describeValue, type ProblemList, type SuggestionBudget, suggestName } from '@toolhost/errors/problems';
import { isDeeperThan } from '@toolhost/json/json';
import {
  getSchemaPath,
  indexSchema,
  isSchemaObject,
  type JsonSchema,
  maxSchemas,
  resolveReference,
  type SchemaIndex,
  type SchemaNode,
  schemaDialect,
  schemaKeywords,
} from './json-schema.ts';
import { parsePattern } from './pattern-syntax.ts';

const maxDepth = 32;
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

type Form = { isValid: (value: unknown) => boolean; allowed: string };

const isSchema = (value: unknown) => typeof value === 'boolean' || isSchemaObject(value);
const isSchemaList = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isSchema);
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isStringList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
const isMapOf = (isValid: (value: unknown) => boolean) => (value: unknown) =>
  isSchemaObject(value) && Object.values(value).every(isValid);

/**
 * Allowed keywords of an untrusted schema, and the form of each. Not supported are `patternProperties`, because every
 * pattern would search every name; `uniqueItems`, because comparing all pairs takes quadratic time; and `$id` and
 * `$dynamicRef`, because they redirect references.
 */
const forms = new Map<string, Form>(
  (
    [
      [schemaKeywords.one, isSchema, 'a schema'],
      [schemaKeywords.list, isSchemaList, 'an array of schemas'],
      [schemaKeywords.map, isMapOf(isSchema), 'an object of schemas'],
      [['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'], Number.isFinite, 'a number'],
      [['multipleOf'], (value) => Number.isFinite(value) && Number(value) > 0, 'a number above 0'],
      [['minLength', 'maxLength', 'minItems', 'maxItems'], isCount, 'a non-negative integer'],
      [['minContains', 'maxContains', 'minProperties', 'maxProperties'], isCount, 'a non-negative integer'],
      [['required'], isStringList, 'an array of property names'],
      [['dependentRequired'], isMapOf(isStringList), 'an object of arrays of property names'],
      [['enum', 'examples'], Array.isArray, 'an array of values'],
      [['deprecated', 'readOnly', 'writeOnly'], (value) => typeof value === 'boolean', 'true or false'],
      [['$comment', '$anchor', 'title', 'description', 'format'], (value) => typeof value === 'string', 'a string'],
      [
        ['$ref'],
        (v) => typeof v === 'string' && v.startsWith('#'),
        'a reference into this schema, such as "#/$defs/…"',
      ],
      [
        ['type'],
        (v) => [v].flat().length > 0 && [v].flat().every((type) => types.includes(type as string)),
        types.join(', '),
      ],
      [['$schema'], (value) => value === schemaDialect, `"${schemaDialect}", or leave it out`],
      [['pattern'], (v) => typeof v === 'string' && !('fault' in parsePattern(v)), 'a regular expression'],
      [['const', 'default', 'x-mcp-header'], () => true, ''],
    ] as [readonly string[], Form['isValid'], string][]
  ).flatMap(([keywords, isValid, allowed]) =>
    keywords.map((keyword): [string, Form] => [keyword, { isValid, allowed }]),
  ),
);

/** Returns true if schemas may have a keyword, in any form. */
export function isKnownKeyword(keyword: string): boolean {
  return forms.has(keyword);
}

/** Returns the problem of a document that is nested too deeply to walk. Must be called before any other rule. */
export function findDepthProblem(schema: unknown): Problem | undefined {
  return isDeeperThan(schema, maxDepth) ? { path: '', message: `nested deeper than ${maxDepth} levels` } : undefined;
}

/** Adds everything that makes a tool's JSON Schema unusable or unsafe. `root` must describe an object. */
export function checkSchema(root: JsonSchema, problems: ProblemList): void {
  const depthError = findDepthProblem(root);
  if (depthError) {
    problems.add(() => depthError);
    return;
  }
  const index = indexSchema(root);
  if (!index) {
    problems.add(createTooManySchemasProblem);
    return;
  }
  const patternProblem = checkPatternLength(index);
  if (patternProblem) {
    problems.add(() => patternProblem);
    return;
  }
  const countBefore = problems.count;
  if (root.type !== 'object') {
    problems.add(() => ({ path: 'type', message: `found ${describeValue(root.type)}; allowed: "object"` }));
  }
  for (const node of index.nodes) checkKeywords(node, problems);
  if (problems.count > countBefore) return;
  checkReferences(index, problems);
  checkHeaderAnnotations(index, problems);
}

function checkKeywords(node: SchemaNode, problems: ProblemList): void {
  for (const keyword of Object.keys(node.schema)) {
    const form = forms.get(keyword);
    if (form?.isValid(node.schema[keyword])) continue;
    problems.add(() => createKeywordProblem(node, keyword, form, problems.suggestionBudget));
  }
}

/** Alternatives to keywords that are not supported. */
const alternatives: ReadonlyMap<string, string> = new Map([
  ['patternProperties', '; use additionalProperties for the values, and propertyNames with a pattern for the names'],
  ['uniqueItems', '; leave it out, because the API checks it'],
]);

function formatPatternProblem(pattern: string): string {
  const parsed = parsePattern(pattern);
  return 'fault' in parsed ? `found ${describeValue(pattern)}, which ${parsed.fault}` : '';
}

function createKeywordProblem(
  node: SchemaNode,
  keyword: string,
  form: Form | undefined,
  budget: SuggestionBudget,
): Problem {
  const parentPath = getSchemaPath(node);
  const path = parentPath ? `${parentPath}.${keyword}` : keyword;
  if (!form) {
    const advice = alternatives.get(keyword) ?? suggestName(keyword, [...forms.keys()], budget);
    return { path, message: `this keyword is not supported${advice}` };
  }
  const pattern = node.schema[keyword];
  if (keyword === 'pattern' && typeof pattern === 'string') return { path, message: formatPatternProblem(pattern) };
  const prefix = keyword === '$schema' ? 'unknown dialect' : 'found';
  return { path, message: `${prefix} ${describeValue(node.schema[keyword])}; allowed: ${form.allowed}` };
}

/**
 * Checks `x-mcp-header` (MCP 2026-07-28, tools): an RFC 9110 token, unique in the schema regardless of case, on a
 * string, integer, or boolean that is reachable through `properties` only. A single violation makes clients drop the
 * whole tool.
 */
function checkHeaderAnnotations(index: SchemaIndex, problems: ProblemList): void {
  const seenNames = new Set<string>();
  for (const node of index.nodes) {
    const name = node.schema['x-mcp-header'];
    if (name === undefined) continue;
    const problem = checkHeaderAnnotation(name, node.schema, node.isPlainProperty, seenNames);
    if (problem === undefined) continue;
    problems.add(() => {
      const path = getSchemaPath(node);
      return { path: path ? `${path}.x-mcp-header` : 'x-mcp-header', message: problem };
    });
  }
}

function checkHeaderAnnotation(
  name: unknown,
  schema: JsonSchema,
  isReachable: boolean,
  seenNames: Set<string>,
): string | undefined {
  if (typeof name !== 'string' || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/.test(name)) {
    return `found ${describeValue(name)}; allowed: a header name of letters, digits and -`;
  }
  if (seenNames.has(name.toLowerCase())) return `${describeValue(name)} is used twice in this schema`;
  seenNames.add(name.toLowerCase());
  if (!['string', 'integer', 'boolean'].includes(schema.type as string)) {
    return `found on type ${describeValue(schema.type)}; allowed: string, integer, boolean`;
  }
  return isReachable ? undefined : 'only allowed on properties, not inside items, combinations or definitions';
}

/** Maximum nesting depth of schemas when references are followed. */
const maxReferenceDepth = 200;

/**
 * Checks references. They must target a schema of the document (not its examples, whose keywords are not checked) and
 * must not be cyclic, and the expanded schema must stay small. The time is proportional to the document.
 */
function checkReferences(index: SchemaIndex, problems: ProblemList): void {
  const childrenByNode = new Map<SchemaNode, SchemaNode[]>();
  for (const node of index.nodes) {
    const siblings = node.parent && childrenByNode.get(node.parent);
    if (siblings) siblings.push(node);
    else if (node.parent) childrenByNode.set(node.parent, [node]);
  }
  const sizes = new Map<SchemaNode, number>();
  const openNodes = new Set<SchemaNode>();
  let isTooDeep = false;
  const expand = (node: SchemaNode): number => {
    const cachedSize = sizes.get(node);
    if (cachedSize !== undefined) return cachedSize;
    if (openNodes.has(node)) {
      problems.add(() => ({
        path: getSchemaPath(node),
        message: 'this reference is recursive; recursive schemas are not supported',
      }));
      return 1;
    }
    if (openNodes.size >= maxReferenceDepth) {
      isTooDeep = true;
      return 1;
    }
    openNodes.add(node);
    let size = 1;
    const { $ref } = node.schema;
    if (typeof $ref === 'string') {
      const target = index.nodesBySchema.get(resolveReference(index, $ref) as JsonSchema);
      if (target) size += expand(target);
      else {
        const path = getSchemaPath(node);
        problems.add(() => ({
          path: path ? `${path}.$ref` : '$ref',
          message: `found ${describeValue($ref)}; it does not refer to a schema`,
        }));
      }
    }
    for (const child of childrenByNode.get(node) ?? []) size += expand(child);
    openNodes.delete(node);
    sizes.set(node, size);
    return size;
  };
  const size = expand(index.nodes[0] as SchemaNode);
  if (size > maxSchemas) problems.add(createTooManySchemasProblem);
  if (isTooDeep) {
    problems.add(() => ({ path: '', message: `references are nested more than ${maxReferenceDepth} schemas deep` }));
  }
}

const createTooManySchemasProblem = () => ({ path: '', message: `expands to more than ${maxSchemas} schemas` });

/**
 * Maximum characters of all patterns of a schema. A program takes several times as much memory as its pattern, and
 * tools of public API descriptions have at most 200 characters.
 */
const maxPatternCharacters = 20_000;

/** Returns the problem of a schema whose patterns are too long in total. */
function checkPatternLength({ nodes }: SchemaIndex): Problem | undefined {
  const lengths = nodes.map(({ schema }) => (typeof schema.pattern === 'string' ? schema.pattern.length : 0));
  const characters = lengths.reduce((sum, length) => sum + length, 0);
  if (characters <= maxPatternCharacters) return undefined;
  return {
    path: '',
    message: `found ${characters} characters of patterns; allowed: at most ${maxPatternCharacters} per schema; write shorter patterns, or let the API check some values`,
  };
}

/** Checks the pattern length of a stored schema, which may be older than this limit. */
export function checkStoredPatternLength(schema: JsonSchema): Problem | undefined {
  const index = indexSchema(schema);
  return index && checkPatternLength(index);
}
