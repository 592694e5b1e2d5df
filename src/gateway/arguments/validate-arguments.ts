import { isRawNumber, parseJson } from '../../domain/json/json.ts';
import { dotted, newGuesses } from '../../domain/problems.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { type CompiledSchema, compileSchema } from '../../domain/schema/compile-schema.ts';
import {
  allowedText,
  dependentText,
  type Fault,
  faultText,
  maxNamesShown,
  namesText,
  unknownText,
  valuesText,
} from '../../domain/schema/faults.ts';
import { declaredNames, type JsonSchema } from '../../domain/schema/json-schema.ts';
import { kindOf } from '../../domain/schema/keyword-tests.ts';
import { Steps, stepsOfText, TooMuchWork } from '../../domain/work/steps.ts';
import { type Problem, plainFailure, ToolFailure } from '../../errors.ts';
import { compiledTexts } from '../compiled-texts.ts';
import { type FailureData, failureData } from '../failure-data.ts';

const maxProblems = 10;

/**
 * Maximum number of values for which all problems are listed. For more values only the first problem is reported,
 * because no one reads a longer list.
 */
const maxListed = 1000;

export type ArgumentCheck = {
  /**
   * Checks arguments in at most `mostSteps` steps.
   * @throws ToolFailure invalid_arguments that names each invalid argument
   * @throws TooMuchWork
   */
  check: (args: Arguments, mostSteps: number) => void;
  /** Arguments that do not allow null. For them, null means absent. */
  notNull: ReadonlySet<string>;
};

/** Compiles a tool's JSON Schema. */
export function compileArgumentCheck(schema: JsonSchema): ArgumentCheck {
  const compiled = compileSchema(schema);
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  const declared = Object.keys(properties);
  const known = new Set(declared);
  // An object in a default is sent as configured, so it is not checked.
  const isDefault = (name: string, value: unknown) => typeof value === 'object' && value === properties[name]?.default;
  return {
    notNull: compiled.notNull,
    check(args, mostSteps) {
      const steps = new Steps(mostSteps);
      const given = Object.entries(args).filter(([name, value]) => !isDefault(name, value));
      const values = checkCarriage(Object.fromEntries(given), undefined, steps);
      // A JSON Schema may allow properties that it does not declare, but a request has no place for them.
      const unknown = Object.keys(args).filter((name) => !known.has(name));
      if (unknown.length === 0 && compiled.fits(args, steps)) return;
      const wanted = values > maxListed ? 'first fault' : 'faults';
      throw misfit(compiled, args, { unknown, declared, wanted, schema }, steps);
    },
  };
}

type Found = {
  unknown: readonly string[];
  declared: readonly string[];
  wanted: 'first fault' | 'faults';
  schema: JsonSchema;
};

