import type { Outcome } from '@toolhost/errors/errors';

/**
 * An unusable response of a model host. `message` completes a sentence whose subject is the host. It contains no text
 * of the host except an error code.
 */
export class ModelError extends Error {
  readonly outcome: Outcome;
  /** HTTP status of the response. Undefined if it indicates success. */
  readonly status: number | undefined;

  constructor(outcome: Outcome, message: string, status?: number) {
    super(message);
    this.name = 'ModelError';
    this.outcome = outcome;
    this.status = status;
  }
}
