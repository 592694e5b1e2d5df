import { dereference, type OutputUnit, type Schema, validate } from '@cfworker/json-schema';
import { plainNumbers } from '../domain/json.ts';
import type { JsonSchema } from '../domain/json-schema.ts';
import { dotted } from '../domain/problems.ts';
import type { Arguments } from '../domain/request-template.ts';
import { type Problem, ToolFailure } from '../errors.ts';
import { problemTexts, unknownText } from './argument-problems.ts';
import { plainCheck } from './plain-arguments.ts';

/** Formats whose check takes time in proportion to the text; any other `format` is a hint to the model only. */
const checkedFormats = new Set(['date', 'time', 'date-time', 'uuid', 'email', 'ipv4', 'ipv6']);

const maxProblems = 10;

/** Of arguments with more values than this only the first problem is looked for: listing all takes too long. */
const maxListed = 1000;

export type ArgumentCheck = (args: Arguments) => void;

/** Compiles a tool's JSON Schema. The check throws ToolFailure invalid_arguments that names each argument at fault. */
export function compileArgumentCheck(schema: JsonSchema): ArgumentCheck {
  const fitsPlainly = plainCheck(withoutFormats(schema));
  const errorsOf = compile(schema);
  const declared = Object.keys((schema.properties as object | undefined) ?? {});
  return (args) => {
    if (fitsPlainly?.(args)) return;
    const plain = plainNumbers(args) as Arguments;
    const wrong = unusable(plain, []);
    if (wrong) throw new ToolFailure('invalid_arguments', `The arguments do not fit: ${wrong}`, [problemOf(wrong)]);
    const errors = errorsOf(plain, isLargerThan(plain, maxListed));
    // A JSON Schema may allow properties that it does not name, but a request has no place for them.
    const unknown = Object.keys(plain).filter((name) => !declared.includes(name));
    if (errors.length === 0 && unknown.length === 0) return;
    const problems = new Set([
      ...unknown.slice(0, maxListed).map((name) => unknownText([name], declared)),
      ...problemTexts(errors.slice(0, maxListed), schema, plain),
    ]);
    const more = problems.size > maxProblems ? `; and ${problems.size - maxProblems} more` : '';
    const shown = [...problems].slice(0, maxProblems);
    const said = `The arguments do not fit: ${shown.join('; ')}${more}`;
    throw new ToolFailure('invalid_arguments', said, shown.map(problemOf));
  };
}

/** `count: is missing` as the place and what is wrong there. */
function problemOf(text: string): Problem {
  const [path = ''] = text.split(': ', 1);
  return { path, message: text.slice(path.length + 2) };
}

/** Compiles an output schema into a test of a value. */
export function compileOutputCheck(schema: JsonSchema): (value: unknown) => boolean {
  const errorsOf = compile(schema);
  return (value) => errorsOf(plainNumbers(value), true).length === 0;
}

type ErrorsOf = (value: unknown, firstOnly: boolean) => OutputUnit[];

function compile(schema: JsonSchema): ErrorsOf {
  const checked = withoutFormats(schema) as Schema;
  const lookup = dereference(checked);
  return (value, firstOnly) => {
    try {
      return validate(value, checked, '2020-12', lookup, firstOnly).errors;
    } catch (error) {
      // The validator hands lists of errors on as arguments of a function, and very long ones do not fit the stack.
      if (error instanceof RangeError) return [tooManyErrors];
      throw error;
    }
  };
}

const tooManyErrors: OutputUnit = {
  keyword: 'errors',
  keywordLocation: '#',
  instanceLocation: '#',
  error: 'too much is wrong to list it',
};

function withoutFormats(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === 'format' && typeof value === 'string' && !checkedFormats.has(value) ? undefined : value,
  ) as JsonSchema;
}

/** What JSON can write but no request can carry: numbers beyond the range of a double, and half characters. */
function unusable(value: unknown, path: readonly string[]): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return `${dotted(path)}: the number is too large`;
  if (typeof value === 'string' && !value.isWellFormed()) return `${dotted(path)}: is not well-formed Unicode text`;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const at = [...path, key.toWellFormed()];
    if (!key.isWellFormed()) return `${dotted(at)}: the name is not well-formed Unicode text`;
    const problem = unusable(inner, at);
    if (problem) return problem;
  }
  return undefined;
}

function isLargerThan(value: unknown, limit: number): boolean {
  let left = limit;
  const count = (inner: unknown): boolean => {
    if (--left < 0) return true;
    return typeof inner === 'object' && inner !== null && Object.values(inner).some(count);
  };
  return count(value);
}
