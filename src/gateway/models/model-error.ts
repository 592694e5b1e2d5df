import type { Outcome } from '../../errors.ts';

/**
 * A response of a model's host that is of no use. `message` completes a sentence whose subject is the host, and holds
 * nothing that the host wrote except an error code.
 */
export class ModelError extends Error {
  readonly outcome: Outcome;
  /** HTTP status of the response; undefined where it was a success. */
  readonly status: number | undefined;

  constructor(outcome: Outcome, message: string, status?: number) {
    super(message);
    this.name = 'ModelError';
    this.outcome = outcome;
    this.status = status;
  }
}
