import type { UseMutationResult } from '@tanstack/react-query';
import type { FieldProblem } from '../answers.ts';
import { ApiProblem } from '../api.ts';

/** Whether two values are the same once they are JSON, as what was sent and what is on screen. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** Why something was refused: by field, or as a whole. */
export type Refusal = { problems: readonly FieldProblem[]; failure: Error | undefined };

/** What the service has said against this input; nothing as soon as something else is on screen. */
export function refusalOf<Input>(
  { error, variables }: Pick<UseMutationResult<unknown, Error, Input>, 'error' | 'variables'>,
  input: Input,
): Refusal {
  if (!error || !isSame(variables, input)) return { problems: [], failure: undefined };
  const problems = error instanceof ApiProblem ? error.problems : [];
  return { problems, failure: problems.length === 0 ? error : undefined };
}
