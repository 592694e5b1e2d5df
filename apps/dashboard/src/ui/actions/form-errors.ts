import type { UseMutationResult } from '@tanstack/react-query';
import { ApiProblem } from '../../api.ts';
import type { FieldProblem } from '../../api-types.ts';
import { getErrorMessage, toSentence } from '../states/problem-alert.tsx';

export function isEqual(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

type SentMutation<Input> = Pick<UseMutationResult<unknown, Error, Input>, 'error' | 'variables'>;

/** Errors of a rejected request: by field, or for the whole input. */
export type FormErrors = { problems: readonly FieldProblem[]; failure: Error | undefined };

/** Returns the errors for this input. There are none as soon as the input changes. */
export function getFormErrors<Input>({ error, variables }: SentMutation<Input>, input: Input): FormErrors {
  if (!error || !isEqual(variables, input)) return { problems: [], failure: undefined };
  const problems = error instanceof ApiProblem ? error.problems : [];
  return { problems, failure: problems.length === 0 ? error : undefined };
}

export function getFieldError({ problems }: FormErrors, path: string): string | undefined {
  const match = problems.find((problem) => problem.path.startsWith(path));
  return match && toSentence(match.message);
}

/** Returns the error message for a form with one field. */
export function getFormErrorText<Input>(mutation: SentMutation<Input>, input: Input): string | undefined {
  const formErrors = getFormErrors(mutation, input);
  return getFieldError(formErrors, '') ?? (formErrors.failure && getErrorMessage(formErrors.failure));
}
