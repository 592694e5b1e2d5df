import type { UseMutationResult } from '@tanstack/react-query';
import type { FieldProblem } from '../../answers.ts';
import { ApiProblem } from '../../api.ts';
import { messageOf, sentence } from '../states/problem-alert.tsx';

/** Whether two values are the same as JSON, such as the input that was sent and the one on screen. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

type Sent<Input> = Pick<UseMutationResult<unknown, Error, Input>, 'error' | 'variables'>;

/** The reasons of a refusal: by field, or for the whole input. */
export type Refusal = { problems: readonly FieldProblem[]; failure: Error | undefined };

/** The refusal of this input; undefined as soon as another input is on screen. */
export function refusalOf<Input>({ error, variables }: Sent<Input>, input: Input): Refusal {
  if (!error || !isSame(variables, input)) return { problems: [], failure: undefined };
  const problems = error instanceof ApiProblem ? error.problems : [];
  return { problems, failure: problems.length === 0 ? error : undefined };
}

/** What a refusal says of a field. */
export function errorAt({ problems }: Refusal, path: string): string | undefined {
  const found = problems.find((problem) => problem.path.startsWith(path));
  return found && sentence(found.message);
}

/** The refusal of a form with one field, in a sentence. */
export function refusalText<Input>(sent: Sent<Input>, input: Input): string | undefined {
  const refusal = refusalOf(sent, input);
  return errorAt(refusal, '') ?? (refusal.failure && messageOf(refusal.failure));
}
