import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import { isRawNumber } from '../domain/json.ts';
import type { JsonSchema } from '../domain/json-schema.ts';
import { didYouMean, shown } from '../domain/problems.ts';
import type { Arguments } from '../domain/request-template.ts';
import { ToolFailure } from '../errors.ts';

/** Formats whose check takes time in proportion to the text; any other `format` is a hint to the model only. */
const checkedFormats = new Set(['date', 'time', 'date-time', 'uuid', 'email', 'ipv4', 'ipv6']);

const maxProblems = 10;

export type ArgumentCheck = (args: Arguments) => void;

/** Compiles a tool's JSON Schema. The check throws ToolFailure invalid_arguments that names each argument at fault. */
export function compileArgumentCheck(schema: JsonSchema): ArgumentCheck {
  const validator = new Validator(withoutFormats(schema) as Schema, '2020-12', false);
  return (args) => {
    const plain = plainNumbers(args);
    const wrong = unusable(plain, []);
    if (wrong) throw new ToolFailure('invalid_arguments', `The arguments do not fit: ${wrong}`);
    const { valid, errors } = validator.validate(plain);
    if (valid) return;
    const problems = [...new Set(leaves(errors).map((unit) => problemText(unit, schema, plain)))];
    const more = problems.length > maxProblems ? `; and ${problems.length - maxProblems} more` : '';
    throw new ToolFailure(
      'invalid_arguments',
      `The arguments do not fit: ${problems.slice(0, maxProblems).join('; ')}${more}`,
    );
  };
}

/** Compiles an output schema into a test of a value. */
export function compileOutputCheck(schema: JsonSchema): (value: unknown) => boolean {
  const validator = new Validator(withoutFormats(schema) as Schema, '2020-12', true);
  return (value) => validator.validate(plainNumbers(value)).valid;
}

function withoutFormats(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === 'format' && typeof value === 'string' && !checkedFormats.has(value) ? undefined : value,
  ) as JsonSchema;
}

/** Numbers whose digits were kept become ordinary ones, which is enough to judge them. */
function plainNumbers(value: unknown): unknown {
  if (isRawNumber(value)) return Number(value.rawJSON);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plainNumbers);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plainNumbers(inner)]));
}

/** What JSON can write but no request can carry: numbers beyond the range of a double, and half characters. */
function unusable(value: unknown, path: readonly string[]): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return `${path.join('.')}: the number is too large`;
  if (typeof value === 'string' && !value.isWellFormed()) return `${path.join('.')}: is not well-formed Unicode text`;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const problem = unusable(inner, [...path, key]);
    if (problem) return problem;
  }
  return undefined;
}

/** A failing schema reports itself and what failed inside; only the innermost says something useful. */
function leaves(units: readonly OutputUnit[]): OutputUnit[] {
  return units.filter((unit) => !units.some((other) => other !== unit && isInside(other, unit)));
}

function isInside(inner: OutputUnit, outer: OutputUnit): boolean {
  return (
    inner.instanceLocation.startsWith(`${outer.instanceLocation}/`) ||
    (inner.keywordLocation.startsWith(`${outer.keywordLocation}/`) && inner.keywordLocation !== outer.keywordLocation)
  );
}

function pointerParts(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (Object.hasOwn(Object(inner), key) ? (inner as Arguments)[key] : undefined),
    value,
  );
}

function problemText(unit: OutputUnit, schema: JsonSchema, args: unknown): string {
  const path = pointerParts(unit.instanceLocation);
  const keywordPath = pointerParts(unit.keywordLocation);
  const limit = at(schema, keywordPath);
  const where = path.join('.') || 'arguments';
  const found = shown(at(args, path));
  switch (unit.keyword) {
    case 'required': {
      const name = /"([^"]*)"/.exec(unit.error)?.[1] ?? '';
      return `${[...path, name].join('.')}: is missing`;
    }
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return unknownText(path, at(schema, [...keywordPath.slice(0, -1), 'properties']));
    case 'false':
      return unknownText(path, schema.properties);
    case 'enum':
      return `${where}: found ${found}; allowed: ${(limit as unknown[]).map((value) => JSON.stringify(value)).join(', ')}`;
    case 'type':
      return `${where}: found ${found}; allowed: ${[limit].flat().join(' or ')}`;
    case 'format':
      return `${where}: found ${found}; allowed: a ${String(limit)}`;
    default:
      return `${where}: found ${found}; ${unit.keyword}${typeof limit === 'object' ? '' : ` ${String(limit)}`} is not met`;
  }
}

function unknownText(path: readonly string[], properties: unknown): string {
  const allowed = typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
  const name = path.at(-1) ?? '';
  const known = allowed.length > 0 ? `; allowed: ${allowed.join(', ')}` : '; the tool takes no arguments';
  return `${path.join('.')}: unknown argument${didYouMean(name, allowed) || known}`;
}
