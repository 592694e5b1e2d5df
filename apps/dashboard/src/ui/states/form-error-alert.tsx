import { Alert } from '@mantine/core';
import type { FormErrors } from '../actions/form-errors.ts';
import { ProblemAlert, toSentence } from './problem-alert.tsx';

/** Errors of a rejected request with the paths of fields, for problems that no field shows. */
export function FormErrorAlert({ formErrors, title }: { formErrors: FormErrors; title: string }) {
  const { problems, failure } = formErrors;
  if (failure) return <ProblemAlert error={failure} title={title} />;
  if (problems.length === 0) return null;
  return (
    <Alert color="red" role="alert" title={title}>
      {problems.map(({ path, message }) => (
        <div key={`${path} ${message}`}>{toSentence(path === '' ? message : `${path}: ${message}`)}</div>
      ))}
    </Alert>
  );
}
