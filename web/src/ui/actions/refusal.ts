import type { UseMutationResult } from '@tanstack/react-query';
import type { FieldProblem } from '../../answers.ts';
import { ApiProblem } from '../../api.ts';
import { messageOf, sentence } from '../states/problem-alert.tsx';

/** Returns true if two values are equal as JSON, for example sent and current input. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

type Sent<Input> = Pick<UseMutationResult<unknown, Error, Input>, 'error' | 'variables'>;

/** Errors of a rejected request: by field, or for the whole input. */
export type Refusal = { problems: readonly FieldProblem[]; failure: Error | undefined };

/** Returns the errors for this input. They are empty as soon as the input changes. */
export function refusalOf<Input>({ error, variables }: Sent<Input>, input: Input): Refusal {
  if (!error || !isSame(variables, input)) return { problems: [], failure: undefined };
  const problems = error instanceof ApiProblem ? error.problems : [];
  return { problems, failure: problems.length === 0 ? error : undefined };
}

/** Returns the error message for a field. */
export function errorAt({ problems }: Refusal, path: string): string | undefined {
  const found = problems.find((problem) => problem.path.startsWith(path));
  return found && sentence(found.message);
}

/** Returns the error message for a form with one field. */
export function refusalText<Input>(sent: Sent<Input>, input: Input): string | undefined {
  const refusal = refusalOf(sent, input);
  return errorAt(refusal, '') ?? (refusal.failure && messageOf(refusal.failure));
}
