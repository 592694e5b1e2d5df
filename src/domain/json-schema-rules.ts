import type { Problem } from '../errors.ts';
import { headerAnnotationProblems } from './header-annotations.ts';
import { isDeeperThan } from './json.ts';
import {
  dialect,
  isSchemaObject,
  type JsonSchema,
  schemaLists,
  schemaMaps,
  singleSchemas,
  walkSchema,
} from './json-schema.ts';
import { didYouMean, shown } from './problems.ts';
import { referenceProblems } from './schema-references.ts';

const maxDepth = 32;
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];

type Form = { fits: (value: unknown) => boolean; allowed: string };

const isSchema = (value: unknown) => typeof value === 'boolean' || isSchemaObject(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string');
const isMapOf = (fits: (value: unknown) => boolean) => (value: unknown) =>
  isSchemaObject(value) && Object.values(value).every(fits);

/**
 * What a stranger's schema may use, and the form that each keyword has. `pattern` and `patternProperties` are missing
 * because a regular expression can take exponential time, `uniqueItems` because comparing all pairs takes quadratic
 * time, `$id` and `$dynamicRef` because they redirect references.
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
      [['const', 'default', 'in', 'x-mcp-header'], () => true, ''],
    ] as [string[], Form['fits'], string][]
  ).flatMap(([keywords, fits, allowed]) => keywords.map((keyword): [string, Form] => [keyword, { fits, allowed }])),
);

/** A document nested too deep for what walks it, or undefined. To be asked before anything else looks at it. */
export function depthProblem(schema: unknown): Problem | undefined {
  return isDeeperThan(schema, maxDepth) ? { path: '', message: `nested deeper than ${maxDepth} levels` } : undefined;
}

/** Everything that makes a tool's JSON Schema unusable or unsafe: `root` must describe an object. */
export function jsonSchemaProblems(root: JsonSchema): Problem[] {
  const tooDeep = depthProblem(root);
  if (tooDeep) return [tooDeep];
  const problems: Problem[] = [];
  if (root.type !== 'object') problems.push({ path: 'type', message: `found ${shown(root.type)}; allowed: "object"` });
  walkSchema(root, '', (schema, path) => problems.push(...keywordProblems(schema, path)));
  if (problems.length > 0) return problems;
  return [...referenceProblems(root), ...headerAnnotationProblems(root)];
}

function keywordProblems(schema: JsonSchema, path: string): Problem[] {
  return Object.entries(schema).flatMap(([keyword, value]): Problem[] => {
    const at = path ? `${path}.${keyword}` : keyword;
    const form = forms.get(keyword);
    if (!form) return [{ path: at, message: `this keyword is not supported${didYouMean(keyword, [...forms.keys()])}` }];
    if (form.fits(value)) return [];
    const found = keyword === '$schema' ? 'unknown dialect' : 'found';
    return [{ path: at, message: `${found} ${shown(value)}; allowed: ${form.allowed}` }];
  });
}
