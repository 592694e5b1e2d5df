import { parseJson } from '../../domain/json/json.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { TooMuchWork } from '../../domain/work/steps.ts';
import { plainFailure, ToolFailure } from '../../errors.ts';
import { compiledTexts } from '../compiled-texts.ts';
import { type FailureData, failureData } from '../failure-data.ts';
import { compileArgumentCheck } from './validate-arguments.ts';

/** Checks the arguments of a call by the JSON Schema of its tool; both are JSON text. */
export type ArgumentJob = {
  input: { schema: string; args: string };
  output: { failure: FailureData | undefined };
};

/** About half a second. */
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
  `The arguments hold too many values to check against input_schema, which takes more than ${mostSteps} steps: about one for each value and each part of the schema that it meets, and more for a text that a pattern reads. Send fewer or shorter values in one call.`,
);
