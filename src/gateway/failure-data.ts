import { type Outcome, type Problem, ToolFailure } from '../errors.ts';

/**
 * A ToolFailure as plain data. Threads exchange it in this form, because class instances do not survive the transfer.
 */
export type FailureData = {
  outcome: Outcome;
  message: string;
  problems: readonly Problem[];
  forRecord: string | undefined;
};

export function failureData({ outcome, message, problems, forRecord }: ToolFailure): FailureData {
  return { outcome, message, problems, forRecord };
}

export function toFailure({ outcome, message, problems, forRecord }: FailureData): ToolFailure {
  return new ToolFailure(outcome, message, problems, forRecord);
}
