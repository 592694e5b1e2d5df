import { didYouMean, dotted, type Guesses, shown } from '../problems.ts';
import type { Steps } from '../work/steps.ts';

/** Step of a path into a value: a property name or an index, and the step before it. */
export type Step = { outer: Step | undefined; key: string };

/**
 * A violation: the keyword, its limit, the path, and the value. `names` are the names that are allowed instead of an
 * unknown one.
 */
export type Fault = { keyword: string; limit: unknown; path: string[]; found: unknown; names?: readonly string[] };

const mostFaults = 100;

/** A single check of one value. */
export class CheckRun {
  readonly steps: Steps;
  /** True if the check continues after a violation. */
  readonly isThorough: boolean;
  /** Undefined if only the verdict is needed. */
  readonly faults: Fault[] | undefined;

  constructor(steps: Steps, wanted: 'verdict' | 'first fault' | 'faults') {
    this.steps = steps;
    this.isThorough = wanted === 'faults';
    this.faults = wanted === 'verdict' ? undefined : [];
  }

  /** Returns the step into a nested value, or undefined if violations are not collected. */
  into(outer: Step | undefined, key: string): Step | undefined {
    return this.faults && { outer, key };
  }

  /** Records a violation. Always returns false. */
  fault(at: Step | undefined, fault: Omit<Fault, 'path'>): false {
    if (this.faults && this.faults.length < mostFaults) this.faults.push({ ...fault, path: pathTo(at) });
    return false;
  }

  /** Discards the violations of alternatives after one of them matches. */
  discard(from: number): void {
    if (this.faults) this.faults.length = Math.min(this.faults.length, from);
  }

  get faultCount(): number {
    return this.faults?.length ?? 0;
  }
}

function pathTo(last: Step | undefined): string[] {
  const path: string[] = [];
  for (let step = last; step; step = step.outer) path.push(step.key);
  return path.reverse();
}

const maxValuesShown = 50;
export const maxNamesShown = 30;
const longestValue = 100;

/** Formats a violation with its location, the value found, and the allowed values. */
export function faultText({ keyword, limit, path, found, names }: Fault, guesses: Guesses): string {
  const where = dotted(path) || 'arguments';
  switch (keyword) {
    case 'required':
      return `${where}: is missing`;
    case 'unknown':
      return unknownText(path, names ?? [], guesses);
    case 'false':
      return `${where}: no value is allowed here`;
    case 'enum':
      return `${where}: found ${shown(found)}; allowed: ${valuesText(limit as readonly unknown[])}`;
    case 'type':
      return `${where}: found ${shown(found)}; allowed: ${[...new Set([limit].flat())].join(' or ')}`;
    case 'dependentRequired':
      return `${where}: ${dependentText(limit as readonly string[])}`;
    default: {
      const limitText = limit === undefined || typeof limit === 'object' ? '' : ` ${allowedText(limit)}`;
      return `${where}: found ${shown(found)}; ${keyword}${limitText} is not met`;
    }
  }
}

/** Formats an undeclared argument or property, with the names that are `allowed`. */
export function unknownText(path: readonly string[], allowed: readonly string[], guesses: Guesses): string {
  const kind = path.length > 1 ? 'property' : 'argument';
  const none = path.length > 1 ? '; no property is allowed here' : '; the tool takes no arguments';
  const known = allowed.length > 0 ? `; allowed: ${namesText(allowed, maxNamesShown)}` : none;
  return `${dotted(path)}: unknown ${kind}${didYouMean(path.at(-1) ?? '', allowed, guesses) || known}`;
}

export function dependentText([name = '', ...missing]: readonly string[]): string {
  return `${dotted([name])} also requires ${namesText(missing, maxNamesShown)}`;
}

export function namesText(names: readonly string[], most: number): string {
  const more = names.length > most ? `, … (${names.length} in total)` : '';
  return `${names
    .slice(0, most)
    .map((name) => dotted([name]))
    .join(', ')}${more}`;
}

export function valuesText(values: readonly unknown[]): string {
  const more = values.length > maxValuesShown ? `, … (${values.length} in total)` : '';
  return `${values.slice(0, maxValuesShown).map(allowedText).join(', ')}${more}`;
}

export function allowedText(value: unknown): string {
  if (typeof value === 'object' && value !== null) return shown(value);
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, longestValue) : value);
  return typeof value === 'string' && value.length > longestValue ? `${text.slice(0, -1)}…"` : text;
}