function misfit(compiled: CompiledSchema, args: Arguments, found: Found, steps: Steps): ToolFailure {
  const { unknown, declared, wanted, schema } = found;
  const guesses = newGuesses();
  const shownUnknown = unknown.slice(0, maxProblems).map((name) => unknownText([name], declared, guesses));
  // A closed schema reports unknown arguments too.
  const faults = compiled
    .faults(args, steps, wanted)
    .filter(({ keyword, path }) => keyword !== 'unknown' || path.length > 1);
  const texts = [...new Set([...shownUnknown, ...faults.map((fault) => faultText(fault, guesses))])];
  const more = texts.length - shownUnknown.length + unknown.length - maxProblems;
  const shown = texts.slice(0, maxProblems);
  const message = `The arguments are invalid: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
  const ofUnknown = unknown.map(
    (name): Fault => ({ keyword: 'unknown', limit: false, path: [name], found: undefined, names: declared }),
  );
  const reason = faultReasons([...ofUnknown.slice(0, 1), ...faults], declaredNames(schema));
  return new ToolFailure('invalid_arguments', message, shown.map(problemOf), reason);
}

/** Splits `count: is missing` into the path and the message. */
function problemOf(text: string): Problem {
  const [path = ''] = text.split(': ', 1);
  return { path, message: text.slice(path.length + 2) };
}

/** Checks structured content against an output schema. */
export type OutputCheck = {
  /** Returns true if a value is valid. @throws TooMuchWork */
  fits(value: unknown, mostSteps: number): boolean;
  /** Describes the first location that is invalid, without any part of the value. @throws TooMuchWork */
  misfit(value: unknown, mostSteps: number): string;
};

export function compileOutputCheck(schema: JsonSchema): OutputCheck {
  const compiled = compileSchema(schema);
  return {
    fits: (value, mostSteps) => compiled.fits(value, new Steps(mostSteps)),
    misfit(value, mostSteps) {
      const faults = compiled.faults(value, new Steps(mostSteps), 'first fault');
      return faultReasons(faults, declaredNames(schema));
    },
  };
}

/** Path of a value, from the inside out. */
type Location = { outer: Location | undefined; name: string };

/**
 * Rejects values that JSON can represent but no request can carry: numbers beyond the range of a double, and lone
 * surrogates. Returns the number of values. @throws ToolFailure invalid_arguments @throws TooMuchWork
 */
function checkCarriage(value: unknown, at: Location | undefined, steps: Steps): number {
  steps.take(1);
  if (typeof value === 'string') {
    steps.take(stepsOfText(value));
    if (!value.isWellFormed()) throw unusable(at, 'is not well-formed Unicode text');
    return 1;
  }
  const number = isRawNumber(value) ? Number(value.rawJSON) : value;
  if (typeof number === 'number' && !Number.isFinite(number)) throw unusable(at, 'the number is too large');
  if (typeof number !== 'object' || number === null) return 1;
  let count = 1;
  if (Array.isArray(number)) {
    for (const [i, item] of number.entries()) count += checkCarriage(item, { outer: at, name: String(i) }, steps);
    return count;
  }
  for (const name of Object.keys(number)) {
    steps.take(1 + stepsOfText(name));
    const inner = { outer: at, name };
    if (!name.isWellFormed()) throw unusable(inner, 'the name is not well-formed Unicode text');
    count += checkCarriage((number as Arguments)[name], inner, steps);
  }
  return count;
}

function unusable(at: Location | undefined, what: string): ToolFailure {
  const path: string[] = [];
  for (let location = at; location; location = location.outer) path.push(location.name.toWellFormed());
  const where = dotted(path.reverse());
  return new ToolFailure(
    'invalid_arguments',
    `The arguments are invalid: ${where}: ${what}`,
    [{ path: where, message: what }],
    `an argument: ${what}`,
  );
}

const mostReasons = 3;

/**
 * Describes for a record why a value is invalid: the declared property, and the allowed values. `*` stands for every
 * index and undeclared name, because those are part of the value.
 */
function faultReasons(faults: readonly Fault[], declared: ReadonlySet<string>): string {
  const texts = [...new Set(faults.map((fault) => faultReason(fault, declared)))];
  const more = texts.length - mostReasons;
  return `${texts.slice(0, mostReasons).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function faultReason({ keyword, limit, path, found, names = [] }: Fault, declared: ReadonlySet<string>): string {
  const at = (steps: readonly string[]) => steps.map((step) => (declared.has(step) ? step : '*')).join('.');
  const where = at(path) || 'the whole';
  switch (keyword) {
    case 'required':
      return `${where}: is missing`;
    case 'unknown': {
      const kind = path.length > 1 ? `${at(path.slice(0, -1))}: a property` : 'an argument';
      return `${kind} that is not declared; allowed: ${names.length > 0 ? namesText(names, maxNamesShown) : 'none'}`;
    }
    case 'false':
      return `${where}: nothing is allowed here`;
    case 'enum':
      return `${where}: allowed: ${valuesText(limit as readonly unknown[])}`;
    case 'type':
      return `${where}: found ${kindOf(found)}; allowed: ${[...new Set([limit].flat())].join(' or ')}`;
    case 'dependentRequired':
      return `${where}: ${dependentText(limit as readonly string[])}`;
    default:
      return `${where}: ${keyword}${limit === undefined || typeof limit === 'object' ? '' : ` ${allowedText(limit)}`} is not met`;
  }
}

/** Checks the arguments of a call against the tool's JSON Schema. Both are JSON text. */
export type ArgumentJob = {
  input: { schema: string; args: string };
  output: { failure: FailureData | undefined };
};

/** Maximum number of steps, about half a second. */
const mostSteps = 15_000_000;

const compiled = compiledTexts((schema) => compileArgumentCheck(schema as JsonSchema));

export function checkArguments({ schema, args }: ArgumentJob['input']): { output: ArgumentJob['output'] } {
  try {
    compiled(schema).check(parseJson(args) as Arguments, mostSteps);
    return { output: { failure: undefined } };
  } catch (error) {
    if (error instanceof ToolFailure) return { output: { failure: failureData(error) } };
    if (error instanceof TooMuchWork) return { output: { failure: failureData(tooMuch) } };
    throw error;
  }
}

const tooMuch = plainFailure(
  'invalid_arguments',
  `The arguments have too many values. Checking them against input_schema takes more than ${mostSteps} steps: about one for each value and each schema keyword that applies to it, and more for a text that a pattern matches. Send fewer or shorter values in one call.`,
);
