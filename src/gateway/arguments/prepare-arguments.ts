import { argumentsOf, type InputSchema } from '../../domain/config/input-schema.ts';
import { isRawNumber, numberWithDigits } from '../../domain/json/json.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { isSchemaObject, type JsonSchema } from '../../domain/schema/json-schema.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { stepsOnLoop, TooMuchWork } from '../../domain/work/steps.ts';
import { ToolFailure } from '../../errors.ts';
import { mendArguments } from './mend-arguments.ts';
import { type ArgumentCheck, compileArgumentCheck } from './validate-arguments.ts';

/** Rules for a tool's arguments. */
export type ArgumentRules = Pick<ArgumentCheck, 'fitsPlainly' | 'check'> & {
  /** Adds the defaults of absent arguments. */
  filled: (given: Arguments) => Arguments;
  /** Does the same, but counts an argument as absent if it is null and its schema does not allow null. */
  present: (given: Arguments) => Arguments;
  /** Puts right what agents commonly get wrong, in arguments that do not fit. */
  mended: (given: Arguments) => Arguments;
};

export function compileArguments(input: InputSchema, schema: JsonSchema): ArgumentRules {
  const { fitsPlainly, check, notNull } = compileArgumentCheck(schema);
  const required = new Set((schema.required ?? []) as string[]);
  // Constants are not arguments to a caller.
  const declared = argumentsOf(input).filter(({ wire }) => wire.value === undefined);
  const isNothing = (name: string, value: unknown) => value === null && notNull.has(name);
  const fallbacks = declared
    .filter(({ name, fallback }) => fallback !== undefined && !isNothing(name, fallback))
    .map(({ name, fallback }): [string, unknown] => [name, fallback]);
  const optional = declared.map(({ name }) => name).filter((name) => !required.has(name) && isNothing(name, null));
  return {
    fitsPlainly,
    check,
    filled: (given) => withFallbacks(given, fallbacks),
    present: (given) => wholeNumbers(withFallbacks(withoutNulls(given, optional), fallbacks), schema) as Arguments,
    mended: (given) => mendArguments(given, schema),
  };
}

/** The rules where a view fixes some arguments, which callers then do not give. */
export function withoutFixed(rules: ArgumentRules, names: readonly string[]): ArgumentRules {
  const given = (args: Arguments) => names.filter((name) => Object.hasOwn(args, name));
  return {
    ...rules,
    fitsPlainly: (args) => given(args).length === 0 && rules.fitsPlainly(args),
    check(args, mostSteps) {
      const [name] = given(args);
      if (name === undefined) return rules.check(args, mostSteps);
      const message = 'is fixed in this view of the server; leave it out';
      const problems = given(args).map((path) => ({ path, message }));
      throw new ToolFailure(
        'invalid_arguments',
        `The arguments do not fit: ${name}: ${message}`,
        problems,
        `${name}: ${message}`,
      );
    },
  };
}

/**
 * The arguments from which a call's request is built: checked, with defaults filled in, without those that say null for
 * "nothing", and mended where they do not fit otherwise. `checkLong` checks those that take long. All are long when `isLong`.
 * @throws ToolFailure invalid_arguments, synchronously or by rejecting
 */
export function prepareArguments(
  tool: { args: ArgumentRules },
  given: Arguments,
  checkLong: (args: Arguments) => Promise<void>,
  isLong = false,
): MaybePromise<Arguments> {
  const filled = tool.args.filled(given);
  if (tool.args.fitsPlainly(filled)) return filled;
  const present = tool.args.present(given);
  const check = (args: Arguments): MaybePromise<Arguments> => {
    try {
      if (!isLong) {
        tool.args.check(args, stepsOnLoop);
        return args;
      }
    } catch (error) {
      if (!(error instanceof TooMuchWork)) throw error;
    }
    return checkLong(args).then(() => args);
  };
  const checkMended = (error: unknown): MaybePromise<Arguments> => {
    const mended = error instanceof ToolFailure ? tool.args.mended(present) : present;
    if (mended === present) throw error;
    return check(mended);
  };
  try {
    const checked = check(present);
    return checked instanceof Promise ? checked.catch(checkMended) : checked;
  } catch (error) {
    return checkMended(error);
  }
}

function withFallbacks(given: Arguments, fallbacks: readonly [name: string, value: unknown][]): Arguments {
  if (fallbacks.length === 0) return given;
  const missing = fallbacks.filter(([name]) => !Object.hasOwn(given, name));
  return missing.length === 0 ? given : { ...given, ...Object.fromEntries(missing) };
}

/** Drops arguments that are null although their schema does not allow null: they mean "nothing". */
function withoutNulls(given: Arguments, names: readonly string[]): Arguments {
  const nulls = new Set(names.filter((name) => Object.hasOwn(given, name) && given[name] === null));
  if (nulls.size === 0) return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !nulls.has(name)));
}

/**
 * Integers that were written as `2.0` or `1e2` as `2` and `100`, which is what URLs and strict readers take for integers.
 * Only what the schema declares is looked at, and a value without such integers is given back itself.
 */
function wholeNumbers(value: unknown, schema: unknown): unknown {
  if (typeof value !== 'object' || value === null || !isSchemaObject(schema)) return value;
  if (isRawNumber(value)) return schema.type === 'integer' ? wholeNumber(value.rawJSON) : value;
  if (Array.isArray(value)) {
    if (!isSchemaObject(schema.items)) return value;
    const items = value.map((item) => wholeNumbers(item, schema.items));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const fields = value as Arguments;
  const changed = new Map<string, unknown>();
  for (const [name, definition] of Object.entries(isSchemaObject(schema.properties) ? schema.properties : {})) {
    const inner = Object.hasOwn(fields, name) ? wholeNumbers(fields[name], definition) : fields[name];
    if (inner !== fields[name]) changed.set(name, inner);
  }
  if (changed.size === 0) return value;
  return Object.fromEntries(
    Object.entries(fields).map(([name, inner]) => [name, changed.has(name) ? changed.get(name) : inner]),
  );
}

/** The same number without fraction and exponent; one that is not whole or too large stays as it is. */
function wholeNumber(text: string): unknown {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  if (!Number.isFinite(Number(text))) return JSON.rawJSON(text);
  const digits = whole + fraction;
  const end = whole.length + Number(exponent);
  const isWhole = /^0*$/.test(digits.slice(Math.max(0, end)));
  const integer =
    digits
      .slice(0, Math.max(0, end))
      .padEnd(end, '0')
      .replace(/^0+(?=\d)/, '') || '0';
  return isWhole ? numberWithDigits(integer === '0' ? integer : sign + integer) : JSON.rawJSON(text);
}
