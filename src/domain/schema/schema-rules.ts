import type { Problem } from '../../errors.ts';
import { isDeeperThan } from '../json/json.ts';
import { didYouMean, type Guesses, type ProblemList, shown } from '../problems.ts';
import {
  dialect,
  indexSchema,
  isSchemaObject,
  type JsonSchema,
  mostSchemas,
  pathOf,
  resolveReference,
  type SchemaIndex,
  type SchemaPart,
  schemaKeywords,
} from './json-schema.ts';
import { parsePattern } from './pattern-syntax.ts';

const maxDepth = 32;
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

type Form = { fits: (value: unknown) => boolean; allowed: string };

const isSchema = (value: unknown) => typeof value === 'boolean' || isSchemaObject(value);
const isSchemas = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isSchema);
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string');
const isMapOf = (fits: (value: unknown) => boolean) => (value: unknown) =>
  isSchemaObject(value) && Object.values(value).every(fits);

/**
 * Allowed keywords of an untrusted schema, and the form of each. Not supported are `patternProperties`, because every
 * pattern would search every name; `uniqueItems`, because comparing all pairs takes quadratic time; and `$id` and
 * `$dynamicRef`, because they redirect references.
 */
const forms = new Map<string, Form>(
  (
    [
      [schemaKeywords.one, isSchema, 'a schema'],
      [schemaKeywords.list, isSchemas, 'an array of schemas'],
      [schemaKeywords.map, isMapOf(isSchema), 'an object of schemas'],
      [['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'], Number.isFinite, 'a number'],
      [['multipleOf'], (value) => Number.isFinite(value) && Number(value) > 0, 'a number above 0'],
      [['minLength', 'maxLength', 'minItems', 'maxItems'], isCount, 'a non-negative integer'],
      [['minContains', 'maxContains', 'minProperties', 'maxProperties'], isCount, 'a non-negative integer'],
      [['required'], isStrings, 'an array of property names'],
      [['dependentRequired'], isMapOf(isStrings), 'an object of arrays of property names'],
      [['enum', 'examples'], Array.isArray, 'an array of values'],
      [['deprecated', 'readOnly', 'writeOnly'], (value) => typeof value === 'boolean', 'true or false'],
      [['$comment', '$anchor', 'title', 'description', 'format'], (v) => typeof v === 'string', 'a string'],
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
      [['$schema'], (value) => value === dialect, `"${dialect}", or leave it out`],
      [['pattern'], (v) => typeof v === 'string' && !('fault' in parsePattern(v)), 'a regular expression'],
      [['const', 'default', 'x-mcp-header'], () => true, ''],
    ] as [readonly string[], Form['fits'], string][]
  ).flatMap(([keywords, fits, allowed]) => keywords.map((keyword): [string, Form] => [keyword, { fits, allowed }])),
);

/** Returns true if schemas may have a keyword, in any form. */
export function isKnownKeyword(keyword: string): boolean {
  return forms.has(keyword);
}

/**
 * Returns the problem of a document that is nested too deeply to walk, or undefined. Must be checked before any other
 * rule.
 */
export function depthProblem(schema: unknown): Problem | undefined {
  return isDeeperThan(schema, maxDepth) ? { path: '', message: `nested deeper than ${maxDepth} levels` } : undefined;
}

/** Adds everything that makes a tool's JSON Schema unusable or unsafe. `root` must describe an object. */
export function checkSchema(root: JsonSchema, problems: ProblemList): void {
  const tooDeep = depthProblem(root);
  if (tooDeep) {
    problems.add(() => tooDeep);
    return;
  }
  const index = indexSchema(root);
  if (!index) {
    problems.add(tooManySchemas);
    return;
  }
  const tooManyPatterns = patternAmountProblem(index);
  if (tooManyPatterns) {
    problems.add(() => tooManyPatterns);
    return;
  }
  const before = problems.count;
  if (root.type !== 'object') {
    problems.add(() => ({ path: 'type', message: `found ${shown(root.type)}; allowed: "object"` }));
  }
  for (const part of index.parts) checkKeywords(part, problems);
  if (problems.count > before) return;
  checkReferences(index, problems);
  checkHeaderAnnotations(index, problems);
}

function checkKeywords(part: SchemaPart, problems: ProblemList): void {
  for (const keyword of Object.keys(part.schema)) {
    const form = forms.get(keyword);
    if (form?.fits(part.schema[keyword])) continue;
    problems.add(() => keywordProblem(part, keyword, form, problems.guesses));
  }
}

/** Alternatives to keywords that are not supported. */
const instead: ReadonlyMap<string, string> = new Map([
  ['patternProperties', '; use additionalProperties for the values, and propertyNames with a pattern for the names'],
  ['uniqueItems', '; leave it out, because the API checks it'],
]);

