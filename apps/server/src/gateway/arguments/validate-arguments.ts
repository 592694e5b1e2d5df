import { type Problem, recordableFailure, ToolFailure } from '@toolhost/errors/errors';
import { createSuggestionBudget, joinPath } from '@toolhost/errors/problems';
import { isRawNumber, parseJson } from '@toolhost/json/json';
import { type CompiledSchema, compileSchema } from '@toolhost/json-schema/compile-schema';
import { getDeclaredNames, type JsonSchema } from '@toolhost/json-schema/json-schema';
import { getKind } from '@toolhost/json-schema/keyword-tests';
import { countTextSteps, StepBudget, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import {
  formatMissingDependents,
  formatPropertyNames,
  formatSchemaValue,
  formatUnknownName,
  formatValues,
  formatViolation,
  maxNamesShown,
  type Violation,
} from '@toolhost/json-schema/violations';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import { createCompileCache } from '../compile-cache.ts';
import { type FailureData, toFailureData } from '../failure-data.ts';

const maxProblems = 10;

/**
 * Maximum number of values for which all problems are listed. For more values only the first problem is reported,
 * because no one reads a longer list.
 */
const maxListedValues = 1000;

export type ArgumentCheck = {
  /**
   * Checks arguments in at most `maxSteps` steps.
   * @throws ToolFailure invalid_arguments that names each invalid argument
   * @throws StepLimitExceeded
   */
  check: (args: Arguments, maxSteps: number) => void;
  /** Arguments that do not allow null. For them, null means absent. */
  nonNullable: ReadonlySet<string>;
};

/** Compiles a tool's JSON Schema. */
export function compileArgumentCheck(schema: JsonSchema): ArgumentCheck {
  const compiled = compileSchema(schema);
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  const declared = Object.keys(properties);
  const declaredNames = new Set(declared);
  // An object in a default is sent as configured, so it is not checked.
  const isDefault = (name: string, value: unknown) => typeof value === 'object' && value === properties[name]?.default;
  return {
    nonNullable: compiled.nonNullable,
    check(args, maxSteps) {
      const steps = new StepBudget(maxSteps);
      const checkedEntries = Object.entries(args).filter(([name, value]) => !isDefault(name, value));
      const valueCount = checkRepresentable(Object.fromEntries(checkedEntries), undefined, steps);
      // A JSON Schema may allow properties that it does not declare, but a request has no place for them.
      const unknownNames = Object.keys(args).filter((name) => !declaredNames.has(name));
      if (unknownNames.length === 0 && compiled.isValid(args, steps)) return;
      const mode = valueCount > maxListedValues ? 'first fault' : 'faults';
      throw toArgumentFailure(compiled, args, { unknownNames, declared, mode, schema }, steps);
    },
  };
}

type FailureContext = {
  unknownNames: readonly string[];
  declared: readonly string[];
  mode: 'first fault' | 'faults';
  schema: JsonSchema;
};

function toArgumentFailure(
  compiled: CompiledSchema,
  args: Arguments,
  context: FailureContext,
  steps: StepBudget,
): ToolFailure {
  const { unknownNames, declared, mode, schema } = context;
  const suggestionBudget = createSuggestionBudget();
  const unknownMessages = unknownNames
    .slice(0, maxProblems)
    .map((name) => formatUnknownName([name], declared, suggestionBudget));
  // A closed schema reports unknown arguments too.
  const violations = compiled
    .violations(args, steps, mode)
    .filter(({ keyword, path }) => keyword !== 'unknown' || path.length > 1);
  const messages = [
    ...new Set([...unknownMessages, ...violations.map((violation) => formatViolation(violation, suggestionBudget))]),
  ];
  const hiddenCount = messages.length - unknownMessages.length + unknownNames.length - maxProblems;
  const shownMessages = messages.slice(0, maxProblems);
  const message = `The arguments are invalid: ${shownMessages.join('; ')}${hiddenCount > 0 ? `; and ${hiddenCount} more` : ''}`;
  const unknownViolations = unknownNames.map(
    (name): Violation => ({ keyword: 'unknown', limit: false, path: [name], value: undefined, names: declared }),
  );
  const reason = formatReasons([...unknownViolations.slice(0, 1), ...violations], getDeclaredNames(schema));
  return new ToolFailure('invalid_arguments', message, shownMessages.map(toProblem), reason);
}

/** Splits `count: is missing` into the path and the message. */
function toProblem(text: string): Problem {
  const [path = ''] = text.split(': ', 1);
  return { path, message: text.slice(path.length + 2) };
}

/** Checks structured content against an output schema. */
export type OutputCheck = {
  /** Returns true if a value is valid. @throws StepLimitExceeded */
  isValid(value: unknown, maxSteps: number): boolean;
  /** Describes the first location that is invalid, without any part of the value. @throws StepLimitExceeded */
  describeMismatch(value: unknown, maxSteps: number): string;
};

export function compileOutputCheck(schema: JsonSchema): OutputCheck {
  const compiled = compileSchema(schema);
  return {
    isValid: (value, maxSteps) => compiled.isValid(value, new StepBudget(maxSteps)),
    describeMismatch(value, maxSteps) {
      const violations = compiled.violations(value, new StepBudget(maxSteps), 'first fault');
      return formatReasons(violations, getDeclaredNames(schema));
    },
  };
}

/** Path of a value as a linked list: its own name, and the location of the object or list around it. */
type Location = { outer: Location | undefined; name: string };

/**
 * Rejects values that JSON can represent but no request can carry: numbers beyond the range of a double, and lone
 * surrogates. Returns the number of values. @throws ToolFailure invalid_arguments @throws StepLimitExceeded
 */
function checkRepresentable(value: unknown, location: Location | undefined, steps: StepBudget): number {
  steps.consume(1);
  if (typeof value === 'string') {
    steps.consume(countTextSteps(value));
    if (!value.isWellFormed()) throw toValueFailure(location, 'is not well-formed Unicode text');
    return 1;
  }
  const plainValue = isRawNumber(value) ? Number(value.rawJSON) : value;
  if (typeof plainValue === 'number' && !Number.isFinite(plainValue))
    throw toValueFailure(location, 'the number is too large');
  if (typeof plainValue !== 'object' || plainValue === null) return 1;
  let count = 1;
  if (Array.isArray(plainValue)) {
    for (const [i, item] of plainValue.entries())
      count += checkRepresentable(item, { outer: location, name: String(i) }, steps);
    return count;
  }
  for (const name of Object.keys(plainValue)) {
    steps.consume(1 + countTextSteps(name));
    const inner = { outer: location, name };
    if (!name.isWellFormed()) throw toValueFailure(inner, 'the name is not well-formed Unicode text');
    count += checkRepresentable((plainValue as Arguments)[name], inner, steps);
  }
  return count;
}

function toValueFailure(innermost: Location | undefined, problem: string): ToolFailure {
  const path: string[] = [];
  for (let location = innermost; location; location = location.outer) path.push(location.name.toWellFormed());
  const pathText = joinPath(path.reverse());
  return new ToolFailure(
    'invalid_arguments',
    `The arguments are invalid: ${pathText}: ${problem}`,
    [{ path: pathText, message: problem }],
    `an argument: ${problem}`,
  );
}

const maxReasons = 3;

/**
 * Describes for the call record why a value is invalid: the declared property, and the allowed values. `*` stands for
 * every index and undeclared name, because those are part of the value.
 */
function formatReasons(violations: readonly Violation[], declared: ReadonlySet<string>): string {
  const messages = [...new Set(violations.map((violation) => formatReason(violation, declared)))];
  const hiddenCount = messages.length - maxReasons;
  return `${messages.slice(0, maxReasons).join('; ')}${hiddenCount > 0 ? `; and ${hiddenCount} more` : ''}`;
}

function formatReason({ keyword, limit, path, value, names = [] }: Violation, declared: ReadonlySet<string>): string {
  const formatPath = (segments: readonly string[]) =>
    segments.map((name) => (declared.has(name) ? name : '*')).join('.');
  const location = formatPath(path) || 'the whole';
  switch (keyword) {
    case 'required':
      return `${location}: is missing`;
    case 'unknown': {
      const kind = path.length > 1 ? `${formatPath(path.slice(0, -1))}: unknown property` : 'unknown argument';
      return `${kind}; allowed: ${names.length > 0 ? formatPropertyNames(names, maxNamesShown) : 'none'}`;
    }
    case 'false':
      return `${location}: nothing is allowed here`;
    case 'enum':
      return `${location}: allowed: ${formatValues(limit as readonly unknown[])}`;
    case 'type':
      return `${location}: found ${getKind(value)}; allowed: ${[...new Set([limit].flat())].join(' or ')}`;
    case 'dependentRequired':
      return `${location}: ${formatMissingDependents(limit as readonly string[])}`;
    default:
      return `${location}: ${keyword}${limit === undefined || typeof limit === 'object' ? '' : ` ${formatSchemaValue(limit)}`} is not met`;
  }
}

/** Checks the arguments of a call against the tool's JSON Schema. Both are JSON text. */
export type ArgumentJob = {
  input: { schema: string; args: string };
  output: { failure: FailureData | undefined };
};

/** Maximum number of steps on a thread, about half a second. */
const maxThreadSteps = 15_000_000;

const compileCached = createCompileCache((schema) => compileArgumentCheck(schema as JsonSchema));

export function checkArguments({ schema, args }: ArgumentJob['input']): { output: ArgumentJob['output'] } {
  try {
    compileCached(schema).check(parseJson(args) as Arguments, maxThreadSteps);
    return { output: { failure: undefined } };
  } catch (error) {
    if (error instanceof ToolFailure) return { output: { failure: toFailureData(error) } };
    if (error instanceof StepLimitExceeded) return { output: { failure: toFailureData(tooManyStepsFailure) } };
    throw error;
  }
}

const tooManyStepsFailure = recordableFailure(
  'invalid_arguments',
  `The arguments have too many values. Checking them against input_schema takes more than ${maxThreadSteps} steps: about one for each value and each schema keyword that applies to it, and more for a text that a pattern matches. Send fewer or shorter values in one call.`,
);
