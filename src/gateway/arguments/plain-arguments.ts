import type { Arguments } from '../../domain/request/sent-argument.ts';
import { formatTest } from '../../domain/schema/formats.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';

type ValueTest = (value: unknown) => boolean;

const objectKeywords = new Set(['$schema', 'type', 'properties', 'required', 'additionalProperties', 'description']);
const annotations = ['title', 'description', 'default', 'examples', 'x-mcp-header'];
const valueKeywords = new Set(['type', 'enum', 'minimum', 'maximum', 'minLength', 'maxLength', ...annotations]);

/**
 * A quick test for the usual schema, a flat map of text, numbers and flags. Returns true only for arguments that fit.
 * Returns false when in doubt; the validator then decides and explains. Undefined for any other schema.
 */
export function plainCheck(schema: JsonSchema): ((args: Arguments) => boolean) | undefined {
  if (Object.keys(schema).some((keyword) => !objectKeywords.has(keyword))) return undefined;
  const tests = new Map<string, ValueTest>();
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)) {
    const test = testOf(property);
    if (!test) return undefined;
    tests.set(name, test);
  }
  const required = (schema.required ?? []) as string[];
  return (args) =>
    required.every((name) => Object.hasOwn(args, name)) &&
    Object.keys(args).every((name) => tests.get(name)?.(args[name]));
}

function testOf(property: JsonSchema): ValueTest | undefined {
  const isHint = (keyword: string) => keyword === 'format' && !formatTest(property.format);
  if (Object.keys(property).some((keyword) => !valueKeywords.has(keyword) && !isHint(keyword))) return undefined;
  const allowed = property.enum === undefined ? undefined : new Set(property.enum as unknown[]);
  const test = typeTest(property);
  return test && allowed ? (value) => test(value) && allowed.has(value) : test;
}

function typeTest(property: JsonSchema): ValueTest | undefined {
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength = Infinity } = property as Limits;
  const isNumber = (value: unknown) => typeof value === 'number' && value >= minimum && value <= maximum;
  switch (property.type) {
    case 'boolean':
      return (value) => typeof value === 'boolean';
    case 'integer':
      return (value) => Number.isInteger(value) && isNumber(value);
    case 'number':
      return (value) => Number.isFinite(value) && isNumber(value);
    case 'string':
      // A schema counts characters. There are at most as many as code units, and at least half as many.
      return (value) =>
        typeof value === 'string' &&
        value.length <= maxLength &&
        value.length >= 2 * minLength - 1 &&
        value.isWellFormed();
    default:
      return undefined;
  }
}

type Limits = { minimum?: number; maximum?: number; minLength?: number; maxLength?: number };
