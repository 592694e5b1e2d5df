import { Alert } from '@mantine/core';
import type { Refusal } from '../actions/refusal.ts';
import { ProblemAlert, sentence } from './problem-alert.tsx';

/** Errors of a rejected request, with field paths, for use where no form shows them. */
export function RefusalAlert({ refusal: { problems, failure }, title }: { refusal: Refusal; title: string }) {
  if (failure) return <ProblemAlert error={failure} title={title} />;
  if (problems.length === 0) return null;
  return (
    <Alert color="red" role="alert" title={title}>
      {problems.map(({ path, message }) => (
        <div key={`${path} ${message}`}>{sentence(path === '' ? message : `${path}: ${message}`)}</div>
      ))}
    </Alert>
  );
}
