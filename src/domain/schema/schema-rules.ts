import type { Problem } from '../../errors.ts';
import { isDeeperThan } from '../json/json.ts';
import { didYouMean, type Guesses } from '../problems/did-you-mean.ts';
import { type ProblemList, shown } from '../problems/problems.ts';
import { checkHeaderAnnotations } from './header-annotations.ts';
import { dialect, isSchemaObject, type JsonSchema, schemaLists, schemaMaps, singleSchemas } from './json-schema.ts';
import { patternAmountProblem } from './pattern-amount.ts';
import { parsePattern } from './pattern-syntax.ts';
import { checkReferences, tooManySchemas } from './references.ts';
import { indexSchema, pathOf, type SchemaPart } from './schema-index.ts';

const maxDepth = 32;
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

type Form = { fits: (value: unknown) => boolean; allowed: string };

const isSchema = (value: unknown) => typeof value === 'boolean' || isSchemaObject(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string');
const isMapOf = (fits: (value: unknown) => boolean) => (value: unknown) =>
  isSchemaObject(value) && Object.values(value).every(fits);

/**
 * The allowed keywords of an untrusted schema, and the form of each. `patternProperties` is missing because every pattern
 * would search every name, `uniqueItems` because comparing all pairs takes quadratic time, `$id` and `$dynamicRef` because
 * they redirect references.
 */
const forms = new Map<string, Form>(
  (
    [
      [singleSchemas, isSchema, 'a schema'],
      [
        schemaLists,
        (value) => Array.isArray(value) && value.length > 0 && value.every(isSchema),
        'an array of schemas',
      ],
      [schemaMaps, isMapOf(isSchema), 'an object of schemas'],
      [['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'], Number.isFinite, 'a number'],
      [['multipleOf'], (value) => Number.isFinite(value) && Number(value) > 0, 'a number above 0'],
      [
        ['minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'],
        isCount,
        'a whole number from 0',
      ],
      [['minProperties', 'maxProperties'], isCount, 'a whole number from 0'],
      [['required'], isStrings, 'an array of property names'],
      [['dependentRequired'], isMapOf(isStrings), 'an object of arrays of property names'],
      [['enum', 'examples'], Array.isArray, 'an array of values'],
      [['deprecated', 'readOnly', 'writeOnly'], (value) => typeof value === 'boolean', 'true or false'],
      [['$comment', '$anchor', 'title', 'description', 'format'], (v) => typeof v === 'string', 'a text'],
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
      [['const', 'default', 'in', 'x-mcp-header'], () => true, ''],
    ] as [readonly string[], Form['fits'], string][]
  ).flatMap(([keywords, fits, allowed]) => keywords.map((keyword): [string, Form] => [keyword, { fits, allowed }])),
);

/** Whether schemas may have a keyword, in whatever form. */
export function isKnownKeyword(keyword: string): boolean {
  return forms.has(keyword);
}

/** The problem of a document that is nested too deeply to walk, or undefined. To be checked before any other rule. */
export function depthProblem(schema: unknown): Problem | undefined {
  return isDeeperThan(schema, maxDepth) ? { path: '', message: `nested deeper than ${maxDepth} levels` } : undefined;
}

/** Everything that makes a tool's JSON Schema unusable or unsafe: `root` must describe an object. */
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

/** What to write for a keyword that is not supported. */
const instead: ReadonlyMap<string, string> = new Map([
  ['patternProperties', '; use additionalProperties for the values, and propertyNames with a pattern for the names'],
  ['uniqueItems', '; leave it out, as the API checks it'],
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
