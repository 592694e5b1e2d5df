import { argumentsOf, type InputSchema } from '../domain/input-schema.ts';
import type { Arguments } from '../domain/request-template.ts';
import type { JsonSchema } from '../domain/schema/json-schema.ts';
import { TooMuchWork } from '../domain/steps.ts';
import { ToolFailure } from '../errors.ts';
import type { HostedTool } from './hosted-server.ts';
import { compileArgumentCheck } from './validate-arguments.ts';

/** How many steps the check of a call's arguments may take on the event loop. */
const argumentSteps = 200_000;

/** What a tool's arguments must be. */
export type ArgumentRules = {
  /**
   * The arguments of a call as its request is built from them: checked, with defaults filled in, and without those that
   * say null for "nothing".
   * @throws ToolFailure invalid_arguments
   * @throws TooMuchWork
   */
  prepare: (given: Arguments, mostSteps: number) => Arguments;
};

export function compileArguments(input: InputSchema, schema: JsonSchema): ArgumentRules {
  const { fitsPlainly, check, allowsNull } = compileArgumentCheck(schema);
  const required = new Set((schema.required ?? []) as string[]);
  const declared = argumentsOf(input);
  const isNothing = (name: string, value: unknown) => value === null && !allowsNull(name);
  const fallbacks = declared
    .filter(({ name, fallback }) => fallback !== undefined && !isNothing(name, fallback))
    .map(({ name, fallback }): [string, unknown] => [name, fallback]);
  const dropped = declared.map(({ name }) => name).filter((name) => !required.has(name) && isNothing(name, null));
  return {
    prepare(given, mostSteps) {
      const filled = withFallbacks(given, fallbacks);
      if (fitsPlainly(filled)) return filled;
      const present = withFallbacks(withoutNulls(given, dropped), fallbacks);
      check(present, mostSteps);
      return present;
    },
  };
}

/** The arguments of a call as its request is built from them. @throws ToolFailure invalid_arguments */
export function prepareArguments(tool: HostedTool, given: Arguments): Arguments {
  try {
    return tool.args.prepare(given, argumentSteps);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    throw new ToolFailure('invalid_arguments', 'The arguments are too many to check against input_schema; send fewer.');
  }
}

function withFallbacks(given: Arguments, fallbacks: readonly [name: string, value: unknown][]): Arguments {
  if (fallbacks.length === 0) return given;
  const missing = fallbacks.filter(([name]) => !Object.hasOwn(given, name));
  return missing.length === 0 ? given : { ...given, ...Object.fromEntries(missing) };
}

/** Without the arguments that are null although their schema does not know null: they mean "nothing". */
function withoutNulls(given: Arguments, names: readonly string[]): Arguments {
  const nulls = new Set(names.filter((name) => Object.hasOwn(given, name) && given[name] === null));
  if (nulls.size === 0) return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !nulls.has(name)));
}
