import { type Outcome, type Problem, ToolFailure } from '../errors.ts';

/** A ToolFailure as plain data, to cross from a thread, where classes are lost. */
export type FailureData = { outcome: Outcome; message: string; problems: readonly Problem[] };

export function failureData({ outcome, message, problems }: ToolFailure): FailureData {
  return { outcome, message, problems };
}

export function toFailure({ outcome, message, problems }: FailureData): ToolFailure {
  return new ToolFailure(outcome, message, problems);
}
