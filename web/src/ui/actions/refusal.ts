import type { UseMutationResult } from '@tanstack/react-query';
import type { FieldProblem } from '../../answers.ts';
import { ApiProblem } from '../../api.ts';

/** Whether two values are the same as JSON, such as the input that was sent and the one on screen. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The reasons of a refusal: by field, or for the whole input. */
export type Refusal = { problems: readonly FieldProblem[]; failure: Error | undefined };

/** The refusal of this input; undefined as soon as another input is on screen. */
export function refusalOf<Input>(
  { error, variables }: Pick<UseMutationResult<unknown, Error, Input>, 'error' | 'variables'>,
  input: Input,
): Refusal {
  if (!error || !isSame(variables, input)) return { problems: [], failure: undefined };
  const problems = error instanceof ApiProblem ? error.problems : [];
  return { problems, failure: problems.length === 0 ? error : undefined };
}