function patternFault(pattern: string): string {
  const read = parsePattern(pattern);
  return 'fault' in read ? `found ${shown(pattern)}, which ${read.fault}` : '';
}

function keywordProblem(part: SchemaPart, keyword: string, form: Form | undefined, guesses: Guesses): Problem {
  const holder = pathOf(part);
  const path = holder ? `${holder}.${keyword}` : keyword;
  if (!form) {
    const advice = instead.get(keyword) ?? didYouMean(keyword, [...forms.keys()], guesses);
    return { path, message: `this keyword is not supported${advice}` };
  }
  const pattern = part.schema[keyword];
  if (keyword === 'pattern' && typeof pattern === 'string') return { path, message: patternFault(pattern) };
  const found = keyword === '$schema' ? 'unknown dialect' : 'found';
  return { path, message: `${found} ${shown(part.schema[keyword])}; allowed: ${form.allowed}` };
}

/**
 * Checks `x-mcp-header` (MCP 2026-07-28, tools): an RFC 9110 token, unique in the schema regardless of case, on a
 * string, integer, or boolean that is reachable through `properties` only. A single violation makes clients drop the
 * whole tool.
 */
function checkHeaderAnnotations(index: SchemaIndex, problems: ProblemList): void {
  const seen = new Set<string>();
  for (const part of index.parts) {
    const name = part.schema['x-mcp-header'];
    if (name === undefined) continue;
    const fault = annotationFault(name, part.schema, part.isPlainProperty, seen);
    if (fault === undefined) continue;
    problems.add(() => {
      const path = pathOf(part);
      return { path: path ? `${path}.x-mcp-header` : 'x-mcp-header', message: fault };
    });
  }
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

/** Maximum nesting depth of schemas when references are followed. */
const deepestUnfolded = 200;

/**
 * Checks references. They must target a schema of the document (not its examples, whose keywords are not checked) and
 * must not be cyclic, and the expanded schema must stay small. The time is proportional to the document.
 */
function checkReferences(index: SchemaIndex, problems: ProblemList): void {
  const innerOf = new Map<SchemaPart, SchemaPart[]>();
  for (const part of index.parts) {
    const beside = part.parent && innerOf.get(part.parent);
    if (beside) beside.push(part);
    else if (part.parent) innerOf.set(part.parent, [part]);
  }
  const sizes = new Map<SchemaPart, number>();
  const open = new Set<SchemaPart>();
  let isTooDeep = false;
  const unfold = (part: SchemaPart): number => {
    const known = sizes.get(part);
    if (known !== undefined) return known;
    if (open.has(part)) {
      problems.add(() => ({
        path: pathOf(part),
        message: 'this reference is recursive; recursive schemas are not supported',
      }));
      return 1;
    }
    if (open.size >= deepestUnfolded) {
      isTooDeep = true;
      return 1;
    }
    open.add(part);
    let size = 1;
    const { $ref } = part.schema;
    if (typeof $ref === 'string') {
      const target = index.partOf.get(resolveReference(index, $ref) as JsonSchema);
      if (target) size += unfold(target);
      else {
        const path = pathOf(part);
        problems.add(() => ({
          path: path ? `${path}.$ref` : '$ref',
          message: `found ${shown($ref)}; it does not refer to a schema`,
        }));
      }
    }
    for (const inner of innerOf.get(part) ?? []) size += unfold(inner);
    open.delete(part);
    sizes.set(part, size);
    return size;
  };
  const size = unfold(index.parts[0] as SchemaPart);
  if (size > mostSchemas) problems.add(tooManySchemas);
  if (isTooDeep) {
    problems.add(() => ({ path: '', message: `references are nested more than ${deepestUnfolded} schemas deep` }));
  }
}

const tooManySchemas = () => ({ path: '', message: `expands to more than ${mostSchemas} schemas` });

/**
 * Maximum characters of all patterns of a schema. A program takes several times as much memory as its pattern, and
 * tools of public API descriptions have at most 200 characters.
 */
const mostCharacters = 20_000;

/** Returns the problem of a schema whose patterns are too long in total. */
function patternAmountProblem({ parts }: SchemaIndex): Problem | undefined {
  const lengths = parts.map(({ schema }) => (typeof schema.pattern === 'string' ? schema.pattern.length : 0));
  const characters = lengths.reduce((sum, length) => sum + length, 0);
  if (characters <= mostCharacters) return undefined;
  return {
    path: '',
    message: `found ${characters} characters of patterns; allowed: at most ${mostCharacters} per schema; write shorter patterns, or let the API check some values`,
  };
}

/** Checks the pattern length of a stored schema, which may be older than this limit. */
export function patternAmountProblemOf(schema: JsonSchema): Problem | undefined {
  const index = indexSchema(schema);
  return index && patternAmountProblem(index);
}
