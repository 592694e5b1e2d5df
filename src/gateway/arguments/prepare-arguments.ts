import { argumentsOf, type InputSchema } from '../../domain/config/input-schema.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import type { Party } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { doInTurn } from '../../domain/work/next-turn.ts';
import { TooMuchWork } from '../../domain/work/steps.ts';
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
    present: (given) => withFallbacks(withoutNulls(given, optional), fallbacks),
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
 * "nothing", and mended where they do not fit otherwise. `checkLong` checks those that take long. `party` is whose work it is.
 * @throws ToolFailure invalid_arguments, synchronously or by rejecting
 */
export function prepareArguments(
  tool: { args: ArgumentRules },
  given: Arguments,
  checkLong: (args: Arguments) => Promise<void>,
  party?: Party,
): MaybePromise<Arguments> {
  const filled = tool.args.filled(given);
  if (tool.args.fitsPlainly(filled)) return filled;
  const present = tool.args.present(given);
  const check = (args: Arguments): MaybePromise<Arguments> => {
    const checked = doInTurn(false, (mostSteps) => tool.args.check(args, mostSteps), party);
    if (!(checked instanceof Promise)) return args;
    return checked
      .catch((error: unknown) => {
        if (error instanceof TooMuchWork) return checkLong(args);
        throw error;
      })
      .then(() => args);
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
