import { ToolFailure } from '@toolhost/errors/errors';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { isRawNumber, toExactNumber, toPlainNumbers } from '@toolhost/json/json';
import { coerceValue } from '@toolhost/json-schema/coerce-value';
import { isSchemaObject, type JsonSchema } from '@toolhost/json-schema/json-schema';
import { maxEventLoopSteps, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import { findIgnoredArguments } from '@toolhost/tool-config/added-arguments';
import { getArguments, type InputSchema } from '@toolhost/tool-config/input-schema';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import { type ArgumentCheck, compileArgumentCheck } from './validate-arguments.ts';

/** Rules for a tool's arguments. */
export type ArgumentRules = Pick<ArgumentCheck, 'check'> & {
  /** Returns true if arguments are certainly valid, and false if only `check` can decide. Takes almost no time. */
  isQuicklyValid: (args: Arguments) => boolean;
  /** Adds the defaults of absent arguments. */
  applyDefaults: (rawArgs: Arguments) => Arguments;
  /** Adds defaults, and treats a null argument as absent if its schema does not allow null. */
  normalizeArguments: (rawArgs: Arguments) => Arguments;
  /** Coerces invalid arguments; see `coerceValue`. */
  coerce: (rawArgs: Arguments) => Arguments;
  /** Removes undeclared arguments that may be omitted; see `findIgnoredArguments`. */
  removeAdded: (rawArgs: Arguments) => Arguments;
};

/** Compiles the rules of a tool. `isReadOnly` means that no call writes, so an undeclared argument may be omitted. */
export function compileArguments(input: InputSchema, schema: JsonSchema, isReadOnly: boolean): ArgumentRules {
  const { check, nonNullable } = compileArgumentCheck(schema);
  const required = new Set((schema.required ?? []) as string[]);
  const accepted = Object.keys((schema.properties ?? {}) as object);
  // Constants are not arguments from a caller's view.
  const declared = getArguments(input).filter(({ wire }) => wire.value === undefined);
  const meansAbsent = (name: string, value: unknown) => value === null && nonNullable.has(name);
  const defaults = declared
    .filter(({ name, fallback }) => fallback !== undefined && !meansAbsent(name, fallback))
    .map(({ name, fallback }): [string, unknown] => [name, fallback]);
  const optional = declared.map(({ name }) => name).filter((name) => !required.has(name) && meansAbsent(name, null));
  return {
    isQuicklyValid: createQuickCheck(schema) ?? (() => false),
    check,
    applyDefaults: (rawArgs) => (defaults.length === 0 ? rawArgs : applyFallbacks(rawArgs, defaults)),
    normalizeArguments: (rawArgs) =>
      normalizeIntegers(applyFallbacks(removeNulls(rawArgs, optional), defaults), schema) as Arguments,
    coerce: (rawArgs) => coerceValue(rawArgs, schema) as Arguments,
    removeAdded: (rawArgs) => removeNames(rawArgs, findIgnoredArguments(rawArgs, accepted, isReadOnly)),
  };
}

/** Returns the rules of a view that fixes some arguments, which callers then may not pass. */
export function rejectFixedArguments(rules: ArgumentRules, names: readonly string[]): ArgumentRules {
  const getFixedNames = (args: Arguments) => names.filter((name) => Object.hasOwn(args, name));
  return {
    ...rules,
    isQuicklyValid: (args) => getFixedNames(args).length === 0 && rules.isQuicklyValid(args),
    removeAdded: (args) => (getFixedNames(args).length === 0 ? rules.removeAdded(args) : args),
    check(args, maxSteps) {
      const [name] = getFixedNames(args);
      if (name === undefined) return rules.check(args, maxSteps);
      const message = 'is fixed in this view; omit it';
      const problems = getFixedNames(args).map((path) => ({ path, message }));
      throw new ToolFailure(
        'invalid_arguments',
        `The arguments are invalid: ${name}: ${message}`,
        problems,
        `${name}: ${message}`,
      );
    },
  };
}

/**
 * Prepares the arguments from which a call's request is built. They are checked and completed with defaults. Nulls that
 * mean "nothing" and arguments that clients add are removed. Invalid arguments are coerced. `checkOnThread` checks
 * arguments if that takes long, or if `isLarge` is true.
 * @throws ToolFailure invalid_arguments, synchronously or by rejecting
 */
export function prepareArguments(
  tool: { args: ArgumentRules },
  rawArgs: Arguments,
  checkOnThread: (args: Arguments) => Promise<void>,
  isLarge = false,
): MaybePromise<Arguments> {
  const withDefaults = tool.args.applyDefaults(rawArgs);
  return tool.args.isQuicklyValid(withDefaults)
    ? withDefaults
    : checkArguments(tool.args, rawArgs, checkOnThread, isLarge);
}

async function checkArguments(
  rules: ArgumentRules,
  rawArgs: Arguments,
  checkOnThread: (args: Arguments) => Promise<void>,
  isLarge: boolean,
): Promise<Arguments> {
  const normalized = rules.normalizeArguments(rules.removeAdded(rawArgs));
  const check = async (args: Arguments): Promise<Arguments> => {
    if (isLarge || !checkWithinSteps(rules, args)) await checkOnThread(args);
    return args;
  };
  try {
    return await check(normalized);
  } catch (error) {
    const coerced = error instanceof ToolFailure ? rules.coerce(normalized) : normalized;
    if (coerced === normalized) throw error;
    return check(coerced);
  }
}

/** Returns false if the check takes too many steps for the event loop. @throws ToolFailure */
function checkWithinSteps(rules: ArgumentRules, args: Arguments): boolean {
  try {
    rules.check(args, maxEventLoopSteps);
    return true;
  } catch (error) {
    if (error instanceof StepLimitExceeded) return false;
    throw error;
  }
}

function applyFallbacks(rawArgs: Arguments, defaults: readonly [name: string, value: unknown][]): Arguments {
  const missing = defaults.filter(([name]) => !Object.hasOwn(rawArgs, name));
  return missing.length === 0 ? rawArgs : { ...rawArgs, ...Object.fromEntries(missing) };
}

/**
 * Removes arguments that are null although their schema does not allow null, because clients use that for "nothing".
 */
function removeNulls(rawArgs: Arguments, names: readonly string[]): Arguments {
  const nullNames = names.filter((name) => Object.hasOwn(rawArgs, name) && rawArgs[name] === null);
  return removeNames(rawArgs, nullNames);
}

function removeNames(rawArgs: Arguments, names: readonly string[]): Arguments {
  if (names.length === 0) return rawArgs;
  const removed = new Set(names);
  return Object.fromEntries(Object.entries(rawArgs).filter(([name]) => !removed.has(name)));
}

/**
 * Rewrites integers such as `2.0` or `1e2` to `2` and `100`, which URLs and strict parsers accept as integers. Only
 * declared values are examined. A value without such integers is returned unchanged.
 */
function normalizeIntegers(value: unknown, schema: unknown): unknown {
  if (typeof value !== 'object' || value === null || !isSchemaObject(schema)) return value;
  if (isRawNumber(value)) return schema.type === 'integer' ? normalizeInteger(value.rawJSON) : value;
  if (Array.isArray(value)) {
    if (!isSchemaObject(schema.items)) return value;
    const items = value.map((item) => normalizeIntegers(item, schema.items));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const fields = value as Arguments;
  const changed = new Map<string, unknown>();
  for (const [name, definition] of Object.entries(isSchemaObject(schema.properties) ? schema.properties : {})) {
    const newValue = Object.hasOwn(fields, name) ? normalizeIntegers(fields[name], definition) : fields[name];
    if (newValue !== fields[name]) changed.set(name, newValue);
  }
  if (changed.size === 0) return value;
  return Object.fromEntries(
    Object.entries(fields).map(([name, inner]) => [name, changed.has(name) ? changed.get(name) : inner]),
  );
}

/**
 * Removes the fraction and the exponent from a number. A number that is not an integer or too large is returned
 * unchanged.
 */
function normalizeInteger(text: string): unknown {
  const [, sign = '', integerPart = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  if (!Number.isFinite(Number(text))) return JSON.rawJSON(text);
  const digits = integerPart + fraction;
  const end = integerPart.length + Number(exponent);
  const isWhole = /^0*$/.test(digits.slice(Math.max(0, end)));
  const integer =
    digits
      .slice(0, Math.max(0, end))
      .padEnd(end, '0')
      .replace(/^0+(?=\d)/, '') || '0';
  return isWhole ? toExactNumber(integer === '0' ? integer : sign + integer) : JSON.rawJSON(text);
}

type ValueTest = (value: unknown) => boolean;

const objectKeywords = new Set(['$schema', 'type', 'properties', 'required', 'additionalProperties', 'description']);
const annotations = ['title', 'description', 'format', 'default', 'examples', 'x-mcp-header'];
const valueKeywords = new Set(['type', 'enum', 'minimum', 'maximum', 'minLength', 'maxLength', ...annotations]);

/**
 * Creates a quick test for common schemas: a flat object of strings, numbers, and booleans. The test returns true only
 * for valid arguments, and false when in doubt, so that the validator decides and explains. Returns undefined for any
 * other schema.
 */
function createQuickCheck(schema: JsonSchema): ((args: Arguments) => boolean) | undefined {
  if (Object.keys(schema).some((keyword) => !objectKeywords.has(keyword))) return undefined;
  const tests = new Map<string, ValueTest>();
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)) {
    const test = createValueTest(property);
    if (!test) return undefined;
    tests.set(name, test);
  }
  const required = (schema.required ?? []) as string[];
  return (args) => {
    for (const name of required) if (!Object.hasOwn(args, name)) return false;
    for (const name in args) if (!tests.get(name)?.(args[name])) return false;
    return true;
  };
}

function createValueTest(property: JsonSchema): ValueTest | undefined {
  if (Object.keys(property).some((keyword) => !valueKeywords.has(keyword))) return undefined;
  const allowed = property.enum === undefined ? undefined : new Set(property.enum as unknown[]);
  const test = createTypeTest(property);
  return test && allowed ? (value) => test(value) && allowed.has(value) : test;
}

function createTypeTest(property: JsonSchema): ValueTest | undefined {
  const {
    minimum = -Infinity,
    maximum = Infinity,
    minLength = 0,
    maxLength = Infinity,
  } = toPlainNumbers(property) as ValueLimits;
  const isNumber = (value: unknown) => typeof value === 'number' && value >= minimum && value <= maximum;
  switch (property.type) {
    case 'boolean':
      return (value) => typeof value === 'boolean';
    case 'integer':
      return (value) => Number.isInteger(value) && isNumber(value);
    case 'number':
      return (value) => Number.isFinite(value) && isNumber(value);
    case 'string':
      // A schema counts characters. Their number is at most the number of code units, and at least half of it.
      return (value) =>
        typeof value === 'string' &&
        value.length <= maxLength &&
        value.length >= 2 * minLength - 1 &&
        value.isWellFormed();
    default:
      return undefined;
  }
}

type ValueLimits = { minimum?: number; maximum?: number; minLength?: number; maxLength?: number };
