import { describeValue, joinPath, type SuggestionBudget, suggestName } from '@toolhost/errors/problems';
import type { StepBudget } from './step-budget.ts';

/** Step of a path into a value: a property name or an index, and the step before it. */
export type Step = { outer: Step | undefined; key: string };

/**
 * A violation: the keyword, its limit, the path, and the value. `names` are the names that are allowed instead of an
 * unknown one.
 */
export type Violation = { keyword: string; limit: unknown; path: string[]; value: unknown; names?: readonly string[] };

const maxViolations = 100;

/** A single check of one value. */
export class CheckRun {
  readonly steps: StepBudget;
  /** True if the check continues after a violation. */
  readonly isThorough: boolean;
  /** Violations so far; undefined if only the verdict is needed. */
  readonly violations: Violation[] | undefined;

  constructor(steps: StepBudget, mode: 'verdict' | 'first fault' | 'faults') {
    this.steps = steps;
    this.isThorough = mode === 'faults';
    this.violations = mode === 'verdict' ? undefined : [];
  }

  /** Returns the step into a nested value, or undefined if violations are not collected. */
  enter(outer: Step | undefined, key: string): Step | undefined {
    return this.violations && { outer, key };
  }

  /** Records a violation. Always returns false. */
  addViolation(at: Step | undefined, violation: Omit<Violation, 'path'>): false {
    if (this.violations && this.violations.length < maxViolations)
      this.violations.push({ ...violation, path: toPath(at) });
    return false;
  }

  /** Discards the violations of alternatives after one of them matches. */
  discard(from: number): void {
    if (this.violations) this.violations.length = Math.min(this.violations.length, from);
  }

  get violationCount(): number {
    return this.violations?.length ?? 0;
  }
}

function toPath(lastStep: Step | undefined): string[] {
  const path: string[] = [];
  for (let step = lastStep; step; step = step.outer) path.push(step.key);
  return path.reverse();
}

const maxValuesShown = 50;
export const maxNamesShown = 30;
const maxValueLength = 100;

/** Formats a violation with its location, the value found, and the allowed values. */
export function formatViolation({ keyword, limit, path, value, names }: Violation, budget: SuggestionBudget): string {
  const where = joinPath(path) || 'arguments';
  switch (keyword) {
    case 'required':
      return `${where}: is missing`;
    case 'unknown':
      return formatUnknownName(path, names ?? [], budget);
    case 'false':
      return `${where}: no value is allowed here`;
    case 'enum':
      return `${where}: found ${describeValue(value)}; allowed: ${formatValues(limit as readonly unknown[])}`;
    case 'type':
      return `${where}: found ${describeValue(value)}; allowed: ${[...new Set([limit].flat())].join(' or ')}`;
    case 'dependentRequired':
      return `${where}: ${formatMissingDependents(limit as readonly string[])}`;
    default: {
      const formattedLimit = limit === undefined || typeof limit === 'object' ? '' : ` ${formatSchemaValue(limit)}`;
      return `${where}: found ${describeValue(value)}; ${keyword}${formattedLimit} is not met`;
    }
  }
}

/** Formats an undeclared argument or property, with the names that are `allowed`. */
export function formatUnknownName(
  path: readonly string[],
  allowed: readonly string[],
  budget: SuggestionBudget,
): string {
  const kind = path.length > 1 ? 'property' : 'argument';
  const none = path.length > 1 ? '; no property is allowed here' : '; the tool takes no arguments';
  const allowedNames = allowed.length > 0 ? `; allowed: ${formatPropertyNames(allowed, maxNamesShown)}` : none;
  return `${joinPath(path)}: unknown ${kind}${suggestName(path.at(-1) ?? '', allowed, budget) || allowedNames}`;
}

export function formatMissingDependents([name = '', ...missing]: readonly string[]): string {
  return `${joinPath([name])} also requires ${formatPropertyNames(missing, maxNamesShown)}`;
}

export function formatPropertyNames(names: readonly string[], maxNames: number): string {
  const more = names.length > maxNames ? `, … (${names.length} in total)` : '';
  return `${names
    .slice(0, maxNames)
    .map((name) => joinPath([name]))
    .join(', ')}${more}`;
}

export function formatValues(values: readonly unknown[]): string {
  const more = values.length > maxValuesShown ? `, … (${values.length} in total)` : '';
  return `${values.slice(0, maxValuesShown).map(formatSchemaValue).join(', ')}${more}`;
}

export function formatSchemaValue(value: unknown): string {
  if (typeof value === 'object' && value !== null) return describeValue(value);
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, maxValueLength) : value);
  return typeof value === 'string' && value.length > maxValueLength ? `${text.slice(0, -1)}…"` : text;
}
