import { type Outcome, type Problem, ToolFailure } from '@toolhost/errors/errors';

/**
 * A ToolFailure as plain data. Threads exchange it in this form, because class instances do not survive the transfer.
 */
export type FailureData = {
  outcome: Outcome;
  message: string;
  problems: readonly Problem[];
  recordMessage: string | undefined;
};

export function toFailureData({ outcome, message, problems, recordMessage }: ToolFailure): FailureData {
  return { outcome, message, problems, recordMessage };
}

export function fromFailureData({ outcome, message, problems, recordMessage }: FailureData): ToolFailure {
  return new ToolFailure(outcome, message, problems, recordMessage);
}
